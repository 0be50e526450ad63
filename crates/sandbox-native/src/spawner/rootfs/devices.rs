//! What the kernel gives a sandbox: `/dev`, terminals and shared memory.
//!
//! Owns which devices there are. Its `/proc` is mounted by the guest (its `confine/namespaces.rs`),
//! in whose pid namespace alone it can be made, and what hides parts of that is in the
//! `/dev` made here.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, makedev, mkdirat, mknodat, openat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountFlags};

use super::mounts::{self, NOEXEC, NOSUID, RDONLY, doing};
use crate::limits;
use crate::spawner::sys;

/// Devices, all harmless, by their numbers; see `admin-guide/devices.txt` of the kernel.
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];
/// Links in `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];
/// What stands for the number of the host's boot (the guest names it in `confine/namespaces.rs`):
/// one for all sandboxes, in the form that programs expect.
const BOOT: (&str, &[u8]) = (".boot-id", b"00000000-0000-4000-8000-000000000000\n");
/// Where shared memory is mounted.
const SHM: &str = "shm";
/// An empty directory in `/dev`, which that is until something is mounted there.
const EMPTY: &str = SHM;
/// Where terminals are mounted.
const TERMINALS: &str = "pts";
/// Where message queues are mounted.
const QUEUES: &str = "mqueue";

/// Mounts a new `/dev` on a directory. Where devices can't be made, those of the host are shown.
pub(super) fn devices(target: &OwnedFd, host: impl AsFd) -> io::Result<OwnedFd> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let options = [("size", "64k"), ("nr_inodes", "32"), ("mode", "755")];
    let dev = mounts::create("tmpfs", &options, attributes)?;
    mounts::attach_on(&dev, target, "/dev")?;
    for dir in [EMPTY, TERMINALS, QUEUES] {
        doing("make", dir, mkdirat(&dev, dir, Mode::from_raw_mode(0o755)))?;
    }
    for (target, link) in LINKS {
        doing("link", link, symlinkat(target, &dev, link))?;
    }
    let mode = Mode::from_raw_mode(0o666);
    let umask = rustix::process::umask(Mode::empty());
    for (device, major, minor) in DEVICES {
        match mknodat(&dev, device, FileType::CharacterDevice, mode, makedev(major, minor)) {
            // A device on a file system that a user namespace owns could not be opened.
            Ok(()) => {}
            Err(Errno::PERM) => {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
                drop(doing("make", device, openat(&dev, device, flags, mode))?);
                let tree = mounts::copy_with(&host, device, RDONLY | NOSUID | NOEXEC)?;
                mounts::attach(&tree, &dev, device)?;
            }
            Err(error) => return doing("make", device, Err(error)),
        }
    }
    rustix::process::umask(umask);
    let (name, text) = BOOT;
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let boot = doing("make", name, openat(&dev, name, flags, Mode::from_raw_mode(0o444)))?;
    doing("write", name, rustix::io::write(boot, text))?;
    doing("protect", "/dev", sys::restrict_mount(dev.as_fd(), RDONLY | NOSUID | NOEXEC))?;
    Ok(dev)
}

/// Mounts terminals and shared memory of this size in `/dev`. Leaves the working
/// directory there.
pub(super) fn shared(dev: &OwnedFd, tty_group: Option<u32>, shm_bytes: u64) -> io::Result<()> {
    doing("enter", "/dev", rustix::process::fchdir(dev))?;
    let group = tty_group.map(|id| format!(",gid={id}")).unwrap_or_default();
    let most = limits::TERMINALS_MAX;
    let options = format!("newinstance,ptmxmode=666,mode=620,max={most}{group}");
    mounts::make("devpts", TERMINALS, MountFlags::NOSUID | MountFlags::NOEXEC, &options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mounts::make("tmpfs", SHM, flags, &format!("size={shm_bytes},mode=1777"))
}
