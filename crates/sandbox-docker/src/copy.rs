//! Disks as archives: copied from one set of volumes to another, and summed up.
//!
//! Owns the digest of a disk: over every path with its type, mode, owner, target and
//! contents, in no order, and without times, which archives of the daemon keep to the
//! second only. What is in an archive was written by commands and is data.

use std::io::{self, Read};
use std::path::Path;

use bollard::query_parameters::{DownloadFromContainerOptions, UploadToContainerOptions};
use futures_util::{StreamExt, TryStreamExt};
use outrigger_sandbox::{Error, each_piece};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use crate::engine::Engine;
use crate::{limits, maker, names};

/// Pieces of an archive as they come, as something to be read on a thread.
struct Pieces<B> {
    pieces: mpsc::Receiver<B>,
    piece: Option<B>,
    read: usize,
}

impl<B: AsRef<[u8]>> Read for Pieces<B> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(piece) = &self.piece {
                let rest = &piece.as_ref()[self.read..];
                if !rest.is_empty() {
                    let length = rest.len().min(buffer.len());
                    buffer[..length].copy_from_slice(&rest[..length]);
                    self.read += length;
                    return Ok(length);
                }
            }
            (self.piece, self.read) = (self.pieces.blocking_recv(), 0);
            if self.piece.is_none() {
                return Ok(0);
            }
        }
    }
}

/// Whether a path of an archive is one of `without`, below the disk itself.
fn is_one_of(path: &Path, without: &[&str]) -> bool {
    let below = path.strip_prefix(maker::IN_ARCHIVE).unwrap_or(path);
    without.iter().any(|name| below == Path::new(name))
}

/// The digest of an archive, in hexadecimal.
fn digest(archive: impl Read) -> io::Result<String> {
    let mut entries = Vec::new();
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if is_one_of(&entry.path()?, &[""]) {
            // Where the volumes are seen, which is not theirs.
            continue;
        }
        let mut sum = Sha256::new();
        let mut add = |bytes: &[u8]| {
            sum.update((bytes.len() as u64).to_le_bytes());
            sum.update(bytes);
        };
        let path = entry.path_bytes();
        add(path.strip_suffix(b"/").unwrap_or(&path));
        add(&entry.link_name_bytes().unwrap_or_default());
        let header = entry.header();
        add(&[header.entry_type().as_byte()]);
        // Daemons lose the set-id bits of files with several names, by giving them an
        // owner once for each name; see chown(2). Inside they are without effect.
        let bits = if header.entry_type().is_dir() { 0o7777 } else { 0o1777 };
        for number in
            [u64::from(header.mode()? & bits), header.uid()?, header.gid()?, header.size()?]
        {
            add(&number.to_le_bytes());
        }
        each_piece(&mut entry, |piece| sum.update(piece))?;
        entries.push(sum.finalize());
    }
    // The end of the archive may be padded; the daemon waits until all of it is read.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    entries.sort_unstable();
    let mut sum = Sha256::new();
    entries.iter().for_each(|entry| sum.update(entry));
    Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads the disk that one maker sees, and writes it to the one that another sees.
/// Gives the digest of what was read. Two makers, because the daemon does one thing
/// at a time with a container.
pub(crate) async fn copy(engine: &Engine, from: &str, to: Option<&str>) -> Result<String, Error> {
    let (sender, pieces) = mpsc::channel(limits::COPY_PIECES_MAX);
    let summing =
        tokio::task::spawn_blocking(move || digest(Pieces { pieces, piece: None, read: 0 }));
    let client = engine.patient();
    let options = DownloadFromContainerOptions { path: maker::DISK.to_owned() };
    let stream = client.download_from_container(from, Some(options)).then(move |piece| {
        let sender = sender.clone();
        async move {
            let piece = piece.map_err(io::Error::other)?;
            // A sum that gave up says why below.
            let _ = sender.send(piece.clone()).await;
            Ok::<_, io::Error>(piece)
        }
    });
    match to {
        Some(to) => {
            let path = maker::ABOVE.to_owned();
            let options = UploadToContainerOptions { path, ..Default::default() };
            let body = bollard::body_try_stream(stream);
            let put = engine.patient().upload_to_container(to, Some(options), body).await;
            put.map_err(|failure| engine.failed("copying a disk", &failure))?;
        }
        None => {
            let read = std::pin::pin!(stream).try_for_each(|_| async { Ok(()) }).await;
            read.map_err(|error| Error::Backend(format!("reading a disk: {error}")))?;
        }
    }
    let failed = |error: &dyn std::fmt::Display| {
        Error::Backend(format!("reading the archive of a disk: {error}"))
    };
    summing.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
}

/// An archive with the empty disk of a new sandbox.
pub(crate) fn fresh_disk(user: u64) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (part, _, mode) in names::DISK {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(mode);
        header.set_uid(user);
        header.set_gid(user);
        header.set_size(0);
        let path = format!("{}/{part}/", maker::IN_ARCHIVE);
        archive.append_data(&mut header, path, io::empty())?;
    }
    archive.into_inner()
}

/// An archive with one program in the directory where a store is seen.
pub(crate) fn program(name: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o555);
    header.set_size(bytes.len() as u64);
    let path = format!("{}/{name}", maker::IN_ARCHIVE);
    archive.append_data(&mut header, path, bytes)?;
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(change: impl Fn(&mut tar::Header), name: &str, contents: &[u8]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_uid(1000);
        header.set_gid(1000);
        header.set_size(contents.len() as u64);
        change(&mut header);
        builder.append_data(&mut header, name, contents).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn a_digest_is_of_all_but_times_and_order() {
        let plain = |_: &mut tar::Header| {};
        let sum = |bytes: &[u8]| digest(bytes).unwrap();
        let base = sum(&archive(plain, "disk/f", b"x"));
        assert_eq!(base, sum(&archive(|header| header.set_mtime(7), "disk/f", b"x")));
        let others = [
            archive(plain, "disk/g", b"x"),
            archive(plain, "disk/f", b"y"),
            archive(|header| header.set_mode(0o755), "disk/f", b"x"),
            archive(|header| header.set_uid(0), "disk/f", b"x"),
            archive(|header| header.set_gid(0), "disk/f", b"x"),
        ];
        for other in others {
            assert_ne!(base, sum(&other));
        }
        let join = |first: &[u8], second: &[u8]| {
            // Two blocks of zeroes end an archive.
            sum(&[&first[..first.len() - 1024], second].concat())
        };
        let (f, g) = (archive(plain, "disk/f", b"x"), archive(plain, "disk/g", b"x"));
        assert_eq!(join(&f, &g), join(&g, &f));
        assert_ne!(join(&f, &g), base);
    }

    #[test]
    fn where_a_disk_is_seen_is_no_part_of_it() {
        let empty = digest(&b""[..]).unwrap();
        let dir = archive(|header| header.set_entry_type(tar::EntryType::Directory), "disk/", b"");
        assert_eq!(digest(&dir[..]).unwrap(), empty);
    }

    #[test]
    fn garbage_is_an_error() {
        assert!(digest(&[0xff; 4096][..]).is_err());
    }
}
