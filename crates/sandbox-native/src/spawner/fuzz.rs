//! Layers of images, for fuzzing: unpacked or refused, and nothing is outside.

use std::fs;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::layers::entries::{Owners, Tree};
use crate::image::stream::{BoundedReader, Decoder};
use crate::image::tar;
use crate::limits;

/// Length of a block of a tar archive, and where its checksum is.
const BLOCK: usize = 512;
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// Makes the checksum of every block right that may be a header, because chance never does.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for block in bytes.chunks_exact_mut(BLOCK).filter(|block| block[0] != 0) {
        block[CHECKSUM].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    bytes
}

fn unpack(bytes: &[u8], to: &Path) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(to, flags, Mode::empty()).expect("it was just made");
    let Ok(decoded) = Decoder::new(bytes) else { return };
    let mut archive =
        tar::Reader::new(BoundedReader::new(decoded, bytes.len() as u64, limits::FUZZED_BYTES_MAX));
    let _ = Tree::new(root, Owners::Caller).unpack(&mut archive);
}

/// Unpacks bytes as a layer into a directory beside others.
///
/// # Panics
/// If anything but that directory was changed: a finding.
pub fn layer(bytes: &[u8]) {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    let name = format!("/dev/shm/outrigger-fuzz-{}", std::process::id());
    let dir = Path::new(&name);
    let _ = fs::remove_dir_all(dir);
    let tree = dir.join("tree");
    fs::create_dir_all(&tree).expect("there is a file system in memory");
    fs::write(dir.join("beside"), "as it was").expect("it can be written");
    match mode % 2 {
        0 => unpack(bytes, &tree),
        _ => unpack(&mended(bytes), &tree),
    }
    let left = fs::read(dir.join("beside")).expect("what is beside it is still there");
    assert_eq!(left, b"as it was");
    let count = fs::read_dir(dir).expect("what is above it is still there").count();
    assert_eq!(count, 2, "something is beside it");
    // A layer may forbid a directory to its owner; only root gets past that.
    let _ = fs::remove_dir_all(dir);
}
