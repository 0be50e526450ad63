//! What is opened beneath a directory, and what never is.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod opens;
mod writes;

use outrigger_beneath::Dir;

/// The names in a directory, in their order.
fn names(dir: &Dir) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = dir.names().unwrap().map(Result::unwrap).collect();
    names.sort();
    names
}
