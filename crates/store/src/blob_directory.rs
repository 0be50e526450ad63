//! Blobs as files: `ab/<the 64 digits>` beneath one directory.
//!
//! A blob gets its name only after all of it is on disk, so a name never stands
//! for a part. Must never change a file that has a name, nor remove a young one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use outrigger_agent::Digest;
use outrigger_audit::files::{create_new, sync_directory};
use sha2::{Digest as _, Sha256};

use crate::files::{blocking, make_private, remove_leftovers};
use crate::port::{Blobs, StoredBlob};
use crate::{Error, limits};

/// What the names of temporary files begin with.
const TEMPORARY: &str = "new-";
/// How much is read at a time.
const PIECE_BYTES: usize = 128 << 10;

/// Blobs as files beneath a directory. Clones stand for the same one. Needs a
/// tokio runtime around it: files are read and written on its blocking threads.
#[derive(Debug, Clone)]
pub struct BlobDirectory {
    root: Arc<Path>,
    /// Prefixes whose directories are known to be durable, a bit each.
    durable: Arc<[AtomicU64; 4]>,
}

impl BlobDirectory {
    /// Opens a directory, makes it if it is not there (readable by its owner
    /// only), and removes what a crash left of unfinished blobs a day ago.
    ///
    /// # Errors
    /// What the disk says.
    pub fn open(root: &Path) -> Result<Self, Error> {
        make_private(root).map_err(|e| Error::io("making the blob directory", e))?;
        remove_leftovers(root, TEMPORARY);
        Ok(Self::at(root))
    }

    /// A directory that is only read, and need not be there.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.into(), durable: Arc::default() }
    }

    fn path_of(&self, digest: &Digest) -> Result<PathBuf, Error> {
        let name = digest.as_str();
        // A digest may come out of a file, and must not become a path elsewhere.
        let plain =
            name.len() == 64 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !plain {
            return Err(Error::damaged(format!("the name of blob {name:?}"), "it is no SHA-256"));
        }
        Ok(self.root.join(&name[..2]).join(name))
    }

    fn store(&self, reader: &mut dyn Read) -> Result<StoredBlob, Error> {
        let (path, mut file) = create_new(&self.root, TEMPORARY)
            .map_err(|e| Error::io("making a file for a blob", e))?;
        let stored = copy(reader, &mut file).and_then(|stored| {
            file.sync_all().map_err(|e| Error::io("writing a blob", e))?;
            let name = self.path_of(&stored.digest)?;
            self.publish(&path, &name).map_err(|e| Error::io("naming a blob", e))?;
            Ok(stored)
        });
        // Gone already where it got its name; what stays is removed by the next open.
        let _ = fs::remove_file(&path);
        stored
    }

    /// Gives a finished file its name, durably. A file that has the name already has the
    /// same content; it is replaced, which also mends one that was damaged.
    fn publish(&self, path: &Path, name: &Path) -> io::Result<()> {
        let parent = name.parent().expect("a blob's path has two names above the root");
        make_private(parent)?;
        fs::rename(path, name)?;
        sync_directory(parent)?;
        // One that is there may have been made by a process that died before this.
        let prefix = parent.file_name().and_then(|name| name.to_str());
        let number = prefix.and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
        let (word, bit) = (&self.durable[usize::from(number / 64)], 1 << (number % 64));
        if word.load(Ordering::Acquire) & bit == 0 {
            sync_directory(&self.root)?;
            word.fetch_or(bit, Ordering::AcqRel);
        }
        Ok(())
    }

    fn open_file(&self, digest: &Digest) -> Result<VerifyingReader<File>, Error> {
        let file = File::open(self.path_of(digest)?).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Error::NotFound { what: format!("blob {digest}") },
            _ => Error::io("opening a blob", e),
        })?;
        Ok(VerifyingReader { inner: file, hash: Sha256::new(), digest: digest.clone() })
    }

    /// Every blob, for a caller that may block. What has no blob's name is none.
    pub(crate) fn list(&self) -> Result<Vec<BlobFile>, Error> {
        let wrong = |e| Error::io("listing blobs", e);
        let mut listed = Vec::new();
        for prefix in entries(&self.root).map_err(wrong)? {
            for entry in entries(&prefix.path()).map_err(wrong)? {
                let name = entry.file_name();
                let digest = name.to_str().and_then(Digest::parse);
                let Some(digest) = digest.filter(|it| it.as_str() == name) else { continue };
                // It may go while it is looked at.
                let Ok(found) = entry.metadata() else { continue };
                let written = found.modified().map_err(wrong)?;
                listed.push(BlobFile { digest, bytes: found.len(), written });
            }
        }
        Ok(listed)
    }

    /// A reader of a blob, for a caller that may block; as [`Blobs::open`].
    pub(crate) fn open_blob(&self, digest: &Digest) -> Result<impl Read + use<>, Error> {
        self.open_file(digest)
    }

    /// The size of a blob, if it is there.
    pub(crate) fn size(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        match fs::metadata(self.path_of(digest)?) {
            Ok(found) => Ok(Some(found.len())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("looking at a blob", e)),
        }
    }

    /// Stores what must have that name, for a caller that may block.
    pub(crate) fn store_as(&self, digest: &Digest, reader: &mut dyn Read) -> Result<(), Error> {
        let stored = self.store(reader)?;
        if stored.digest == *digest {
            return Ok(());
        }
        // What it is instead is nobody's, and is let go like everything that is.
        Err(Error::damaged(format!("blob {digest}"), "its content is not that of its name"))
    }

    /// Removes a blob that is at least that old; whether it was.
    pub(crate) fn remove(&self, digest: &Digest, age: Duration) -> Result<bool, Error> {
        let path = self.path_of(digest)?;
        let written = fs::metadata(&path).and_then(|found| found.modified());
        let is_old = written.is_ok_and(|at| at.elapsed().is_ok_and(|now| now >= age));
        match if is_old { fs::remove_file(&path) } else { return Ok(false) } {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("removing a blob", e)),
            removed => Ok(removed.is_ok()),
        }
    }

    /// The bytes of a blob, checked, for a caller that may block.
    pub(crate) fn read(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let mut reader = self.open_file(digest)?;
        let size = reader.inner.metadata().map_err(|e| Error::io("opening a blob", e))?.len();
        Error::within("a blob (bytes)", size, limits::BLOB_MEMORY_BYTES_MAX)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        reader.read_to_end(&mut bytes).map_err(|e| unreadable(digest, e))?;
        Ok(bytes)
    }
}

/// What an error of reading a blob means: its content may not be that of its name.
pub(crate) fn unreadable(digest: &Digest, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData => Error::damaged(format!("blob {digest}"), error.to_string()),
        _ => Error::io("reading a blob", error),
    }
}

/// A blob that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobFile {
    pub(crate) digest: Digest,
    pub(crate) bytes: u64,
    /// When it was stored last.
    pub(crate) written: SystemTime,
}

/// What is in a directory; nothing if it is none.
fn entries(path: &Path) -> io::Result<Vec<fs::DirEntry>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match fs::read_dir(path) {
        Err(e) if matches!(e.kind(), NotFound | NotADirectory) => Ok(Vec::new()),
        entries => entries?.collect(),
    }
}

#[async_trait]
impl Blobs for BlobDirectory {
    async fn put(&self, bytes: Vec<u8>) -> Result<Digest, Error> {
        Error::within("a blob (bytes)", bytes.len() as u64, limits::BLOB_MEMORY_BYTES_MAX)?;
        let directory = self.clone();
        blocking(move || Ok(directory.store(&mut bytes.as_slice())?.digest)).await
    }

    async fn put_from(&self, mut reader: Box<dyn Read + Send>) -> Result<StoredBlob, Error> {
        let directory = self.clone();
        blocking(move || directory.store(&mut *reader)).await
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let (directory, digest) = (self.clone(), digest.clone());
        blocking(move || directory.read(&digest)).await
    }

    async fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        let (directory, digest) = (self.clone(), digest.clone());
        blocking(move || Ok(Box::new(directory.open_file(&digest)?) as Box<dyn Read + Send>)).await
    }
}

fn copy(reader: &mut dyn Read, file: &mut File) -> Result<StoredBlob, Error> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut bytes = 0;
    loop {
        let read = match reader.read(&mut piece) {
            Ok(0) => {
                return Ok(StoredBlob {
                    digest: Digest::from_sha256(hash.finalize().into()),
                    bytes,
                });
            }
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Error::io("reading a new blob", e)),
        };
        bytes += read as u64;
        Error::within("a blob (bytes)", bytes, limits::BLOB_BYTES_MAX)?;
        hash.update(&piece[..read]);
        file.write_all(&piece[..read]).map_err(|e| Error::io("writing a blob", e))?;
    }
}

/// A reader that compares what it gave with a digest, at the end.
struct VerifyingReader<R> {
    inner: R,
    hash: Sha256,
    digest: Digest,
}

impl<R: Read> Read for VerifyingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.hash.update(&into[..read]);
        if read > 0 || into.is_empty() {
            return Ok(read);
        }
        if Digest::from_sha256(self.hash.clone().finalize().into()) == self.digest {
            return Ok(0);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "its content is not that of its name"))
    }
}
