//! The numbered attacks on sandboxes, with what each must come to.
//!
//! Owns the table of attacks, the stage that they are made on and the verdicts. It
//! speaks to sandboxes through the port alone, so every backend faces the same; what
//! is tried from inside does the program of the crate `evil`. It must never be linked
//! into the product.
//!
//! Read first: [`table::ROWS`], [`run`].

#![forbid(unsafe_code)]

mod archive;
mod docker;
mod egress;
mod hostile;
pub mod limits;
mod native;
mod observation;
mod outside;
mod report;
mod run;
mod stage;
pub mod table;
mod target;

pub use docker::DockerWorld;
pub use native::NativeWorld;
pub use observation::Observation;
pub use report::{AttemptReport, AttemptVerdict, TargetReport};
pub use run::run;
pub use stage::{Scale, Stage};
pub use target::{GATE, Images, TEMPLATE, Target};
