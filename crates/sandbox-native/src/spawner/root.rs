//! The root filesystem of a sandbox (template `host-tools`).
//!
//! Owns which paths of the host are seen inside: programs and libraries, and from
//! `/etc` only what they need to start, all read-only. The root itself is a small
//! read-only skeleton; what can be written lies on the sandbox's own disk. As long
//! as a sandbox has no layers below its disk, the disk is bound as it is; an overlay
//! takes its place where there are some.
//!
//! Runs in the new mount namespace before any command has, on trees that only the
//! spawner has touched, so paths can be trusted here and nowhere later.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Gid, Mode, OFlags, Uid};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, move_mount, open_tree, unmount,
};

use super::sys;
use crate::{cgroup, limits};

/// `MOUNT_ATTR_*` of linux/mount.h.
const RDONLY: u64 = 1;
const NOSUID: u64 = 2;
const NODEV: u64 = 4;
const NOEXEC: u64 = 8;

/// Directories of the host with programs and libraries; links are reproduced.
pub(crate) const TOOLS: [&str; 7] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What programs need of `/etc`, public on every host.
const ETC: [&str; 12] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl/certs",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/tls/certs",
    "localtime",
    "mime.types",
    "protocols",
    "services",
];
/// Files that replace the host's.
const SYNTHETIC: [(&str, &str); 6] = [
    (
        "passwd",
        "root:x:0:0:root:/:/usr/sbin/nologin\n\
         agent:x:1000:1000:agent:/home/agent:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n"),
    ("hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n"),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
    ),
    ("hostname", "sandbox\n"),
    ("resolv.conf", ""),
];
/// Parts of the disk, which is laid out like the root, and the mode of their first directory.
const DISK: [(&str, u32); 4] =
    [("workspace", 0o755), ("tmp", 0o1777), ("home/agent", 0o755), ("var/tmp", 0o1777)];
/// The part of the disk with whole outputs, which commands can read and not change.
const OUTPUT: &str = "var/outrigger/output";
/// Device nodes of the host, all harmless.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Files of `/proc` that tell of or act on the host.
const PROC_HIDDEN_FILES: [&str; 7] =
    ["kcore", "keys", "timer_list", "sysrq-trigger", "latency_stats", "sched_debug", "interrupts"];
/// Directories of the same kind.
const PROC_HIDDEN_DIRS: [&str; 3] = ["acpi", "scsi", "asound"];
/// Parts of `/proc` that are read and never written.
const PROC_READ_ONLY: [&str; 4] = ["sys", "irq", "bus", "fs"];

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

/// What is made once, and seen in every root with the same paths of the host.
#[derive(Debug)]
pub(super) struct Prepared {
    read_only: Vec<PathBuf>,
}

impl Prepared {
    /// Prepares for these paths beside the built-in ones. `staging` is an empty
    /// directory to mount on.
    pub(super) fn new(_staging: &Path, read_only: &[PathBuf]) -> io::Result<Self> {
        Ok(Self { read_only: read_only.to_owned() })
    }

    /// The paths that this is for.
    pub(super) fn read_only(&self) -> &[PathBuf] {
        &self.read_only
    }
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
    /// The sandbox's own tree, made by [`make_disk`].
    pub(super) upper: &'a Path,
    /// The overlay's own directory on the same file system as `upper`; used only
    /// where the tree stands on something.
    pub(super) work: &'a Path,
    /// What the tree stands on, newest first. Empty: the tree is bound as it is.
    pub(super) lowers: &'a [Lower],
    /// The id outside of the guest's user, which is id 0 inside where there is a range.
    pub(super) owner: u32,
    /// The id outside of the user of commands.
    pub(super) agent: u32,
    /// The id of the terminals' group, where it is mapped.
    pub(super) tty_group: Option<u32>,
}

/// Makes the directories of a new tree, with their owners; what is there stays as it
/// is. Only for a tree that stands on nothing: one with lowers gets them at its birth.
pub(super) fn make_disk(upper: &Path, owner: u32, agent: u32) -> io::Result<()> {
    let make = |path: PathBuf, mode: u32, owner: u32| {
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            result => doing("make", &path, result)?,
        }
        doing("own", &path, fs::set_permissions(&path, fs::Permissions::from_mode(mode)))?;
        let (uid, gid) = (Uid::from_raw(owner), Gid::from_raw(owner));
        doing("own", &path, rustix::fs::chown(&path, Some(uid), Some(gid)))
    };
    make(upper.to_owned(), 0o755, owner)?;
    for (part, mode, owner) in
        DISK.map(|(part, mode)| (part, mode, agent)).into_iter().chain([(OUTPUT, 0o755, owner)])
    {
        let above: Vec<&Path> = Path::new(part).ancestors().skip(1).collect();
        for dir in above.into_iter().rev().filter(|dir| !dir.as_os_str().is_empty()) {
            make(upper.join(dir), 0o755, owner)?;
        }
        make(upper.join(part), mode, owner)?;
    }
    Ok(())
}

/// Says what was being done when the kernel refused.
fn doing<T, E: Into<io::Error>>(what: &str, path: &Path, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("cannot {what} {}: {error}", path.display()))
    })
}

struct Root<'a> {
    plan: &'a Plan<'a>,
}

/// Builds the root, enters it and leaves the host's behind. Gives the directory for
/// whole outputs, open for writing.
pub(super) fn enter(plan: &Plan<'_>) -> io::Result<OwnedFd> {
    if plan.base == Base::Image || !plan.lowers.is_empty() {
        let lowers = plan.lowers.iter().map(|lower| (&lower.tree, lower.first_id));
        let what = (lowers.collect::<Vec<_>>(), plan.work, plan.agent);
        return Err(io::Error::other(format!("a root can't stand on layers: {what:?}")));
    }
    let root = Root { plan };
    let here = plan.staging;
    let everything = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    doing("make private", Path::new("/"), mount_change("/", everything))?;
    let output = doing("open", plan.upper, cgroup::detached(&plan.upper.join(OUTPUT)))?;
    root.tmpfs(
        "",
        &format!("size={},mode=755,uid={o},gid={o}", limits::ROOT_BYTES_MAX, o = plan.owner),
    )?;
    root.tools()?;
    root.etc()?;
    root.disk()?;
    root.devices()?;
    root.proc()?;
    for path in plan.prepared.read_only() {
        root.extra(path)?;
    }
    let tree =
        doing("open", here, rustix::fs::open(here, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()))?;
    doing("protect", here, sys::restrict_mount(tree.as_fd(), RDONLY | NOSUID | NODEV))?;
    doing("enter", here, rustix::process::chdir(here))?;
    doing("turn the root to", here, rustix::process::pivot_root(".", "."))?;
    doing("leave", Path::new("/"), unmount(".", UnmountFlags::DETACH))?;
    doing("enter", Path::new("/"), rustix::process::chdir("/"))?;
    Ok(output)
}

impl Root<'_> {
    fn at(&self, inside: &str) -> PathBuf {
        self.plan.staging.join(inside)
    }

    fn own(&self, path: &Path) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.plan.owner), Gid::from_raw(self.plan.owner));
        doing("own", path, rustix::fs::chown(path, Some(uid), Some(gid)))
    }

    /// Makes a directory of the skeleton and those above it.
    fn dir(&self, inside: &str) -> io::Result<PathBuf> {
        let mut path = self.plan.staging.to_owned();
        for part in Path::new(inside).components() {
            path.push(part);
            match fs::create_dir(&path) {
                Ok(()) => self.own(&path)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return doing("make", &path, Err(error)),
            }
        }
        Ok(path)
    }

    fn file(&self, inside: &str, text: &str) -> io::Result<PathBuf> {
        if let Some((parent, _)) = inside.rsplit_once('/') {
            self.dir(parent)?;
        }
        let path = self.at(inside);
        let mut file = doing("make", &path, fs::File::create(&path))?;
        doing("write", &path, file.write_all(text.as_bytes()))?;
        self.own(&path)?;
        Ok(path)
    }

    fn tmpfs(&self, inside: &str, options: &str) -> io::Result<()> {
        let path = self.at(inside);
        let options = std::ffi::CString::new(options).map_err(io::Error::other)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        doing("mount a tmpfs on", &path, mount("tmpfs", &path, "tmpfs", flags, options.as_c_str()))
    }

    /// Shows a path of the host, with all that is mounted below it.
    fn bind(&self, source: &Path, target: &Path, attributes: u64) -> io::Result<()> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = doing("open", source, open_tree(CWD, source, flags))?;
        doing("protect", source, sys::restrict_mounts(tree.as_fd(), attributes))?;
        let moved = move_mount(&tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH);
        doing("mount on", target, moved)
    }

    /// Shows a path of the host read-only at the same place; a link is reproduced,
    /// what is absent stays absent.
    fn show(&self, host: &Path) -> io::Result<()> {
        let Ok(found) = fs::symlink_metadata(host) else { return Ok(()) };
        let inside = host.strip_prefix("/").unwrap_or(host).to_string_lossy().into_owned();
        if found.is_symlink() {
            if let Some((parent, _)) = inside.rsplit_once('/') {
                self.dir(parent)?;
            }
            let target = doing("read the link", host, fs::read_link(host))?;
            let path = self.at(&inside);
            return doing("link", &path, std::os::unix::fs::symlink(target, &path));
        }
        let target = if found.is_dir() { self.dir(&inside)? } else { self.file(&inside, "")? };
        self.bind(host, &target, RDONLY | NOSUID | NODEV)
    }

    fn tools(&self) -> io::Result<()> {
        TOOLS.iter().try_for_each(|path| self.show(Path::new(path)))
    }

    fn extra(&self, path: &Path) -> io::Result<()> {
        let shown =
            TOOLS.iter().any(|tools| path.starts_with(tools) && !Path::new(tools).is_symlink());
        if shown { Ok(()) } else { self.show(path) }
    }

    fn etc(&self) -> io::Result<()> {
        for (name, text) in SYNTHETIC {
            self.file(&format!("etc/{name}"), text)?;
        }
        ETC.iter().try_for_each(|name| self.show(&Path::new("/etc").join(name)))
    }

    fn disk(&self) -> io::Result<()> {
        for (part, _) in DISK {
            let target = self.dir(part)?;
            self.bind(&self.plan.upper.join(part), &target, NOSUID | NODEV)?;
        }
        let target = self.dir(OUTPUT)?;
        self.bind(&self.plan.upper.join(OUTPUT), &target, RDONLY | NOSUID | NODEV | NOEXEC)?;
        self.dir("run")?;
        Ok(())
    }

    fn devices(&self) -> io::Result<()> {
        self.dir("dev/shm")?;
        let pts = self.dir("dev/pts")?;
        for name in DEVICES {
            let target = self.file(&format!("dev/{name}"), "")?;
            self.bind(&Path::new("/dev").join(name), &target, NOSUID | NOEXEC)?;
        }
        let group = self.plan.tty_group.map(|id| format!(",gid={id}")).unwrap_or_default();
        let options = std::ffi::CString::new(format!("newinstance,ptmxmode=666,mode=620{group}"))
            .map_err(io::Error::other)?;
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        doing(
            "mount terminals on",
            &pts,
            mount("devpts", &pts, "devpts", flags, options.as_c_str()),
        )?;
        self.tmpfs("dev/shm", &format!("size={},mode=1777", limits::SHM_BYTES_MAX))?;
        let links = [
            ("/proc/self/fd", "fd"),
            ("/proc/self/fd/0", "stdin"),
            ("/proc/self/fd/1", "stdout"),
            ("/proc/self/fd/2", "stderr"),
            ("pts/ptmx", "ptmx"),
        ];
        for (target, name) in links {
            let path = self.at("dev").join(name);
            doing("link", &path, std::os::unix::fs::symlink(target, &path))?;
        }
        Ok(())
    }

    fn proc(&self) -> io::Result<()> {
        let proc = self.dir("proc")?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        doing("mount", &proc, mount("proc", &proc, "proc", flags, None))?;
        for name in PROC_HIDDEN_FILES.map(|name| proc.join(name)) {
            if name.exists() {
                self.bind(Path::new("/dev/null"), &name, RDONLY | NOSUID | NOEXEC)?;
            }
        }
        for name in PROC_HIDDEN_DIRS {
            if proc.join(name).exists() {
                self.tmpfs(&format!("proc/{name}"), "size=0,nr_inodes=1,mode=555")?;
            }
        }
        for path in PROC_READ_ONLY.map(|name| proc.join(name)) {
            if path.exists() {
                self.bind(&path, &path, RDONLY | NOSUID | NODEV | NOEXEC)?;
            }
        }
        Ok(())
    }
}
