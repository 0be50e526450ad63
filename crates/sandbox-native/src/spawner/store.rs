//! Where everything is in the state directory.
//!
//! Owns the paths and the trash: what is to be deleted is first renamed there, so
//! that its name is free at once and a crash leaves nothing half deleted in sight.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use outrigger_sandbox::{SandboxId, SnapshotId};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use super::layers::Layer;
use super::walk::{self, TreeState};
use super::{random_name, remove};
use crate::limits;

/// The state directory.
#[derive(Debug, Clone)]
pub(super) struct Store {
    state: PathBuf,
}

impl Store {
    pub(super) fn new(state: PathBuf) -> Self {
        Self { state }
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn sandboxes(&self) -> PathBuf {
        self.state.join("sandboxes")
    }

    pub(super) fn disk(&self, id: &SandboxId) -> DiskDir {
        DiskDir(self.sandboxes().join(id.as_str()))
    }

    pub(super) fn layers(&self) -> PathBuf {
        self.state.join("layers")
    }

    pub(super) fn layer(&self, layer: &Layer) -> PathBuf {
        self.layers().join(layer.as_str())
    }

    pub(super) fn tree(&self, layer: &Layer) -> PathBuf {
        self.layer(layer).join("tree")
    }

    pub(super) fn snapshots(&self) -> PathBuf {
        self.state.join("snapshots")
    }

    pub(super) fn snapshot(&self, name: &SnapshotId) -> PathBuf {
        self.snapshots().join(name.as_str())
    }

    pub(super) fn templates(&self) -> PathBuf {
        self.state.join("templates")
    }

    /// Layers of images that are being unpacked.
    pub(super) fn incoming(&self) -> PathBuf {
        self.state.join("incoming")
    }

    /// An empty directory to mount on.
    pub(super) fn staging(&self) -> PathBuf {
        self.state.join("mnt")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.state.join("spawner.sock")
    }

    fn trash(&self) -> PathBuf {
        self.state.join("trash")
    }

    /// Takes a directory out of sight, at once. Gives its name in the trash; `None`:
    /// it is not there.
    pub(super) fn discard(&self, path: &Path) -> io::Result<Option<String>> {
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
    /// answer. For a [`Task`](super::task::Task).
    pub(super) fn empty_trash(&self) -> io::Result<()> {
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
    pub(super) fn is_small(&self, name: &str) -> bool {
        let Ok(top) = walk::open_top(&self.trash().join(name)) else { return false };
        let mut bytes = 0;
        let whole = walk::walk(top, TreeState::InUse, limits::INLINE_ENTRIES_MAX, |entry| {
            bytes += u64::try_from(entry.stat.st_blocks).unwrap_or(0) * 512;
            Ok(())
        });
        matches!(whole, Ok(Some(()))) && bytes <= limits::INLINE_DELETE_BYTES_MAX
    }

    /// Deletes what was discarded under one name. For a [`Task`](super::task::Task).
    pub(super) fn delete_from_trash(&self, name: &str) -> io::Result<()> {
        let dir = fs::File::open(self.trash())?;
        remove::remove(dir.as_fd(), &CString::new(name).map_err(io::Error::other)?)
    }
}

/// Makes a directory for the spawner alone, and those above it.
pub(super) fn private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Tells the file system that what is below a directory has little in common, as those
/// of the ext family can be told (`T` of chattr(1)): each tree is then kept near itself
/// and away from the others. In one place ext4 without a journal looks at every file that
/// was deleted there in the last minutes before it makes another, which takes longer than
/// all the rest of a start. Others don't know it, which is no harm.
pub(super) fn spread(dir: &Path) {
    let Ok(dir) = fs::File::open(dir) else { return };
    if let Ok(flags) = ioctl_getflags(&dir) {
        let _ = ioctl_setflags(&dir, flags | IFlags::TOPDIR);
    }
}

/// The directory of one disk.
#[derive(Debug, Clone)]
pub(super) struct DiskDir(PathBuf);

impl DiskDir {
    pub(super) fn at(dir: PathBuf) -> Self {
        Self(dir)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The record of what it is.
    pub(super) fn about(&self) -> PathBuf {
        self.0.join("about")
    }

    /// The number of its range of ids.
    pub(super) fn range(&self) -> PathBuf {
        self.0.join("range")
    }

    /// Its own tree.
    pub(super) fn upper(&self) -> PathBuf {
        self.0.join("upper")
    }

    /// Its own tree before it was anybody's.
    pub(super) fn unowned(&self) -> PathBuf {
        self.0.join("blank")
    }

    /// The overlay's directory beside its tree.
    pub(super) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// The record of a suspended life.
    pub(super) fn cold(&self) -> PathBuf {
        self.0.join("cold")
    }

    /// What the guest of a suspended life handed over.
    pub(super) fn kept(&self) -> PathBuf {
        self.0.join("kept")
    }
}
