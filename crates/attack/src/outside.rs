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

use std::sync::Arc;

use crate::stage::Stage;
use crate::table::Seen;

/// All that was seen, or why nothing could be.
pub(crate) type Tried = Result<Vec<Seen>, String>;
/// Where it is seen.
pub(crate) type OnStage = Arc<Stage>;

/// Memory that this process holds, in bytes; see proc_pid_statm(5).
pub(crate) fn own_memory() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    number.map(|kibibytes| kibibytes << 10).ok_or("no VmRSS in /proc/self/status".to_owned())
}
