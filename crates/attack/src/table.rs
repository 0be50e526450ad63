//! The table of attacks: number, name, how it is tried, what must come of it.
//!
//! Owns the rows as data. A row that can't be tried says why; there is none without
//! either.

mod egress;
mod files;
mod isolation;
mod resources;
mod row;

pub use row::{Act, By, Expect, How, Probe, Row};

/// All attacks, in order.
pub const ROWS: &[&[Row]] = &[isolation::ROWS, resources::ROWS, files::ROWS, egress::ROWS];

/// All attacks, in order.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().flat_map(|rows| rows.iter())
}
