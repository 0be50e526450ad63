//! What the fuzz targets share: a stream that arrives in pieces of any size, and
//! what must hold of every message that was taken from it.
//!
//! Must never decide what a message may say: that stands in the targets.

pub mod seeds;

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use outrigger_sandbox::wire::{self, FrameBuffer, HEADER_BYTES};
use serde::{Serialize, de::DeserializeOwned};

/// Takes whole messages from bytes that arrive in pieces as large as the first byte
/// says, until they end or are refused.
pub fn arriving<T: DeserializeOwned>(bytes: &[u8], mut each: impl FnMut(T)) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let mut frames = FrameBuffer::default();
    for piece in rest.chunks(usize::from(*first).max(1)) {
        frames.push(piece);
        loop {
            match frames.take::<T>() {
                Ok(Some(message)) => each(message),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// Demands that a message is the same when it is sent again.
///
/// # Panics
/// If it is not: a finding.
pub fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T) {
    let frame = wire::encode(message).expect("what came in a frame fits into one");
    let again: T = wire::decode(&frame[HEADER_BYTES..]).expect("what we send is a message");
    assert_eq!(*message, again);
}

/// Parts of an input: a number, a length of two bytes, and so many bytes, or what is left.
#[derive(Debug)]
pub struct Records<'a>(pub &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let [number, high, low, rest @ ..] = self.0 else { return None };
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (taken, rest) = rest.split_at(length);
        self.0 = rest;
        Some((*number, taken))
    }
}

/// Empty directories in memory with a file beside them, until this is dropped.
#[derive(Debug)]
pub struct Stage(PathBuf);

/// Makes directories for one input.
///
/// # Panics
/// If there is no file system in memory.
#[must_use]
pub fn stage(directories: &[&str]) -> Stage {
    let root = PathBuf::from(format!("/dev/shm/outrigger-fuzz-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    for path in directories.iter().chain(&["beside"]) {
        fs::create_dir_all(root.join(path)).expect("there is a file system in memory");
    }
    fs::write(root.join("beside/id"), "as it was").expect("it can be written");
    Stage(root)
}

impl Stage {
    /// A path in it.
    #[must_use]
    pub fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Stage {
    /// Demands that what is beside the directories is as it was.
    fn drop(&mut self) {
        let beside = self.0.join("beside");
        let left = fs::read(beside.join("id")).expect("what is beside it is still there");
        assert_eq!(left, b"as it was");
        assert_eq!(count(&beside), 1, "something was put beside it");
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn count(dir: &Path) -> usize {
    fs::read_dir(dir).expect("what is beside it is still there").count()
}
