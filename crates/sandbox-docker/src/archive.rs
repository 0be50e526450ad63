//! Archives of disks: counted, and written again for other owners.
//!
//! Owns the digest of a disk: over every path with its type, mode, owner, target and
//! contents, in no order, and without times, which archives of the daemon keep to the
//! second only. What is in an archive was written by commands and is data.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use outrigger_sandbox::each_piece;
use sha2::{Digest as _, Sha256};

use crate::maker;
use crate::user::KEPT;

/// Who owns the files of the disk: what is this user's in what is read is that one's in
/// what is written, and [`KEPT`]'s in the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owners {
    pub(crate) read: u32,
    pub(crate) written: u32,
}

impl Owners {
    /// The owner of an entry, where files of the disk's user are this one's.
    fn of(self, header: &tar::Header, user: u32) -> io::Result<u64> {
        let found = header.uid()?;
        Ok(if found == u64::from(self.read) { user.into() } else { found })
    }
}

/// The digest of one entry.
pub(crate) type Sum = [u8; 32];

/// The archive that is written.
pub(crate) type Out<W> = tar::Builder<W>;

/// A path without what daemons put around it.
fn bare(path: &[u8]) -> &[u8] {
    let path = path.strip_prefix(b"./").unwrap_or(path);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    if path == b"." { b"" } else { path }
}

/// Whether a path is that of the directory that an archive holds, or below it.
fn is_inside(path: &[u8]) -> bool {
    let rest = path.strip_prefix(maker::IN_ARCHIVE.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Reads an entry and counts what was read.
struct HashingReader<'a, R> {
    entry: R,
    sum: &'a mut Sha256,
}

impl<R: Read> Read for HashingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.entry.read(buffer)?;
        self.sum.update(&buffer[..length]);
        Ok(length)
    }
}

/// Counts the entries of an archive, and writes them for their next owner.
pub(crate) fn count<W: Write>(
    archive: impl Read,
    owners: Owners,
    mut out: Option<&mut Out<W>>,
) -> io::Result<Vec<Sum>> {
    let mut sums = Vec::new();
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = bare(&entry.path_bytes()).to_owned();
        let (header, bytes) = (entry.header().clone(), entry.size());
        let mut target = entry.link_name_bytes().unwrap_or_default().into_owned();
        let is_hard = header.entry_type().is_hard_link();
        if is_hard {
            // That of another name for a file is a path of the archive too.
            target = bare(&target).to_owned();
        }
        if !is_inside(&path) || (is_hard && !is_inside(&target)) {
            return Err(io::Error::other("an entry is not within the disk"));
        }
        let mut sum = sum(&header, owners.of(&header, KEPT)?, &path, &target)?;
        let contents = HashingReader { entry: &mut entry, sum: &mut sum };
        match &mut out {
            None => drop(each_piece(contents, |_| {})?),
            Some(out) => {
                let owner = owners.of(&header, owners.written)?;
                write(out, (&header, owner, bytes), (&path, &target), contents)?;
            }
        }
        // Where the volumes are seen is not theirs.
        if path != maker::IN_ARCHIVE.as_bytes() {
            sums.push(sum.finalize().into());
        }
    }
    // The end of the archive may be padded; the daemon waits until all of it is read.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(sums)
}

/// The digest of an entry, to which its contents are yet to be added.
fn sum(header: &tar::Header, owner: u64, path: &[u8], target: &[u8]) -> io::Result<Sha256> {
    let mut sum = Sha256::new();
    let mut add = |bytes: &[u8]| {
        sum.update((bytes.len() as u64).to_le_bytes());
        sum.update(bytes);
    };
    add(path);
    add(target);
    add(&[header.entry_type().as_byte()]);
    // Daemons lose the set-id bits of files with several names, by giving them an
    // owner once for each name; see chown(2). Inside they are without effect.
    let bits = if header.entry_type().is_dir() { 0o7777 } else { 0o1777 };
    for number in [u64::from(header.mode()? & bits), owner, header.gid()?, header.size()?] {
        add(&number.to_le_bytes());
    }
    Ok(sum)
}

/// Writes an entry. Attributes beside those of the header are none
/// that a disk has.
fn write<W: Write>(
    out: &mut Out<W>,
    (read, owner, bytes): (&tar::Header, u64, u64),
    (path, target): (&[u8], &[u8]),
    contents: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(read.entry_type());
    header.set_mode(read.mode()?);
    header.set_uid(owner);
    header.set_gid(read.gid()?);
    header.set_mtime(read.mtime()?);
    header.set_size(bytes);
    if !target.is_empty() && header.set_link_name_literal(target).is_err() {
        long_target(out, target)?;
    }
    out.append_data(&mut header, Path::new(OsStr::from_bytes(path)), contents)
}

/// Says the target of the entry that comes next, which is too long for a header: GNU's
/// way, see tar(5).
fn long_target<W: Write>(out: &mut Out<W>, target: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongLink);
    header.set_size(target.len() as u64 + 1);
    out.append_data(&mut header, "././@LongLink", [target, b"\0"].concat().as_slice())
}

/// The digest of a disk, in hexadecimal.
pub(crate) fn digest(mut sums: Vec<Sum>) -> String {
    sums.sort_unstable();
    let mut all = Sha256::new();
    sums.iter().for_each(|sum| all.update(sum));
    all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tar::EntryType as Type;

    /// An entry: its path, its target, its contents, and what else is said of it.
    type Entry<'a> = (&'a str, &'a str, &'a [u8], fn(&mut tar::Header));

    fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, target, contents, change) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_uid(1000);
            header.set_gid(1000);
            header.set_size(contents.len() as u64);
            change(&mut header);
            if target.len() > 100 {
                long_target(&mut builder, target.as_bytes()).unwrap();
            } else if !target.is_empty() {
                header.set_link_name_literal(target).unwrap();
            }
            // As it is, because some daemons give paths that begin with a slash.
            let bytes = &mut header.as_old_mut().name;
            let short = path.len().min(bytes.len());
            bytes[..short].copy_from_slice(&path.as_bytes()[..short]);
            header.set_cksum();
            builder.append(&header, *contents).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn plain(_: &mut tar::Header) {}

    fn dir(header: &mut tar::Header) {
        header.set_entry_type(Type::Directory);
    }

    fn hard(header: &mut tar::Header) {
        header.set_entry_type(Type::Link);
    }

    fn soft(header: &mut tar::Header) {
        header.set_entry_type(Type::Symlink);
    }

    const SAME: Owners = Owners { read: KEPT, written: KEPT };

    fn counted(archive: &[u8]) -> String {
        digest(count(archive, SAME, None::<&mut Out<io::Sink>>).unwrap())
    }

    /// An archive as it is copied for these owners, and the digest that was taken on the way.
    fn carried(archive: &[u8], owners: Owners) -> (String, Vec<u8>) {
        let mut out = tar::Builder::new(Vec::new());
        let sums = count(archive, owners, Some(&mut out)).unwrap();
        (digest(sums), out.into_inner().unwrap())
    }

    #[test]
    fn a_digest_is_of_all_but_times_and_order() {
        let sum = |entries: &[Entry<'_>]| {
            counted(&archive(&[&[("disk/", "", &b""[..], dir as _)], entries].concat()))
        };
        let (f, g): (Entry<'_>, Entry<'_>) =
            (("disk/f", "", b"x", plain), ("disk/g", "", b"x", plain));
        let base = sum(&[f]);
        assert_eq!(base, sum(&[("disk/f", "", b"x", |header| header.set_mtime(7))]));
        let others: [Entry<'_>; 5] = [
            g,
            ("disk/f", "", b"y", plain),
            ("disk/f", "", b"x", |header| header.set_mode(0o755)),
            ("disk/f", "", b"x", |header| header.set_uid(0)),
            ("disk/f", "", b"x", |header| header.set_gid(0)),
        ];
        for other in others {
            assert_ne!(base, sum(&[other]));
        }
        assert_eq!(sum(&[f, g]), sum(&[g, f]));
        assert_ne!(sum(&[f, g]), base);
    }

    #[test]
    fn what_belongs_to_one_sandbox_belongs_to_the_next() {
        const ONE: u32 = 0x7000_0001;
        const TWO: u32 = 0x7fee_eeee;
        let disk = |owner| {
            let mut entries = vec![("disk/", "", &b""[..], dir as fn(&mut tar::Header))];
            entries.push(("disk/f", "", b"x", owner));
            entries.push(("disk/roots", "", b"x", |header| header.set_uid(0)));
            archive(&entries)
        };
        let read = disk(|header| header.set_uid(ONE.into()));
        let (sum, kept) = carried(&read, Owners { read: ONE, written: KEPT });
        let (same, out) = carried(&kept, Owners { read: KEPT, written: TWO });
        assert_eq!((&same, &counted(&kept)), (&sum, &sum));
        let mut out = tar::Archive::new(&out[..]);
        let owners: Vec<u64> =
            out.entries().unwrap().map(|e| e.unwrap().header().uid().unwrap()).collect();
        assert_eq!(owners, [u64::from(TWO), TWO.into(), 0]);
    }

    #[test]
    fn what_is_written_again_is_the_same_however_long_its_targets() {
        let long = "l".repeat(150);
        for before in ["", "/", "./"] {
            let at = |path: &str| format!("{before}disk/{path}");
            let read = archive(&[
                (&at(""), "", b"", dir),
                (&at("d/"), "", b"", dir),
                (&at("d/f"), "", b"x", plain),
                (&at("d/h"), &at("d/f"), b"", hard),
                (&at("d/s"), "//a/./b", b"", soft),
                (&at("d/t"), &long, b"", soft),
            ]);
            let (sum, out) = carried(&read, SAME);
            assert_eq!((counted(&read), counted(&out)), (sum.clone(), sum), "{before}");
        }
    }

    #[test]
    fn where_a_disk_is_seen_is_no_part_of_it() {
        let empty = digest(Vec::new());
        let seen = archive(&[("disk/", "", b"", dir)]);
        assert_eq!(counted(&seen), empty);
        let home = archive(&[("disk/", "", b"", dir), ("disk/home/", "", b"", dir)]);
        assert_ne!(counted(&home), empty);
    }

    #[test]
    fn garbage_and_what_is_elsewhere_are_errors() {
        let fails = |bytes: &[u8]| count(bytes, SAME, None::<&mut Out<io::Sink>>).is_err();
        assert!(fails(&[0xff; 4096]));
        for path in ["elsewhere/f", "diskette", "f"] {
            assert!(fails(&archive(&[("disk/", "", b"", dir), (path, "", b"", plain)])), "{path}");
        }
    }
}
