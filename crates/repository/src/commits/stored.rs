//! Which objects a person's repository has already.
//!
//! Owns looking a name up, in files of their own and in the indexes of packs
//! (gitformat-pack(5), version 2). Reads no object. Must never follow a link.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use outrigger_beneath::Dir;

use super::object::ObjectId;
use super::problem::CommitProblem;
use crate::{Error, limits};

/// The objects of a repository.
#[derive(Debug)]
pub(super) struct StoredObjects {
    objects: Dir,
    packs: Vec<PackIndex>,
}

/// The names in one pack, sorted, of which it is known how many begin with at most each byte.
#[derive(Debug)]
struct PackIndex {
    file: File,
    fanout: Vec<u32>,
}

/// How an index of version 2 begins.
const BEGINNING: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// Where its names begin.
const NAMES_AT: u64 = 8 + 256 * 4;

impl StoredObjects {
    /// Of a directory `objects`, whose path is for errors.
    pub(super) fn open(objects: Dir, place: &Path) -> Result<Self, Error> {
        let folder = Path::new("pack");
        let Ok(dir) = objects.dir(folder) else { return Ok(Self { objects, packs: Vec::new() }) };
        let mut packs = Vec::new();
        for name in dir.names().map_err(Error::unreadable(place, folder))? {
            let name = PathBuf::from(name.map_err(Error::unreadable(place, folder))?);
            if name.extension().is_none_or(|end| end != "idx") {
                continue;
            }
            // What is no index that can be read names nothing.
            packs.extend(dir.file(&name).ok().and_then(PackIndex::read));
            if packs.len() > limits::PACKS_MAX {
                return Err(Error::Commits(CommitProblem::Packs(limits::PACKS_MAX)));
            }
        }
        Ok(Self { objects, packs })
    }

    /// Whether it has an object.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        let name = id.to_string();
        let (folder, rest) = name.split_at(2);
        let stat = self.objects.stat(&Path::new(folder).join(rest));
        let is_file = stat.is_ok_and(|stat| stat.is_some_and(|stat| stat.is_file()));
        is_file || self.packs.iter().any(|pack| pack.has(id))
    }
}

impl PackIndex {
    fn read(file: File) -> Option<Self> {
        let mut bytes = [0; NAMES_AT as usize];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let counts = bytes.strip_prefix(&BEGINNING)?.chunks_exact(4);
        let fanout =
            counts.map(|four| four.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
        Some(Self { file, fanout: fanout.collect() })
    }

    fn has(&self, id: &ObjectId) -> bool {
        let first = usize::from(id.0[0]);
        let mut low = first.checked_sub(1).map_or(0, |before| self.fanout[before]);
        let mut high = self.fanout[first];
        while low < high {
            let middle = low + (high - low) / 2;
            let mut name = [0; 20];
            let at = NAMES_AT + u64::from(middle) * name.len() as u64;
            if self.file.read_exact_at(&mut name, at).is_err() {
                return false;
            }
            match name.cmp(&id.0) {
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        false
    }
}
