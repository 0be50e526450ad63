//! Git's index: which files are tracked, in the format that
//! <https://git-scm.com/docs/index-format> describes.
//!
//! Owns reading it, versions 2 to 4, whatever made the hashes in it. Takes names and modes
//! alone, and believes neither. Must never read an object, nor anything but the bytes that
//! it is given.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::names;

/// What is tracked at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexEntryKind {
    /// A file, or a link.
    File,
    /// The commit of another repository.
    Submodule,
}

/// What is wrong with an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexProblem {
    /// It does not begin as an index does.
    #[error("it is none")]
    NoIndex,
    /// A version that is not known.
    #[error("version {0} of it is not known")]
    Version(u32),
    /// It ends in the middle, or its parts don't fit.
    #[error("it is damaged")]
    Damaged,
    /// A path that no repository may hold.
    #[error("it names `{0}`, which no repository may hold")]
    Path(String),
    /// Most of it is in another file.
    #[error("it is split in two files")]
    Split,
    /// An extension without which it means something else.
    #[error("it has the extension `{0}`, which is not known")]
    Extension(String),
}

/// Bytes of a hash: SHA-1, SHA-256. The index does not say which it is.
const HASHES: [usize; 2] = [20, 32];
/// An entry's times, numbers and mode, before its hash.
const STAT_BYTES: usize = 40;
/// Where among them the mode is.
const MODE_AT: usize = 24;
/// The longest path that a kernel takes.
const PATH_BYTES: usize = 4_096;

/// Visits everything that is tracked. A path can come more than once.
///
/// # Errors
/// If it is no index, or the visitor said so.
pub(crate) fn each<E>(
    bytes: &[u8],
    mut visit: impl FnMut(&Path, IndexEntryKind) -> Result<(), E>,
) -> Result<Result<(), E>, IndexProblem> {
    let whole = |hash: &usize| scan(bytes, *hash, |_, _| Ok::<_, ()>(())).is_ok();
    let hash = HASHES.iter().find(|hash| whole(hash)).unwrap_or(&HASHES[0]);
    scan(bytes, *hash, |path, kind| visit(path, kind))
}

fn scan<E>(
    bytes: &[u8],
    hash: usize,
    mut visit: impl FnMut(&Path, IndexEntryKind) -> Result<(), E>,
) -> Result<Result<(), E>, IndexProblem> {
    let mut input = Input(bytes.strip_prefix(b"DIRC").ok_or(IndexProblem::NoIndex)?);
    let version = input.number().ok_or(IndexProblem::Damaged)?;
    if !(2..=4).contains(&version) {
        return Err(IndexProblem::Version(version));
    }
    let count = input.number().ok_or(IndexProblem::Damaged)?;
    // The hash of all of it stands last. Whether it is right says only that nobody tried.
    let body = input.0.len().checked_sub(hash).ok_or(IndexProblem::Damaged)?;
    input.0 = &input.0[..body];
    let (mut path, mut bad) = (Vec::new(), None);
    let mut result = Ok(());
    for _ in 0..count {
        let mode = entry(&mut input, version, hash, &mut path).ok_or(IndexProblem::Damaged)?;
        let kind = match mode >> 12 {
            0o10 | 0o12 => IndexEntryKind::File,
            0o16 => IndexEntryKind::Submodule,
            // A folder of which nothing is checked out.
            0o4 => continue,
            _ => return Err(IndexProblem::Damaged),
        };
        let named = Path::new(OsStr::from_bytes(&path));
        if !names::is_tracked_path(&path) {
            bad = bad.or_else(|| Some(IndexProblem::Path(named.display().to_string())));
        } else if result.is_ok() {
            result = visit(named, kind);
        }
    }
    // Half of a split index has entries without a path.
    extensions(&mut input)?;
    bad.map_or(Ok(result), Err)
}

/// Reads an entry's path over the one before it, and gives its mode.
fn entry(input: &mut Input<'_>, version: u32, hash: usize, path: &mut Vec<u8>) -> Option<u32> {
    let before = input.0.len();
    let stat = input.take(STAT_BYTES)?;
    let mode = u32::from_be_bytes(stat[MODE_AT..MODE_AT + 4].try_into().ok()?);
    input.take(hash)?;
    let flags = u16::from_be_bytes(input.take(2)?.try_into().ok()?);
    if flags & 0x4000 != 0 {
        if version == 2 {
            return None;
        }
        input.take(2)?;
    }
    // A path says of itself what it has in common with the one before it.
    let common = if version == 4 { path.len().checked_sub(input.varint()?)? } else { 0 };
    let length = input.0.iter().take(PATH_BYTES + 1).position(|byte| *byte == 0)?;
    path.truncate(common);
    path.extend_from_slice(input.take(length)?);
    let told = usize::from(flags & 0xfff);
    if path.len() > PATH_BYTES || told != path.len().min(0xfff) {
        return None;
    }
    // It ends with a zero; before version 4 with as many as make it a multiple of eight.
    let read = before - input.0.len();
    let zeros = if version == 4 { 1 } else { 8 - read % 8 };
    input.take(zeros)?.iter().all(|byte| *byte == 0).then_some(mode)
}

/// One that begins with a capital can be passed over.
fn extensions(input: &mut Input<'_>) -> Result<(), IndexProblem> {
    while !input.0.is_empty() {
        let name = input.take(4).ok_or(IndexProblem::Damaged)?;
        let length = input.number().and_then(|length| usize::try_from(length).ok());
        length.and_then(|length| input.take(length)).ok_or(IndexProblem::Damaged)?;
        match name {
            b"link" => return Err(IndexProblem::Split),
            // There are folders of which nothing is checked out.
            b"sdir" => {}
            name if name[0].is_ascii_uppercase() => {}
            name => return Err(IndexProblem::Extension(name.escape_ascii().to_string())),
        }
    }
    Ok(())
}

/// What is left to be read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// As git writes offsets: seven bits a byte, the highest first, each further byte one more.
    fn varint(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        loop {
            let byte = self.take(1)?[0];
            value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            value = value.checked_add(1)?;
        }
    }
}
