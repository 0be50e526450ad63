//! The person's shell, as this process was started from it.
//!
//! Owns the one reading of its variables.

use outrigger_repository::toolchain::Shell;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The person's shell, as far as tools are found by it.
pub(crate) fn of_person() -> Shell {
    let vars: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let home = vars.get("HOME").map(PathBuf::from).unwrap_or_default();
    Shell { home, vars }
}
