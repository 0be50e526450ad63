//! A pack with its index, as git keeps many objects in two files (gitformat-pack(5)).
//!
//! Owns their bytes, and that they appear whole or not at all: the pack first, and git looks
//! only at those that have an index.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use outrigger_beneath::{self as beneath, Dir, Draft};
use sha1::{Digest, Sha1};

use super::object::{Object, ObjectId};

/// One that is not written yet.
#[derive(Debug)]
pub(super) struct PackFile {
    name: String,
    pack: Vec<u8>,
    index: Vec<u8>,
}

impl PackFile {
    /// Of objects, each of which comes once, sorted by their names.
    pub(super) fn of(objects: &[(ObjectId, &Object)]) -> Self {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend(number(objects.len()));
        let (mut checks, mut places) = (Vec::new(), Vec::new());
        for (_, object) in objects {
            let begin = pack.len();
            header(&mut pack, object);
            let mut encoder = ZlibEncoder::new(&mut pack, Compression::default());
            let written = encoder.write_all(&object.contents).and_then(|()| encoder.finish());
            written.expect("writing to memory never fails");
            let mut crc = Crc::new();
            crc.update(&pack[begin..]);
            checks.extend(crc.sum().to_be_bytes());
            places.extend(number(begin));
        }
        let whole: [u8; 20] = Sha1::digest(&pack).into();
        pack.extend(whole);
        let mut index = b"\xfftOc\0\0\0\x02".to_vec();
        for byte in 0..=u8::MAX {
            index.extend(number(objects.iter().filter(|(id, _)| id.0[0] <= byte).count()));
        }
        index.extend(objects.iter().flat_map(|(id, _)| id.0));
        index.extend(checks);
        index.extend(places);
        index.extend(whole);
        let digest: [u8; 20] = Sha1::digest(&index).into();
        index.extend(digest);
        Self { name: format!("pack-{}", ObjectId(whole)), pack, index }
    }

    /// Puts both into the folder of packs.
    pub(super) fn write(&self, folder: &Dir) -> io::Result<()> {
        let put = |end: &str, bytes: &[u8]| -> io::Result<()> {
            let mut draft = Draft::begin(folder, &self.path(end), false).map_err(io_error)?;
            draft.file().write_all(bytes)?;
            let mut permissions = draft.file().metadata()?.permissions();
            permissions.set_readonly(true);
            draft.file().set_permissions(permissions)?;
            draft.file().sync_all()?;
            draft.put().map_err(io_error)
        };
        let written = put("pack", &self.pack).and_then(|()| put("idx", &self.index));
        if written.is_err() {
            self.remove(folder);
        }
        written.and_then(|()| folder.sync().map_err(io_error))
    }

    /// Takes both away again.
    pub(super) fn remove(&self, folder: &Dir) {
        for end in ["idx", "pack"] {
            // What is left is objects that nothing names, which git collects.
            let _ = folder.remove_file(&self.path(end));
        }
    }

    fn path(&self, end: &str) -> PathBuf {
        Path::new(&self.name).with_extension(end)
    }
}

/// What it is and how long, seven bits at a time but for the first four.
fn header(pack: &mut Vec<u8>, object: &Object) {
    let mut length = object.contents.len();
    let mut byte = object.kind.number() << 4 | (length & 15) as u8;
    length >>= 4;
    while length > 0 {
        pack.push(byte | 0x80);
        byte = (length & 0x7f) as u8;
        length >>= 7;
    }
    pack.push(byte);
}

/// Four bytes, the highest first.
fn number(value: usize) -> [u8; 4] {
    u32::try_from(value).expect("the bytes of all objects are limited").to_be_bytes()
}

/// What the kernel said.
pub(super) fn io_error(error: beneath::Error) -> io::Error {
    match error {
        beneath::Error::Io { source, .. } => source,
        other => io::Error::new(io::ErrorKind::InvalidInput, crate::error::reason(&other)),
    }
}
