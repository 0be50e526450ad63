//! The part of a root that every sandbox has in common.
//!
//! Owns the skeleton: a small read-only root with the host's programs, made once in
//! a mount namespace of its own. A sandbox enters a copy of that namespace, in which
//! nothing else of the host was ever mounted, and adds what is its own.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::MountFlags;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use super::devices;
use super::disk::{DISK, OUTPUT, WORKSPACE};
use super::host::{ETC, SYNTHETIC, TOOLS};
use super::host_trees::HostTrees;
use super::idmap::IdMaps;
use super::mounts::{self, NODEV, NOSUID, RDONLY, doing};
use crate::image::request::HostPaths;
use crate::limits;
use crate::spawner::sys::{self, Fork};

/// From the child that made a skeleton: it is there.
const MADE: &[u8] = b"m";

/// What was found at a path of the host: a change of it is seen by this.
type FileIdentity = Option<(u64, u64, Option<SystemTime>)>;

/// What is made once, and seen in every root with the same paths of the host.
#[derive(Debug)]
pub(crate) struct PreparedRoot {
    host: HostPaths,
    /// Empty folders for what is served, and what was ever asked for of them.
    served: Vec<String>,
    /// The mount namespace whose root is the skeleton.
    pub(crate) namespace: Rc<OwnedFd>,
    /// What the skeleton was made from.
    found: Vec<(PathBuf, FileIdentity)>,
    looked: std::cell::Cell<Instant>,
    pub(super) maps: IdMaps,
}

impl PreparedRoot {
    /// Prepares for these paths beside the built-in ones. `staging` is an empty
    /// directory to mount on, `served` are folders to be empty. To be called by a process
    /// with one thread.
    pub(crate) fn new(staging: &Path, host: &HostPaths, served: Vec<String>) -> io::Result<Self> {
        let etc = ETC.iter().map(|name| Path::new("/etc").join(name));
        let shown =
            TOOLS.iter().map(PathBuf::from).chain(etc).chain(host.read_only.iter().cloned());
        let shown = shown.chain(host.elsewhere.iter().map(|(from, _)| from.clone()));
        // Before it is shown: a change in between is seen.
        let found = shown.map(|path| (look(&path), path)).map(|(found, path)| (path, found));
        let found = found.collect();
        Ok(Self {
            host: host.clone(),
            namespace: Rc::new(namespace(staging, host, &served)?),
            served,
            found,
            looked: std::cell::Cell::new(Instant::now()),
            maps: IdMaps::default(),
        })
    }

    /// Whether this is what a new root with these paths would be made from. A change
    /// of the host is seen after [`limits::SKELETON_LOOK_MS`].
    pub(crate) fn serves(&self, host: &HostPaths, served: &[String]) -> bool {
        if self.host != *host || !served.iter().all(|path| self.served.contains(path)) {
            return false;
        }
        if self.looked.get().elapsed() < Duration::from_millis(limits::SKELETON_LOOK_MS) {
            return true;
        }
        self.looked.set(Instant::now());
        self.found.iter().all(|(path, found)| look(path) == *found)
    }
}

/// The folders of one that is to take the place of another: those of both, so that
/// sandboxes that differ in nothing else need not have one made for each in turn.
pub(crate) fn folders(before: Option<&PreparedRoot>, served: &[String]) -> Vec<String> {
    let mut folders = served.to_vec();
    let before = before.map_or(&[][..], |before| &before.served);
    let others = before.iter().filter(|path| !served.contains(path));
    folders.extend(others.take(limits::SERVED_FOLDERS_MAX).cloned());
    folders
}

#[cfg(test)]
impl PreparedRoot {
    /// The host is looked at again at the next question.
    pub(super) fn forget_look(&self) {
        let long = Duration::from_millis(limits::SKELETON_LOOK_MS);
        self.looked.set(Instant::now().checked_sub(long).expect("the clock began long ago"));
    }
}

fn look(path: &Path) -> FileIdentity {
    let found = fs::symlink_metadata(path).ok()?;
    // Programs come and go in the directories, which are shown as they are.
    let changed = found.is_file().then(|| found.modified().ok()).flatten();
    Some((found.dev(), found.ino(), changed))
}

/// Makes a skeleton in a child, which alone enters its namespace.
fn namespace(staging: &Path, host: &HostPaths, served: &[String]) -> io::Result<OwnedFd> {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the caller has one thread.
    let pid = match unsafe { sys::fork(libc::CLONE_NEWNS) }? {
        Fork::Parent { pid, .. } => pid,
        Fork::Child => {
            drop(ours);
            let said = match Skeleton::make(staging, host, served) {
                Ok(()) => MADE.to_vec(),
                Err(error) => error.to_string().into_bytes(),
            };
            let _ = send(&theirs, &said, SendFlags::NOSIGNAL);
            // Until the spawner has the namespace.
            let _ = recv(&theirs, &mut [0; 1], RecvFlags::empty());
            sys::leave(0)
        }
    };
    drop(theirs);
    let mut said = [0; 512];
    let heard = recv(&ours, &mut said, RecvFlags::empty());
    let path = format!("/proc/{pid}/ns/mnt");
    let namespace = match heard {
        Ok((_, length)) if said[..length] == *MADE => {
            rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(io::Error::from)
        }
        Ok((_, length)) => {
            Err(io::Error::other(String::from_utf8_lossy(&said[..length]).into_owned()))
        }
        Err(error) => Err(error.into()),
    };
    drop(ours);
    sys::wait(pid);
    namespace
}

/// A root while it is made. Paths are trusted here: only the host's are used, and
/// those in a file system that was just made.
struct Skeleton<'a> {
    root: &'a Path,
    shown: HostTrees,
}

impl Skeleton<'_> {
    fn make(root: &Path, paths: &HostPaths, served: &[String]) -> io::Result<()> {
        mounts::make_private()?;
        let options = format!("size={},mode=755", limits::ROOT_BYTES_MAX);
        let host = doing(
            "open",
            "/dev",
            rustix::fs::open("/dev", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()),
        )?;
        mounts::make("tmpfs", root, MountFlags::NOSUID | MountFlags::NODEV, &options)?;
        let skeleton = Skeleton { root, shown: HostTrees::new() };
        TOOLS.iter().try_for_each(|path| skeleton.show(Path::new(path)))?;
        for (name, text) in SYNTHETIC {
            skeleton.file(&format!("etc/{name}"), text.as_bytes())?;
        }
        ETC.iter().try_for_each(|name| skeleton.show(&Path::new("/etc").join(name)))?;
        for (inside, _) in DISK {
            skeleton.dir(inside)?;
        }
        for inside in [OUTPUT, "proc", "run"] {
            skeleton.dir(inside)?;
        }
        let dev = skeleton.dir("dev")?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let dev = doing("open", &dev, rustix::fs::open(&dev, flags, Mode::empty()))?;
        devices::devices(&dev, host)?;
        paths.read_only.iter().try_for_each(|path| skeleton.extra(path))?;
        paths.elsewhere.iter().try_for_each(|(from, to)| skeleton.show_at(from, to))?;
        paths.workspace.iter().try_for_each(|path| skeleton.lead_to_workspace(path))?;
        for path in served {
            skeleton.dir(path.trim_start_matches('/'))?;
        }
        let tree = doing("open", root, rustix::fs::open(root, flags, Mode::empty()))?;
        doing("protect", root, sys::restrict_mount(tree.as_fd(), RDONLY | NOSUID | NODEV))?;
        mounts::enter(root)
    }

    /// Makes a directory of the skeleton and those above it.
    fn dir(&self, inside: &str) -> io::Result<PathBuf> {
        let path = self.root.join(inside);
        doing("make", &path, fs::create_dir_all(&path))?;
        Ok(path)
    }

    fn file(&self, inside: &str, text: &[u8]) -> io::Result<PathBuf> {
        if let Some((parent, _)) = inside.rsplit_once('/') {
            self.dir(parent)?;
        }
        let path = self.root.join(inside);
        let mut file = doing("make", &path, fs::File::create(&path))?;
        doing("write", &path, file.write_all(text))?;
        Ok(path)
    }

    /// Shows a path of the host read-only at the same place; a link is reproduced, a
    /// small file of `/etc` is copied, what is absent stays absent.
    fn show(&self, host: &Path) -> io::Result<()> {
        let Ok(found) = fs::symlink_metadata(host) else { return Ok(()) };
        let inside = host.strip_prefix("/").unwrap_or(host).to_string_lossy().into_owned();
        if found.is_symlink() {
            if let Some((parent, _)) = inside.rsplit_once('/') {
                self.dir(parent)?;
            }
            let target = doing("read the link", host, fs::read_link(host))?;
            let path = self.root.join(&inside);
            return doing("link", &path, std::os::unix::fs::symlink(target, &path));
        }
        let small = found.is_file() && found.len() <= limits::SKELETON_FILE_BYTES_MAX;
        if small && host.starts_with("/etc") {
            let text = doing("read", host, fs::read(host))?;
            return self.file(&inside, &text).map(drop);
        }
        let target = if found.is_dir() { self.dir(&inside)? } else { self.file(&inside, b"")? };
        let tree = self.shown.take(host, &self.dir("run")?)?;
        mounts::attach(&tree, CWD, target)
    }

    /// Shows a directory of the host read-only at another place; one that is absent stays so.
    fn show_at(&self, host: &Path, inside: &Path) -> io::Result<()> {
        if !host.is_dir() {
            return Ok(());
        }
        let target = self.dir(&inside.strip_prefix("/").unwrap_or(inside).to_string_lossy())?;
        let tree = self.shown.take(host, &self.dir("run")?)?;
        mounts::attach(&tree, CWD, target)
    }

    /// Has a path of the host lead to the workspace, unless something else is there.
    fn lead_to_workspace(&self, host: &Path) -> io::Result<()> {
        let (Some(parent), Ok(inside)) = (host.parent(), host.strip_prefix("/")) else {
            return Ok(());
        };
        if TOOLS.iter().any(|tools| host.starts_with(tools)) {
            return Ok(());
        }
        self.dir(&parent.strip_prefix("/").unwrap_or(parent).to_string_lossy())?;
        let path = self.root.join(inside);
        match std::os::unix::fs::symlink(Path::new("/").join(WORKSPACE), &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => doing("link", &path, made),
        }
    }

    fn extra(&self, path: &Path) -> io::Result<()> {
        let shown =
            TOOLS.iter().any(|tools| path.starts_with(tools) && !Path::new(tools).is_symlink());
        if shown { Ok(()) } else { self.show(path) }
    }
}
