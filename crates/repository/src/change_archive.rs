//! Changes as an archive, with which they are written back on another machine: each file as it
//! was beneath `before/`, and as it is beneath `after/`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File as OpenFile;
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use outrigger_sandbox::EntryKind;

use crate::error::Error;
use crate::scratch::nameless;
use crate::{Change, File, limits};

/// Writes changes into an archive without a name, at its beginning.
///
/// # Errors
/// If it can't be written.
pub fn write_changes(changes: &[Change], scratch: &Path) -> Result<OpenFile, Error> {
    let written = || {
        let mut builder = tar::Builder::new(nameless(scratch)?);
        for change in changes {
            for (side, file) in [("before", &change.before), ("after", &change.after)] {
                if let Some(file) = file {
                    add(&mut builder, &format!("{side}/{}", change.path), file)?;
                }
            }
        }
        let mut archive = builder.into_inner()?;
        archive.rewind()?;
        Ok(archive)
    };
    written().map_err(Error::Archive)
}

fn add(builder: &mut tar::Builder<OpenFile>, path: &str, file: &File) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_mode(if file.executable { 0o755 } else { 0o644 });
    if file.kind == EntryKind::Link {
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        let target = Path::new(OsStr::from_bytes(&file.contents));
        return builder.append_link(&mut header, path, target);
    }
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(file.contents.len() as u64);
    builder.append_data(&mut header, path, file.contents.as_slice())
}

/// Reads changes out of such an archive, in the order of their paths. Where their paths lead is
/// for [`apply`](crate::apply) to judge.
///
/// # Errors
/// If it is no such archive, or too large.
pub fn read_changes(archive: impl Read) -> Result<Vec<Change>, Error> {
    let mut changes: BTreeMap<String, Change> = BTreeMap::new();
    let mut left = limits::CHANGES_BYTES_MAX;
    let wrong = |what: &str| Error::Archive(io::Error::new(io::ErrorKind::InvalidData, what));
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(Error::Archive)? {
        let mut entry = entry.map_err(Error::Archive)?;
        left = left.checked_sub(entry.size()).ok_or_else(|| wrong("it is too large"))?;
        if changes.len() >= limits::CHANGES_MAX {
            return Err(wrong("it has too many files"));
        }
        let path = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| wrong("a path is no text"))?;
        let (side, path) = path.split_once('/').ok_or_else(|| wrong("a path has no side"))?;
        let kind = match entry.header().entry_type() {
            tar::EntryType::Regular => EntryKind::File,
            tar::EntryType::Symlink => EntryKind::Link,
            _ => return Err(wrong("it has more than files and links")),
        };
        let executable =
            kind == EntryKind::File && entry.header().mode().map_err(Error::Archive)? & 0o100 != 0;
        let contents = if kind == EntryKind::Link {
            entry.link_name_bytes().unwrap_or_default().into_owned()
        } else {
            let mut contents = Vec::new();
            entry.read_to_end(&mut contents).map_err(Error::Archive)?;
            contents
        };
        let change = changes.entry(path.to_owned()).or_insert_with(|| Change {
            path: path.to_owned(),
            before: None,
            after: None,
        });
        let place = match side {
            "before" => &mut change.before,
            "after" => &mut change.after,
            _ => return Err(wrong("a path has no side")),
        };
        *place = Some(File { kind, executable, contents });
    }
    Ok(changes.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_through_as_they_are() {
        let scratch = tempfile::tempdir().unwrap();
        let file = |text: &str, executable| {
            Some(File { kind: EntryKind::File, executable, contents: text.as_bytes().to_vec() })
        };
        let link =
            Some(File { kind: EntryKind::Link, executable: false, contents: b"../x".to_vec() });
        let long = format!("{}/b", "d".repeat(200));
        let change = |path: &str, before, after| Change { path: path.to_owned(), before, after };
        let mut changes = vec![
            change("a", file("one", false), file("two", true)),
            change("gone", file("", false), None),
            change("l", None, link),
            change(&long, None, file("\0\u{e9}", false)),
        ];
        let archive = write_changes(&changes, scratch.path()).unwrap();
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!(read_changes(archive).unwrap(), changes);
        assert_eq!(read_changes(&[][..]).unwrap(), []);
        assert!(read_changes(&[1; 1_024][..]).is_err());
    }
}
