//! File systems whose server is the guest (linux/fuse.h).
//!
//! Owns how one is made for a folder into which a tree is served. The device goes to the
//! guest and nowhere else: with the last of its descriptors every request fails, and a
//! process that waits for one can be ended.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, makedev, statx};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::mounts::{self, doing};

/// Where the kernel has its door for servers.
const DEVICE: &str = "/dev/fuse";
/// What a host says that has none, or none for this user.
const ABSENT: [Errno; 5] = [Errno::NOENT, Errno::NODEV, Errno::NXIO, Errno::ACCESS, Errno::PERM];

/// A file system that is not mounted anywhere yet.
#[derive(Debug)]
pub(super) struct FuseMount {
    pub(super) mount: OwnedFd,
    pub(super) device: Option<FuseDevice>,
}

/// The server's end of one.
#[derive(Debug)]
pub(crate) struct FuseDevice {
    pub(crate) fd: OwnedFd,
    /// Where it is mounted.
    pub(crate) path: String,
    /// The number of the file system.
    pub(crate) number: u64,
}

fn open() -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

/// Makes the file system of a path, whose files are seen as those of `owner`. Where the
/// host gives none it is an empty folder that nobody can write to.
pub(super) fn make(path: &str, owner: u32) -> io::Result<FuseMount> {
    let fd = match open() {
        Err(error) if ABSENT.contains(&error) => return empty(),
        opened => doing("open", DEVICE, opened)?,
    };
    let (number, owner) = (fd.as_raw_fd().to_string(), owner.to_string());
    let options = [
        ("fd", number.as_str()),
        ("rootmode", "40000"),
        ("user_id", &owner),
        ("group_id", &owner),
        ("source", "outrigger"),
    ];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = match mounts::create_with("fuse", &options, &["allow_other"], attributes) {
        Err(error) if Errno::from_io_error(&error).is_some_and(|e| ABSENT.contains(&e)) => {
            return empty();
        }
        made => doing("make a", "fuse", made)?,
    };
    // Without this flag the question would wait for the guest, which there is none of yet.
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = doing("look at", path, statx(&mount, "", flags, StatxFlags::BASIC_STATS))?;
    let number = makedev(found.stx_dev_major, found.stx_dev_minor);
    let device = FuseDevice { fd, path: path.to_owned(), number };
    Ok(FuseMount { mount, device: Some(device) })
}

fn empty() -> io::Result<FuseMount> {
    let options = [("size", "4k"), ("nr_inodes", "1"), ("mode", "555")];
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(FuseMount { mount: mounts::create("tmpfs", &options, attributes)?, device: None })
}
