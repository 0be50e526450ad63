//! The spawner: a process of one thread that makes sandboxes.
//!
//! Owns the state directory, the privileges and the guests. It is started with an
//! empty environment, holds no secret, serves one request at a time and never waits
//! for a guest without a bound. When it ends its guests end too: a later one finds
//! their disks and makes new lives over them.
//!
//! What it keeps in the state directory:
//! - `spawner.lock`, held while it lives, so that there is one; `spawner.sock`;
//! - `sandboxes/<id>/range`, the first of its user ids; `sandboxes/<id>/upper/`, its disk;
//! - `layers/<digest>/tree/`, an unpacked layer of an image; `templates/<name>`, a list of
//!   them; `incoming/`, layers that are being unpacked;
//! - `trash/`, disks that are being deleted; `mnt/`, an empty directory to mount on.

mod birth;
mod deleter;
mod ids;
mod images;
mod layer;
mod live;
mod remove;
mod root;
mod serve;
mod setup;
mod start;
mod sys;
mod template;
mod unpack;

use std::ffi::OsString;
use std::process::ExitCode;

/// What the spawner tells its starter on standard output before it serves.
pub(crate) const READY: &str = "ready";
/// What it tells when another one serves this state directory already.
pub(crate) const BUSY: &str = "busy";

/// Runs a spawner until it is idle. `args` is the state directory alone.
///
/// To be called first thing in `main`, before any thread or runtime exists: it
/// forks. Standard input is a sealed memory file with the guest program, standard
/// output takes one word when it serves. It leaves the terminal, the working
/// directory and every other descriptor of its starter behind.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match start::start(args.into_iter()) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(spawner)) => match spawner.serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(_) => ExitCode::FAILURE,
    }
}

/// Whether this process owns every id that sandboxes can have.
pub(crate) fn all_ids_mapped() -> bool {
    ids::all_mapped()
}
