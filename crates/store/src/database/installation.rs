//! The name of an installation, by which others know what is its own.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::path::Path;
use std::{fs, io};

use crate::Error;

const NAME: &str = "installation";

/// The name of the installation whose store's directory this is, made up once: 32 hexadecimal
/// digits. What is made elsewhere under another name is somebody else's.
///
/// # Errors
/// What the disk says.
pub fn installation(directory: &Path) -> Result<String, Error> {
    named(directory).map_err(|e| Error::io("naming the installation", e))
}

fn named(directory: &Path) -> io::Result<String> {
    let path = directory.join(NAME);
    match fs::read_to_string(&path) {
        Ok(name) => return Ok(name.trim().to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let name = format!("{:016x}{:016x}", random(), random());
    let temporary = path.with_extension(&name);
    fs::write(&temporary, &name)?;
    // The first of two that begin at once wins, whole.
    let placed = fs::hard_link(&temporary, &path);
    fs::remove_file(&temporary)?;
    match placed {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => fs::read_to_string(&path).map(|name| name.trim().to_owned()),
    }
}

/// A number that nobody guesses or has besides: the standard library seeds its hashes by chance.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
