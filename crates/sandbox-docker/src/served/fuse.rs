//! File systems whose server is the guest (linux/fuse.h).
//!
//! Owns how one is made. It is mounted nowhere until somebody mounts it, and ends with the
//! last descriptor of its device.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};

/// Where the kernel has its door for servers.
const DEVICE: &str = "/dev/fuse";

/// A file system.
#[derive(Debug)]
pub(super) struct Made {
    /// To be mounted.
    pub(super) mount: OwnedFd,
    /// The server's end.
    pub(super) device: OwnedFd,
}

/// Makes one whose files are seen as those of `owner`.
pub(super) fn make(owner: u32) -> io::Result<Made> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let device = rustix::fs::open(DEVICE, flags, Mode::empty())?;
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let (number, owner) = (device.as_raw_fd().to_string(), owner.to_string());
    let options = [
        ("fd", number.as_str()),
        ("rootmode", "40000"),
        ("user_id", &owner),
        ("group_id", &owner),
        ("source", "outrigger"),
    ];
    for (key, value) in options {
        fsconfig_set_string(&context, key, value)?;
    }
    fsconfig_set_flag(&context, "allow_other")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    Ok(Made { mount, device })
}
