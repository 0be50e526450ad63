//! Small files that are there whole or not at all.
//!
//! Owns their form: a version, a digest of what follows, one postcard value. A file
//! that does not fit is damaged, which a reader is told; it is never read in part.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use crate::limits;

const VERSION: u8 = 1;
const DIGEST_BYTES: usize = 16;

/// What a record must outlast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The end of the spawner.
    Process,
    /// A loss of power too, as it is or as it was before: never damaged.
    Power,
    /// A loss of power after the write returned.
    Answer,
}

fn digest(body: &[u8]) -> [u8; DIGEST_BYTES] {
    let whole: [u8; 32] = Sha256::digest(body).into();
    let mut part = [0; DIGEST_BYTES];
    part.copy_from_slice(&whole[..DIGEST_BYTES]);
    part
}

fn bytes<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let body = postcard::to_allocvec(value).map_err(io::Error::other)?;
    Ok([&[VERSION][..], &digest(&body), &body].concat())
}

/// Writes a record in the place of an older one.
pub(crate) fn write<T: Serialize>(
    path: &Path,
    value: &T,
    durability: Durability,
) -> io::Result<()> {
    let bytes = bytes(value)?;
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return Err(io::Error::other("a record has no place"));
    };
    // No record's name begins with a dot.
    let temporary = dir.join(format!(".{name}.new"));
    let mut file = fs::File::create(&temporary)?;
    file.write_all(&bytes)?;
    if durability != Durability::Process {
        file.sync_all()?;
    }
    fs::rename(&temporary, path)?;
    if durability == Durability::Answer {
        fs::File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// Reads a record. `None`: there is none. A damaged one is `InvalidData`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(limits::RECORD_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the record is damaged");
    let (head, body) = bytes.split_at_checked(1 + DIGEST_BYTES).ok_or_else(damaged)?;
    if head[0] != VERSION || head[1..] != digest(body) {
        return Err(damaged());
    }
    postcard::from_bytes(body).map(Some).map_err(|_| damaged())
}

/// Forgets a record. One that is not there is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_whole_or_called_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        assert_eq!(read::<String>(&path).unwrap(), None);
        write(&path, &"first", Durability::Process).unwrap();
        write(&path, &"second", Durability::Answer).unwrap();
        assert_eq!(read::<String>(&path).unwrap().unwrap(), "second");
        write(&path, &"a longer one", Durability::Process).unwrap();
        write(&path, &"third", Durability::Process).unwrap();
        assert_eq!(read::<String>(&path).unwrap().unwrap(), "third");
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(read::<String>(&path).is_err(), "cut at {length}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            fs::write(&path, &other).unwrap();
            assert!(read::<String>(&path).is_err(), "changed at {at}");
        }
        remove(&path).unwrap();
        remove(&path).unwrap();
    }
}
