//! A small file of the data directory, in JSON, that several processes may change.
//!
//! Owns that one changes it at a time, and that it is there whole or not at all, also after a
//! crash. What is in it is its module's to say.

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;

/// What it holds; nothing yet, if it is not there. `mend` says what to do where it can't be read.
pub(crate) fn load<T: DeserializeOwned + Default>(path: &Path, mend: &str) -> Outcome<T> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| {
            let text = format!("{}: what is kept there can't be read: {error}", path.display());
            Failure::new(Kind::Storage, text).hint(mend)
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(storage(path, &error)),
    }
}

/// Changes what it holds, and gives what it holds from now on.
pub(crate) fn change<T>(
    paths: &Paths,
    path: &Path,
    mend: &str,
    change: impl FnOnce(&mut T) -> Outcome,
) -> Outcome<T>
where
    T: DeserializeOwned + Serialize + Default + Clone + PartialEq,
{
    paths.prepare()?;
    let failed = |error: std::io::Error| storage(path, &error);
    let dir = path.parent().unwrap_or(path);
    fs::create_dir_all(dir).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let lock = options.open(path.with_extension("lock")).map_err(failed)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
    let before: T = load(path, mend)?;
    let mut after = before.clone();
    change(&mut after)?;
    if after != before {
        let text = serde_json::to_vec_pretty(&after)
            .map_err(|error| Failure::from_error(Kind::Storage, &error))?;
        let temporary = path.with_extension("new");
        let mut options = OpenOptions::new();
        // It may hold a key.
        options.create(true).truncate(true).write(true).mode(0o600);
        let mut file = options.open(&temporary).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&temporary, path).map_err(failed)?;
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    }
    Ok(after)
}

fn storage(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
}
