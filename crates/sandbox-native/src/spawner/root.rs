//! The root filesystem of a sandbox.
//!
//! Owns what is seen inside: either programs and libraries of the host, read-only,
//! with parts of the sandbox's own disk among them, or the layers of an image with
//! the disk laid over them. As long as a disk stands on nothing it is mounted as it
//! is; an overlay takes its place where it stands on sealed trees.
//!
//! Runs before any command has. Names in the host's directories and in what was made
//! here can be trusted; names in a tree that a sandbox or an image wrote can't, and
//! are only walked one by one, through no link.

mod disk;
mod host;
mod idmap;
mod kernel;
mod mounts;
mod overlay;
mod prepared;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, Mode, OFlags};

use self::disk::{DISK, OUTPUT, Tree, make_disk};
use self::mounts::{NODEV, NOEXEC, NOSUID, RDONLY, doing};
use super::sys;

pub(super) use self::prepared::Prepared;

/// What a sandbox stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// Programs and libraries of the host, read-only; of the disk some parts are seen.
    HostTools,
    /// The disk, which is laid over the layers of an image, is the whole root.
    Image,
}

/// A sealed tree below a disk. Anything that was once a disk can be one.
#[derive(Debug, Clone)]
pub(super) struct Lower {
    /// Where it is.
    pub(super) tree: PathBuf,
    /// The id that owns on disk what belongs to id 0 inside. `None`: as on this
    /// sandbox's own disk. Others are mapped at the mount, which takes root.
    pub(super) first_id: Option<u32>,
}

/// What a root is made from.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    /// What many roots share.
    pub(super) prepared: &'a Prepared,
    /// An empty directory to mount on.
    pub(super) staging: &'a Path,
    /// What is below the disk.
    pub(super) base: Base,
    /// The sandbox's own tree, made if it is missing; the directory above it is there.
    pub(super) upper: &'a Path,
    /// The overlay's own directory, beside `upper`; used only where the tree stands
    /// on something, and made if it is missing.
    pub(super) work: &'a Path,
    /// What the tree stands on, newest first. Empty: the tree is bound as it is.
    pub(super) lowers: &'a [Lower],
    /// The id outside of the guest's user, which is id 0 inside where there is a range.
    pub(super) owner: u32,
    /// The id outside of the user of commands.
    pub(super) agent: u32,
    /// The id of the terminals' group, where it is mapped.
    pub(super) tty_group: Option<u32>,
    /// Room in its shared memory.
    pub(super) shm_bytes: u64,
}

/// A plan with all that must be made before the process that carries it out.
#[derive(Debug)]
pub(super) struct Ready<'a> {
    plan: Plan<'a>,
    /// For each lower the map of its owners.
    maps: Vec<Option<Rc<OwnedFd>>>,
}

impl<'a> Plan<'a> {
    /// Makes what the spawner alone can.
    pub(super) fn ready(self) -> io::Result<Ready<'a>> {
        let map = |lower: &Lower| {
            let from = lower.first_id.filter(|from| *from != self.owner);
            from.map(|from| self.prepared.maps.get(from, self.owner)).transpose()
        };
        let maps = self.lowers.iter().map(map).collect::<io::Result<_>>()?;
        Ok(Ready { plan: self, maps })
    }
}

impl Ready<'_> {
    /// Makes what is missing of the sandbox's own tree. To be called before
    /// [`Ready::enter`], and while nothing of the sandbox runs.
    pub(super) fn make_disk(&self) -> io::Result<()> {
        let Plan { upper, lowers, owner, agent, .. } = self.plan;
        make_disk(upper, owner, agent, self.plan.base == Base::HostTools && lowers.is_empty())
    }

    /// Builds the root, enters it and leaves the host's behind. Gives the directory for
    /// whole outputs, through which files can be made. To be called by a process with
    /// one thread, in the spawner's mount namespace and a pid namespace of its own.
    pub(super) fn enter(&self) -> io::Result<OwnedFd> {
        match self.plan.base {
            Base::HostTools => self.enter_tools(),
            Base::Image => self.enter_image(),
        }
    }

    /// The tree of the sandbox, mounted in a namespace of its own.
    fn own_tree(&self) -> io::Result<(PathBuf, Tree)> {
        // SAFETY: the caller has one thread.
        doing("leave the mounts of", "/", unsafe { sys::unshare(libc::CLONE_NEWNS) })?;
        mounts::make_private()?;
        let path = overlay::lay(&self.plan, &self.maps)?;
        let tree = Tree::open(&path, self.plan.owner, self.plan.agent)?;
        let umask = rustix::process::umask(Mode::empty());
        tree.complete()?;
        rustix::process::umask(umask);
        Ok((path, tree))
    }

    /// Mounts the tree as its sandbox would see it, in a namespace of its own, and gives
    /// where. To be called by a process with one thread, which ends soon.
    pub(super) fn merged(&self) -> io::Result<PathBuf> {
        self.own_tree().map(|(path, _)| path)
    }

    fn enter_tools(&self) -> io::Result<OwnedFd> {
        let plan = &self.plan;
        let tree = match plan.lowers {
            [] => Tree::open(plan.upper, plan.owner, plan.agent)?,
            _ => self.own_tree()?.1,
        };
        let part = |part, attributes| mounts::copy_with(tree.top(), part, attributes);
        let output = part(OUTPUT, NOSUID | NODEV | NOEXEC)?;
        let seen = part(OUTPUT, RDONLY | NOSUID | NODEV | NOEXEC)?;
        let parts: Vec<OwnedFd> = DISK
            .iter()
            .map(|(inside, _)| part(inside, NOSUID | NODEV))
            .collect::<io::Result<_>>()?;
        drop(tree);
        let proc = kernel::new_proc()?;
        let skeleton = plan.prepared.namespace.as_fd();
        doing("enter", "the prepared root", sys::enter_mounts(skeleton))?;
        // SAFETY: the caller has one thread.
        doing("copy", "the prepared root", unsafe { sys::unshare(libc::CLONE_NEWNS) })?;
        for ((inside, _), part) in DISK.iter().zip(&parts) {
            mounts::attach(part, CWD, inside)?;
        }
        mounts::attach(&seen, CWD, OUTPUT)?;
        let open = |path| doing("open", path, rustix::fs::open(path, PLACE, Mode::empty()));
        let dev = open("/dev")?;
        kernel::processes(&proc, &open("/proc")?, &dev)?;
        kernel::shared(&dev, plan.tty_group, plan.shm_bytes)?;
        doing("enter", "/", rustix::process::chdir("/"))?;
        Ok(output)
    }

    fn enter_image(&self) -> io::Result<OwnedFd> {
        let plan = &self.plan;
        let (path, tree) = self.own_tree()?;
        let output = mounts::copy_with(tree.top(), OUTPUT, NOSUID | NODEV | NOEXEC)?;
        let seen = mounts::copy_with(tree.top(), OUTPUT, RDONLY | NOSUID | NODEV | NOEXEC)?;
        let directory = |name| tree.directory(name, 0o755, plan.owner);
        mounts::attach_on(&seen, &directory(OUTPUT)?, OUTPUT)?;
        directory("run")?;
        let host = doing("open", "/dev", rustix::fs::open("/dev", PLACE, Mode::empty()))?;
        let dev = kernel::devices(&directory("dev")?, host)?;
        kernel::processes(&kernel::new_proc()?, &directory("proc")?, &dev)?;
        kernel::shared(&dev, plan.tty_group, plan.shm_bytes)?;
        mounts::enter(&path)?;
        Ok(output)
    }
}

/// To name a directory that is trusted.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
