//! The key that signs checkpoints: made when it is first needed, readable by its
//! owner only.
//!
//! Must never print, log or hand out the private half. Whoever can read the file can
//! sign another log; what follows from that stands in SECURITY.md.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rand_core::{OsRng, RngCore};
use signed_note::{Note, StandardSigner};

use crate::checkpoint::VerifyingKey;
use crate::error::Error;
use crate::files::{create_new, sync_directory};
use crate::log::Frontier;

const KEY: &str = "key";
const PUBLIC: &str = "key.pub";
const DOING: &str = "making the key of the audit log";

/// Signs checkpoints.
pub struct Signer {
    signer: StandardSigner,
    key: VerifyingKey,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The public half in a directory, if there is one.
pub(crate) fn verifying(directory: &Path) -> Result<Option<VerifyingKey>, Error> {
    let path = directory.join(PUBLIC);
    let Some(text) = read(&path)? else { return Ok(None) };
    let broken = || Error::damaged(path.display().to_string(), "it holds no verifying key");
    VerifyingKey::parse(&text).map(Some).ok_or_else(broken)
}

impl Signer {
    /// Reads the key of a directory, or makes one. The directory above must exist.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the key can't be used; what the disk says.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(KEY);
        let damaged = |what: &str| Error::damaged(path.display().to_string(), what);
        let text = match read(&path)? {
            Some(text) => text,
            // A new one would make everything that the old one signed look forged.
            None if directory.join(PUBLIC).exists() => {
                return Err(damaged("it is missing, and its public half is there"));
            }
            None => {
                make(directory)?;
                read(&path)?.ok_or_else(|| damaged("it is missing"))?
            }
        };
        let mode = fs::metadata(&path).map_err(|e| Error::io(DOING, e))?.mode();
        if mode & 0o077 != 0 {
            return Err(damaged("others may read the key: its mode must be 600"));
        }
        let none = || damaged("it holds no signing key");
        let (private, public) = text.split_once('\n').ok_or_else(none)?;
        let signer = StandardSigner::new(private).map_err(|_| none())?;
        let own = Self { signer, key: VerifyingKey::parse(public).ok_or_else(none)? };
        if own.key.open(&own.sign(&Frontier::default())).is_err() {
            return Err(none());
        }
        match verifying(directory)? {
            None => place(directory, PUBLIC, own.key.as_str())?,
            Some(key) if key == own.key => {}
            Some(_) => return Err(damaged("the public half beside it is that of another key")),
        }
        Ok(own)
    }

    /// A signed checkpoint of a log.
    #[must_use]
    pub fn sign(&self, frontier: &Frontier) -> String {
        let said =
            tlog_tiles::Checkpoint::new(self.key.origin(), frontier.size(), frontier.root(), "");
        let text = said.expect("the name of a key is not empty").to_bytes();
        let mut note = Note::new(&text, &[]).expect("a checkpoint is plain text with lines");
        note.add_sigs(&[&self.signer]).expect("signing with Ed25519 does not fail");
        String::from_utf8(note.to_bytes()).expect("a note is text")
    }

    /// The public half.
    #[must_use]
    pub fn key(&self) -> &VerifyingKey {
        &self.key
    }
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("reading the key of the audit log", e)),
    }
}

/// Makes a key, in a file that has both halves so that they never part. If another
/// process was faster, its one stays.
fn make(directory: &Path) -> Result<(), Error> {
    let wrong = |e| Error::io(DOING, e);
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(wrong(e)),
        Ok(()) | Err(_) => {}
    }
    let lock = fs::File::open(directory).map_err(wrong)?;
    let exclusive = rustix::fs::FlockOperation::LockExclusive;
    rustix::fs::flock(&lock, exclusive).map_err(|e| wrong(e.into()))?;
    if directory.join(KEY).exists() {
        return Ok(());
    }
    let name = format!("outrigger/log/{:016x}", OsRng.next_u64());
    let (private, public) = signed_note::generate_key(&mut OsRng, &name);
    place(directory, KEY, &format!("{private}\n{public}"))?;
    let above = directory.parent().expect("it stands beneath the store's directory");
    sync_directory(above).map_err(wrong)
}

/// Puts a line or two into a new file, durably.
fn place(directory: &Path, name: &str, text: &str) -> Result<(), Error> {
    let wrong = |e| Error::io(DOING, e);
    let (path, mut file) = create_new(directory, "new-").map_err(wrong)?;
    let written = file.write_all(format!("{text}\n").as_bytes()).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| fs::rename(&path, directory.join(name)));
    let _ = fs::remove_file(&path);
    placed.and_then(|()| sync_directory(directory)).map_err(wrong)
}
