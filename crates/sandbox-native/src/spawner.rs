//! The spawner: a process of one thread that makes sandboxes.
//!
//! Owns the state directory, the privileges and the guests. It is started with an
//! empty environment, holds no secret, serves one request at a time and never waits
//! for a guest without a bound. When it ends its guests end too: a later one finds
//! their disks and makes new lives over them.
//!
//! What it keeps in the state directory:
//! - `spawner.lock`, held while it lives, so that there is one; `spawner.sock`;
//! - `sandboxes/<id>/`: `record`, what it is; `range`, the first of its user ids;
//!   `upper/`, its own tree, which is called `blank/` until its owners are known, and `work/`
//!   beside it where it stands on layers; `cold` and `kept`, a suspended life;
//! - `layers/<name>/`: `record` and `tree/`, a sealed tree that others stand on;
//!   those of images are named by the digest of their content;
//! - `incoming/`, layers of images that are being unpacked;
//! - `templates/<name>`, the layers of an image and how it wants to be used;
//! - `snapshots/<name>`, a named list of layers;
//! - `trash/`, what is being deleted; `mnt/`, an empty directory to mount on.

mod create;
mod error;
mod event_loop;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod layers;
mod lifecycle;
mod names;
pub(crate) mod quota;
mod record;
mod rootfs;
mod start;
mod store;
mod sys;
mod tier;
mod tree;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use outrigger_sandbox::Isolation;

pub(crate) use self::start::{BUSY, READY};

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

/// Which tier the spawner of a state directory, or of a new one, takes, and why it is
/// no better one.
pub(crate) fn tier(state: Option<&Path>) -> Result<(Isolation, Option<String>), String> {
    tier::choose(state).map(|tier| (tier.isolation, tier.why))
}
