//! Attacks made from outside, through the port.
//!
//! Each function makes the attempts of one probe, in sandboxes of its own, and says
//! what it saw in the words of the table.

pub(crate) mod bombs;
pub(crate) mod images;
pub(crate) mod limits_asked;
pub(crate) mod lives;
pub(crate) mod neighbours;
pub(crate) mod objects;
pub(crate) mod output;
pub(crate) mod paths;
pub(crate) mod pressure;
pub(crate) mod races;
pub(crate) mod requests;
pub(crate) mod searches;
