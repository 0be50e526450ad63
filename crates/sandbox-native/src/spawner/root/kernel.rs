//! What the kernel gives a sandbox: `/dev`, `/proc`, terminals and shared memory.
//!
//! Owns which devices there are and which parts of `/proc` are hidden or only read.
//! What hides a part comes from the `/dev` made here, never from a path that an
//! image chose, and the parts are looked up in what was verified to be a procfs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, makedev, mkdirat, mknodat, openat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountFlags};

use super::mounts::{self, NODEV, NOEXEC, NOSUID, RDONLY, doing};
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
/// Files of `/proc` that tell of or act on the host.
const HIDDEN_FILES: [&str; 7] =
    ["kcore", "keys", "timer_list", "sysrq-trigger", "latency_stats", "sched_debug", "interrupts"];
/// Directories of the same kind.
const HIDDEN_DIRS: [&str; 4] = ["acpi", "scsi", "asound", "pressure"];
/// Parts of `/proc` that are read and never written.
const READ_ONLY: [&str; 4] = ["sys", "irq", "bus", "fs"];

/// Where shared memory is mounted.
const SHM: &str = "shm";
/// An empty directory in `/dev`, which that is until something is mounted there.
const EMPTY: &str = SHM;
/// Where terminals are mounted.
const TERMINALS: &str = "pts";
/// Where message queues are mounted.
const QUEUES: &str = "mqueue";

/// Opens to name something, not to use it; nothing is followed.
fn name(dir: impl AsFd, path: &str) -> rustix::io::Result<OwnedFd> {
    openat(dir, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

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
    doing("protect", "/dev", sys::restrict_mount(dev.as_fd(), RDONLY | NOSUID | NOEXEC))?;
    Ok(dev)
}

/// A `/proc` of this pid namespace, not mounted anywhere yet. To be made where the
/// host's can be seen: without rights on the host the kernel gives no more than that.
pub(super) fn new_proc() -> io::Result<OwnedFd> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    mounts::create("proc", &[], attributes)
}

/// Lets segments of shared memory go with the last process that has them, so that a
/// command that was killed for memory gives it back; see shm_rmid_forced in proc(5).
/// Where the kernel leaves this to the host's root alone, they stay until the sandbox
/// ends. By its own `/proc`: in the host's, the kernel looks at the name of every
/// sandbox there is.
pub(super) fn forget_segments(proc: &OwnedFd) {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = openat(proc, "sys/kernel/shm_rmid_forced", flags, Mode::empty()) {
        let _ = rustix::io::write(file, b"1");
    }
}

/// Mounts the message queues of this ipc namespace in `/dev`, if the kernel has any.
/// Commands have them without that (mq_open(3)), but not where Landlock is: what has no
/// place in the root is refused there.
pub(super) fn queues(proc: &OwnedFd, dev: &OwnedFd) -> io::Result<()> {
    if name(proc, "sys/fs/mqueue").is_err() {
        return Ok(());
    }
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    mounts::attach(&mounts::create("mqueue", &[], attributes)?, dev, QUEUES)
}

/// Mounts a new `/proc` on a directory, and hides what is not for sandboxes with what
/// is in `dev`. The parts are looked up in the mount itself, which is a procfs for sure.
pub(super) fn processes(proc: &OwnedFd, target: &OwnedFd, dev: &OwnedFd) -> io::Result<()> {
    mounts::attach_on(proc, target, "/proc")?;
    let hidden = HIDDEN_FILES.map(|part| (part, "null")).into_iter();
    for (part, by) in hidden.chain(HIDDEN_DIRS.map(|part| (part, EMPTY))) {
        // Each kernel has some of them.
        if let Ok(part_of_proc) = name(proc, part) {
            mounts::attach_on(&mounts::copy(dev, by)?, &part_of_proc, part)?;
        }
    }
    for part in READ_ONLY {
        if let Ok(part_of_proc) = name(proc, part) {
            let tree = mounts::copy_with(proc, part, RDONLY | NOSUID | NODEV | NOEXEC)?;
            mounts::attach_on(&tree, &part_of_proc, part)?;
        }
    }
    Ok(())
}

/// Mounts terminals and shared memory of this size in `/dev`. Leaves the working
/// directory there.
pub(super) fn shared(dev: &OwnedFd, tty_group: Option<u32>, shm_bytes: u64) -> io::Result<()> {
    doing("enter", "/dev", rustix::process::fchdir(dev))?;
    let group = tty_group.map(|id| format!(",gid={id}")).unwrap_or_default();
    let options = format!("newinstance,ptmxmode=666,mode=620{group}");
    mounts::make("devpts", TERMINALS, MountFlags::NOSUID | MountFlags::NOEXEC, &options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mounts::make("tmpfs", SHM, flags, &format!("size={shm_bytes},mode=1777"))
}
