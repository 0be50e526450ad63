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
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;

use rustix::fs::{CWD, Mode, OFlags};
use serde::{Deserialize, Serialize};

use self::disk::{DISK, OUTPUT, Tree, make_disk};
use self::mounts::{NODEV, NOEXEC, NOSUID, RDONLY, doing};
use super::sys;

pub(super) use self::prepared::Prepared;

/// What a sandbox stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Base {
    /// Programs and libraries of the host, read-only; of the disk some parts are seen.
    HostTools,
    /// The disk, which is laid over the layers of an image, is the whole root.
    Image,
}

/// A sealed tree below a disk. Anything that was once a disk can be one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Lower {
    /// Where it is.
    pub(super) tree: PathBuf,
    /// The id that owns on disk what belongs to id 0 inside. `None`: as on this
    /// sandbox's own disk. Others are mapped at the mount, which takes root.
    pub(super) first_id: Option<u32>,
}

/// What a root is made from.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// An empty directory to mount on.
    pub(super) staging: PathBuf,
    /// What is below the disk.
    pub(super) base: Base,
    /// The sandbox's own tree, made if it is missing; the directory above it is there.
    pub(super) upper: PathBuf,
    /// The overlay's own directory, beside `upper`; used only where the tree stands
    /// on something, and made if it is missing.
    pub(super) work: PathBuf,
    /// What the tree stands on, newest first. Empty: the tree is bound as it is.
    pub(super) lowers: Vec<Lower>,
    /// The id outside of the guest's user, which is id 0 inside where there is a range.
    pub(super) owner: u32,
    /// The id outside of the user of commands.
    pub(super) agent: u32,
    /// The id of the terminals' group, where it is mapped.
    pub(super) tty_group: Option<u32>,
    /// Room in its shared memory, in bytes.
    pub(super) shm_bytes: u64,
}

/// A plan with all that must be made before the process that carries it out.
#[derive(Debug)]
pub(super) struct Ready {
    plan: Plan,
    /// For each lower the map of its owners.
    maps: Vec<Option<Rc<OwnedFd>>>,
    /// The parts of a disk that stands on nothing, as [`parts`] gives them.
    parts: Vec<OwnedFd>,
}

/// A [`Ready`] on its way to another process, beside its descriptors.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Packed {
    plan: Plan,
    /// For each lower whether a map of its owners is there.
    maps: Vec<bool>,
    parts: usize,
}

impl Plan {
    /// Makes what the spawner alone can, and what is missing of the sandbox's own tree.
    /// To be called while nothing of the sandbox runs.
    pub(super) fn ready(self, prepared: &Prepared) -> io::Result<Ready> {
        let map = |lower: &Lower| {
            let from = lower.first_id.filter(|from| *from != self.owner);
            from.map(|from| prepared.maps.get(from, self.owner)).transpose()
        };
        let maps = self.lowers.iter().map(map).collect::<io::Result<_>>()?;
        let plain = self.base == Base::HostTools && self.lowers.is_empty();
        make_disk(&self.upper, self.owner, self.agent, plain)?;
        let parts = if plain {
            parts(&Tree::open(&self.upper, self.owner, self.agent)?)?
        } else {
            Vec::new()
        };
        Ok(Ready { plan: self, maps, parts })
    }
}

/// What is seen of a disk among the host's tools: whole outputs for the guest to write,
/// the same as they are seen inside, and each of [`DISK`].
fn parts(tree: &Tree) -> io::Result<Vec<OwnedFd>> {
    let part = |part, attributes| mounts::copy_with(tree.top(), part, attributes);
    let output = part(OUTPUT, NOSUID | NODEV | NOEXEC);
    let seen = part(OUTPUT, RDONLY | NOSUID | NODEV | NOEXEC);
    let others = DISK.iter().map(|(inside, _)| part(inside, NOSUID | NODEV));
    [output, seen].into_iter().chain(others).collect()
}

/// Enters a root that has all but what is a sandbox's own. To be called by a process
/// with one thread, in the spawner's mount namespace and a pid namespace of its own.
pub(super) fn enter_prepared(prepared: BorrowedFd<'_>) -> io::Result<()> {
    let proc = kernel::new_proc()?;
    doing("enter", "the prepared root", sys::enter_mounts(prepared))?;
    // SAFETY: the caller has one thread.
    doing("copy", "the prepared root", unsafe { sys::unshare(libc::CLONE_NEWNS) })?;
    kernel::processes(&proc, &open_place("/proc")?, &open_place("/dev")?)
}

impl Ready {
    /// Everything of it but its descriptors, which are given beside.
    pub(super) fn pack(self) -> (Packed, Vec<Rc<OwnedFd>>) {
        let Self { plan, maps, parts } = self;
        let packed =
            Packed { plan, maps: maps.iter().map(Option::is_some).collect(), parts: parts.len() };
        let fds = parts.into_iter().map(Rc::new).chain(maps.into_iter().flatten()).collect();
        (packed, fds)
    }

    /// The opposite of [`Ready::pack`]. `None`: a descriptor is missing.
    pub(super) fn unpack(packed: Packed, fds: &mut impl Iterator<Item = OwnedFd>) -> Option<Self> {
        let Packed { plan, maps, parts } = packed;
        let parts = (0..parts).map(|_| fds.next()).collect::<Option<_>>()?;
        let map = |there| if there { fds.next().map(|fd| Some(Rc::new(fd))) } else { Some(None) };
        let maps = maps.into_iter().map(map).collect::<Option<_>>()?;
        Some(Self { plan, maps, parts })
    }

    /// Turns the root that [`enter_prepared`] made to that of the sandbox. Gives the
    /// directory for whole outputs, through which files can be made. `home` is the
    /// spawner's mount namespace. To be called by a process with one thread.
    pub(super) fn enter(self, home: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        match self.plan.base {
            Base::HostTools => self.enter_tools(home),
            Base::Image => self.enter_image(home),
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

    /// The parts of the tree, also where it stands on something.
    fn into_parts(self, home: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
        if !self.parts.is_empty() {
            return Ok(self.parts);
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let own = "/proc/self/ns/mnt";
        let own = doing("open", own, rustix::fs::open(own, flags, Mode::empty()))?;
        doing("go back to", "the spawner's mounts", sys::enter_mounts(home))?;
        let parts = parts(&self.own_tree()?.1)?;
        doing("enter", "the prepared root", sys::enter_mounts(own.as_fd()))?;
        Ok(parts)
    }

    fn enter_tools(self, home: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let (tty_group, shm_bytes) = (self.plan.tty_group, self.plan.shm_bytes);
        let mut parts = self.into_parts(home)?.into_iter();
        let (Some(output), Some(seen)) = (parts.next(), parts.next()) else {
            return Err(io::Error::other("the parts of the disk are missing"));
        };
        for ((inside, _), part) in DISK.iter().zip(parts) {
            mounts::attach(&part, CWD, inside)?;
        }
        mounts::attach(&seen, CWD, OUTPUT)?;
        kernel::shared(&open_place("/dev")?, tty_group, shm_bytes)?;
        doing("enter", "/", rustix::process::chdir("/"))?;
        Ok(output)
    }

    fn enter_image(self, home: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        doing("go back to", "the spawner's mounts", sys::enter_mounts(home))?;
        let plan = &self.plan;
        let (path, tree) = self.own_tree()?;
        let output = mounts::copy_with(tree.top(), OUTPUT, NOSUID | NODEV | NOEXEC)?;
        let seen = mounts::copy_with(tree.top(), OUTPUT, RDONLY | NOSUID | NODEV | NOEXEC)?;
        let directory = |name| tree.directory(name, 0o755, plan.owner);
        mounts::attach_on(&seen, &directory(OUTPUT)?, OUTPUT)?;
        directory("run")?;
        let dev = kernel::devices(&directory("dev")?, open_place("/dev")?)?;
        kernel::processes(&kernel::new_proc()?, &directory("proc")?, &dev)?;
        kernel::shared(&dev, plan.tty_group, plan.shm_bytes)?;
        mounts::enter(&path)?;
        Ok(output)
    }
}

/// Opens a directory that is trusted, to name it.
fn open_place(path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    doing("open", path, rustix::fs::open(path, flags, Mode::empty()))
}
