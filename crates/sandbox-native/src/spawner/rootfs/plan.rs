//! What a root is to be made from.
//!
//! Owns the description alone: paths, ids and sizes. It opens and mounts nothing.

use std::path::PathBuf;

use crate::spawner::store::DiskDir;

/// What a sandbox stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// Programs and libraries of the host, read-only; of the disk some parts are seen.
    HostTools,
    /// The disk, which is laid over the layers of an image, is the whole root.
    Image,
}

/// A sealed tree below a disk. Anything that was once a disk can be one.
#[derive(Debug, Clone)]
pub(crate) struct LowerDir {
    /// Where it is.
    pub(crate) tree: PathBuf,
    /// The id that owns on disk what belongs to id 0 inside. `None`: as on this
    /// sandbox's own disk. Others are mapped at the mount, which takes root.
    pub(crate) first_id: Option<u32>,
}

/// What a root is made from.
#[derive(Debug, Clone)]
pub(crate) struct RootPlan {
    /// An empty directory to mount on.
    pub(crate) staging: PathBuf,
    /// What is below the disk.
    pub(crate) base: Base,
    /// The directory of its disk, which is there. The sandbox's own tree is in it, made if
    /// it is missing, and beside that the overlay's own directory where the tree stands on
    /// something.
    pub(crate) disk_dir: DiskDir,
    /// What the tree stands on, newest first. Empty: the tree is bound as it is.
    pub(crate) lowers: Vec<LowerDir>,
    /// The id outside of the guest's user, which is id 0 inside where there is a range.
    pub(crate) owner: u32,
    /// The id outside of the user of commands.
    pub(crate) agent: u32,
    /// The id of the terminals' group, where it is mapped.
    pub(crate) tty_group: Option<u32>,
    /// Room in its shared memory, in bytes.
    pub(crate) shm_bytes: u64,
    /// Folders into which trees are served.
    pub(crate) served: Vec<String>,
    /// Where directories of the host are seen at another place than they are.
    pub(crate) elsewhere: Vec<PathBuf>,
}

impl RootPlan {
    /// Whether its tree is bound as it is.
    pub(super) fn is_plain(&self) -> bool {
        self.base == Base::HostTools && self.lowers.is_empty()
    }
}
