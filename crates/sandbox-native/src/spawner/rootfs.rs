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

mod devices;
mod disk;
mod fuse;
mod host;
mod host_trees;
mod idmap;
mod mounts;
mod overlay;
mod plan;
mod prepared;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, Mode, OFlags};

use self::disk::{DISK, OUTPUT, Tree, make_disk};
use self::host::NAMES;
use self::mounts::{NODEV, NOEXEC, NOSUID, RDONLY, doing};
use super::sys;
use crate::limits;

pub(crate) use self::disk::make_upper;
pub(crate) use self::fuse::FuseDevice;
pub(crate) use self::plan::{Base, LowerDir, RootPlan};
pub(crate) use self::prepared::{PreparedRoot, folders};

/// For each lower of a plan the map of its owners.
pub(crate) type LowerMaps = Vec<Option<Rc<OwnedFd>>>;

/// The trees of a root, not attached to anything yet.
#[derive(Debug)]
pub(crate) struct DetachedRoot {
    plan: RootPlan,
    trees: DetachedMounts,
}

#[derive(Debug)]
struct DetachedMounts {
    /// Whole outputs, for the guest to write.
    output: OwnedFd,
    /// Whole outputs, as they are seen inside.
    seen: OwnedFd,
    rest: RootMounts,
}

#[derive(Debug)]
enum RootMounts {
    /// Each of [`DISK`].
    Parts(Vec<OwnedFd>),
    /// The root itself.
    Whole(OwnedFd),
}

/// The mount namespace of who asks.
const OWN_MOUNTS: &str = "/proc/self/ns/mnt";

/// Where the spawner is at home, to come back from other mount namespaces.
#[derive(Debug)]
pub(crate) struct HostMounts {
    namespace: OwnedFd,
    root: OwnedFd,
    /// Namespaces in which trees were mounted and which nobody is in any more. To end one
    /// takes longer than all the rest of a start, so that is for when there is time.
    left: RefCell<Vec<OwnedFd>>,
}

impl HostMounts {
    /// Here.
    pub(crate) fn here() -> io::Result<Self> {
        let open = |path, flags: OFlags| {
            doing("open", path, rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()))
        };
        let namespace = open(OWN_MOUNTS, OFlags::RDONLY)?;
        let root = open("/", OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(Self { namespace, root, left: RefCell::default() })
    }

    /// Whether there is anything to tidy.
    pub(crate) fn is_tidy(&self) -> bool {
        self.left.borrow().is_empty()
    }

    /// Ends one namespace that was left.
    pub(crate) fn tidy(&self) {
        drop(self.left.borrow_mut().pop());
    }

    /// Does something in a copy of the mounts here, which is left to be tidied.
    fn aside<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        while self.left.borrow().len() >= limits::MOUNTS_LEFT_MAX {
            self.tidy();
        }
        self.away(leave_mounts, || {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let own =
                doing("open", OWN_MOUNTS, rustix::fs::open(OWN_MOUNTS, flags, Mode::empty()))?;
            self.left.borrow_mut().push(own);
            work()
        })
    }

    /// Does something after going elsewhere, and comes back. A process that can't come
    /// back ends: it would serve from the wrong place. To be called with one thread.
    fn away<T>(
        &self,
        go: impl FnOnce() -> io::Result<()>,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        go()?;
        let done = work();
        let back = sys::enter_mounts(self.namespace.as_fd())
            .and_then(|()| Ok(rustix::process::fchdir(&self.root)?))
            .and_then(|()| Ok(rustix::process::chroot(".")?));
        if back.is_err() {
            sys::leave(1);
        }
        done
    }
}

impl RootPlan {
    /// The maps of its lowers, which the spawner alone can make.
    pub(crate) fn maps(&self, prepared: &PreparedRoot) -> io::Result<LowerMaps> {
        let map = |lower: &LowerDir| {
            let from = lower.first_id.filter(|from| *from != self.owner);
            from.map(|from| prepared.maps.get(from, self.owner)).transpose()
        };
        self.lowers.iter().map(map).collect()
    }

    /// Makes what is missing of the sandbox's own tree, and all trees of its root. To be
    /// called by a process with one thread, while nothing of the sandbox runs.
    pub(crate) fn ready(
        &self,
        prepared: &PreparedRoot,
        host: &HostMounts,
    ) -> io::Result<DetachedRoot> {
        let maps = self.maps(prepared)?;
        let trees = if self.is_plain() {
            make_disk(&self.disk_dir, self.owner, self.agent)?;
            Tree::open(&self.disk_dir.upper(), self.owner, self.agent)
                .and_then(|tree| self.trees(&tree))
        } else {
            make_upper(&self.disk_dir, self.owner)?;
            host.aside(|| self.trees(&self.own_tree(&maps)?.1))
        };
        Ok(DetachedRoot { trees: trees?, plan: self.clone() })
    }

    /// Takes the trees out of that of the sandbox.
    fn trees(&self, tree: &Tree) -> io::Result<DetachedMounts> {
        let part = |part, attributes| mounts::copy_with(tree.top(), part, attributes);
        let output = part(OUTPUT, NOSUID | NODEV | NOEXEC)?;
        let seen = part(OUTPUT, RDONLY | NOSUID | NODEV | NOEXEC)?;
        let rest = match self.base {
            Base::HostTools => {
                let parts = DISK.iter().map(|(inside, _)| part(inside, NOSUID | NODEV));
                RootMounts::Parts(parts.collect::<io::Result<_>>()?)
            }
            Base::Image => {
                for inside in ["dev", "proc", "run"] {
                    tree.directory(inside, 0o755, self.owner)?;
                }
                RootMounts::Whole(mounts::copy(tree.top(), ".")?)
            }
        };
        Ok(DetachedMounts { output, seen, rest })
    }

    /// The tree of the sandbox, mounted in a namespace that was just left to itself.
    fn own_tree(&self, maps: &LowerMaps) -> io::Result<(PathBuf, Tree)> {
        mounts::make_private()?;
        let path = overlay::lay(self, maps)?;
        let tree = Tree::open(&path, self.owner, self.agent)?;
        let umask = rustix::process::umask(Mode::empty());
        tree.complete()?;
        rustix::process::umask(umask);
        Ok((path, tree))
    }

    /// Mounts the tree as its sandbox would see it, in a namespace of its own, and gives
    /// where. To be called by a process with one thread, which ends soon.
    pub(crate) fn merged(&self, maps: &LowerMaps) -> io::Result<PathBuf> {
        leave_mounts()?;
        self.own_tree(maps).map(|(path, _)| path)
    }
}

/// Leaves the mounts of all others to them. To be called by a process with one thread.
fn leave_mounts() -> io::Result<()> {
    // SAFETY: the caller has one thread.
    doing("leave the mounts of", "/", unsafe { sys::unshare(libc::CLONE_NEWNS) })
}

impl DetachedRoot {
    /// Turns a copy of the prepared root to that of the sandbox, from outside of its
    /// namespace. Gives the directory for whole outputs, through which files can be
    /// made, and the devices of the trees that are served, which no process may have that
    /// could outlive the guest: none may be forked while they are held. To be called by a
    /// process with one thread, before anything of the sandbox runs.
    pub(crate) fn attach(
        self,
        namespace: BorrowedFd<'_>,
        host: &HostMounts,
    ) -> io::Result<(OwnedFd, Vec<FuseDevice>)> {
        let Self { plan, trees: DetachedMounts { output, seen, rest } } = self;
        let served = plan.served.iter().map(|path| fuse::make(path, plan.agent));
        let (mounts, devices): (Vec<OwnedFd>, Vec<Option<FuseDevice>>) = served
            .map(|made| made.map(|made| (made.mount, made.device)))
            .collect::<io::Result<_>>()?;
        let go = || doing("enter", "the root", sys::enter_mounts(namespace));
        host.away(go, || {
            match rest {
                RootMounts::Parts(parts) => plan.attach_parts(&parts, &seen, &mounts),
                RootMounts::Whole(root) => plan.attach_whole(root, &seen, &mounts),
            }?;
            Ok((output, devices.into_iter().flatten().collect()))
        })
    }
}

impl RootPlan {
    fn attach_parts(
        &self,
        parts: &[OwnedFd],
        seen: &OwnedFd,
        served: &[OwnedFd],
    ) -> io::Result<()> {
        for ((inside, _), part) in DISK.iter().zip(parts) {
            mounts::attach(part, CWD, inside)?;
        }
        mounts::attach(seen, CWD, OUTPUT)?;
        for (path, mount) in self.served.iter().zip(served) {
            mounts::attach(mount, CWD, path)?;
        }
        devices::shared(&open_place("/dev")?, self.tty_group, self.shm_bytes)
    }

    /// What the kernel gives a sandbox is taken over from the prepared root.
    fn attach_whole(&self, root: OwnedFd, seen: &OwnedFd, served: &[OwnedFd]) -> io::Result<()> {
        mounts::attach(&root, CWD, STEP)?;
        let tree = Tree::at(root, self.owner, self.agent);
        let directory = |inside| tree.directory(inside, 0o755, self.owner);
        mounts::attach_on(seen, &directory(OUTPUT)?, OUTPUT)?;
        for (path, mount) in self.served.iter().zip(served) {
            mounts::attach_on(mount, &directory(path.trim_start_matches('/'))?, path)?;
        }
        devices::shared(&open_place("/dev")?, self.tty_group, self.shm_bytes)?;
        for inside in ["dev", "proc"] {
            let part = mounts::copy_all(&Path::new("/").join(inside), 0)?;
            mounts::attach_on(&part, &directory(inside)?, inside)?;
        }
        // An image says where names are asked for at home.
        let names = Path::new("etc").join(NAMES);
        let part = mounts::copy(&open_place("/")?, &names)?;
        mounts::attach_on(&part, &tree.file(&names.to_string_lossy())?, NAMES)?;
        // What is absent on the host stays so.
        for path in self.elsewhere.iter().filter(|path| path.is_dir()) {
            let inside = path.strip_prefix("/").unwrap_or(path).to_string_lossy();
            let target = tree.directory(&inside, 0o755, self.owner)?;
            mounts::attach_on(&mounts::copy_all(path, 0)?, &target, &inside)?;
        }
        mounts::enter(&Path::new("/").join(STEP))
    }
}

/// Where in the prepared root another is mounted before it takes its place.
const STEP: &str = "run";

/// Opens a directory that is trusted, to name it.
fn open_place(path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    doing("open", path, rustix::fs::open(path, flags, Mode::empty()))
}
