//! Where everything is in the state directory.
//!
//! Owns the paths and the trash: what is to be deleted is first renamed there, so
//! that its name is free at once and a crash leaves nothing half deleted in sight.

pub(crate) mod cleaner;

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use outrigger_sandbox::{SandboxId, SnapshotId};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use super::layers::layer::Layer;
use super::names::random_name;
use super::tree::remove;
use super::tree::walk::{self, TreeState};
use crate::limits;

/// The state directory.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    state: PathBuf,
}

impl Store {
    pub(crate) fn new(state: PathBuf) -> Self {
        Self { state }
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.state.join("sandboxes")
    }

    pub(crate) fn disk(&self, id: &SandboxId) -> DiskDir {
        DiskDir(self.sandboxes().join(id.as_str()))
    }

    pub(crate) fn layers(&self) -> PathBuf {
        self.state.join("layers")
    }

    pub(crate) fn layer(&self, layer: &Layer) -> PathBuf {
        self.layers().join(layer.as_str())
    }

    pub(crate) fn tree(&self, layer: &Layer) -> PathBuf {
        self.layer(layer).join("tree")
    }

    pub(crate) fn snapshots(&self) -> PathBuf {
        self.state.join("snapshots")
    }

    pub(crate) fn snapshot(&self, name: &SnapshotId) -> PathBuf {
        self.snapshots().join(name.as_str())
    }

    pub(crate) fn templates(&self) -> PathBuf {
        self.state.join("templates")
    }

    /// Layers of images that are being unpacked.
    pub(crate) fn incoming(&self) -> PathBuf {
        self.state.join("incoming")
    }

    /// An empty directory to mount on.
    pub(crate) fn staging(&self) -> PathBuf {
        self.state.join("mnt")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.state.join("spawner.sock")
    }

    fn trash(&self) -> PathBuf {
        self.state.join("trash")
    }

    /// Takes a directory out of sight, at once. Gives its name in the trash; `None`:
    /// it is not there.
    pub(crate) fn discard(&self, path: &Path) -> io::Result<Option<String>> {
        let name = random_name()?;
        let trash = self.trash();
        private(&trash)?;
        match fs::rename(path, trash.join(&name)) {
            Ok(()) => Ok(Some(name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes everything in the trash, as far as that goes; the first error is the
    /// answer. For a [`Task`](super::event_loop::task::Task).
    pub(crate) fn empty_trash(&self) -> io::Result<()> {
        let trash = self.trash();
        let Ok(entries) = fs::read_dir(&trash) else { return Ok(()) };
        let dir = fs::File::open(&trash)?;
        let mut done = Ok(());
        for entry in entries {
            let name = CString::new(entry?.file_name().as_bytes()).map_err(io::Error::other)?;
            done = done.and(remove::remove(dir.as_fd(), &name));
        }
        done
    }

    /// Whether what was discarded under one name is deleted faster than a process for it
    /// is made.
    pub(crate) fn is_small(&self, name: &str) -> bool {
        let Ok(top) = walk::open_top(&self.trash().join(name)) else { return false };
        let mut bytes = 0;
        let whole = walk::walk(top, TreeState::InUse, limits::INLINE_ENTRIES_MAX, |entry| {
            bytes += u64::try_from(entry.stat.st_blocks).unwrap_or(0) * 512;
            Ok(())
        });
        matches!(whole, Ok(Some(()))) && bytes <= limits::INLINE_DELETE_BYTES_MAX
    }

    /// Deletes what was discarded under one name. For a [`Task`](super::event_loop::task::Task).
    pub(crate) fn delete_from_trash(&self, name: &str) -> io::Result<()> {
        let dir = fs::File::open(self.trash())?;
        remove::remove(dir.as_fd(), &CString::new(name).map_err(io::Error::other)?)
    }
}

/// Makes a directory for the spawner alone, and those above it.
pub(crate) fn private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Tells the file system that what is below a directory has little in common, as those
/// of the ext family can be told (`T` of chattr(1)): each tree is then kept near itself
/// and away from the others. In one place ext4 without a journal looks at every file that
/// was deleted there in the last minutes before it makes another, which takes longer than
/// all the rest of a start. Others don't know it, which is no harm.
pub(crate) fn spread(dir: &Path) {
    let Ok(dir) = fs::File::open(dir) else { return };
    if let Ok(flags) = ioctl_getflags(&dir) {
        let _ = ioctl_setflags(&dir, flags | IFlags::TOPDIR);
    }
}

/// The directory of one disk.
#[derive(Debug, Clone)]
pub(crate) struct DiskDir(PathBuf);

impl DiskDir {
    pub(crate) fn at(dir: PathBuf) -> Self {
        Self(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The record of what it is.
    pub(crate) fn about(&self) -> PathBuf {
        self.0.join("about")
    }

    /// The number of its range of ids.
    pub(crate) fn range(&self) -> PathBuf {
        self.0.join("range")
    }

    /// Its own tree.
    pub(crate) fn upper(&self) -> PathBuf {
        self.0.join("upper")
    }

    /// Its own tree before it was anybody's.
    pub(crate) fn unowned(&self) -> PathBuf {
        self.0.join("blank")
    }

    /// The overlay's directory beside its tree.
    pub(crate) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// The record of a suspended life.
    pub(crate) fn cold(&self) -> PathBuf {
        self.0.join("cold")
    }

    /// What the guest of a suspended life handed over.
    pub(crate) fn kept(&self) -> PathBuf {
        self.0.join("kept")
    }
}
