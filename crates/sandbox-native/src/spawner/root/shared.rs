//! The part of the host that a sandbox in no namespaces has.
//!
//! Owns what its guest is given to confine itself by: the disk, the directory for whole
//! outputs and the list of what is seen of the host. Nothing is mounted, so a disk stands
//! on nothing: there are no images and no snapshots.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};

use super::Plan;
use super::disk::OUTPUT;
use super::mounts::doing;
use super::prepared::{Prepared, shown};

/// Of `/etc`, what takes the place of files of our own: names of users and hosts, which
/// every program of the host may read.
const NAMES: [&str; 4] = ["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf"];

/// See the module.
#[derive(Debug)]
pub(in crate::spawner) struct Part {
    pub(in crate::spawner) disk: OwnedFd,
    pub(in crate::spawner) output: OwnedFd,
    /// What is seen of the host, read-only.
    pub(in crate::spawner) shown: Vec<PathBuf>,
}

impl Part {
    /// Makes what is missing of the disk.
    pub(super) fn make(plan: &Plan, prepared: &Prepared) -> io::Result<Self> {
        if !plan.is_plain() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "without namespaces there is no root of an image or a snapshot: begin from \
                 `host-tools`",
            ));
        }
        plan.make_disk()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let upper = plan.place.upper();
        let disk = doing("open", &upper, rustix::fs::open(&upper, flags, Mode::empty()))?;
        let output = rustix::fs::openat(&disk, OUTPUT, flags, Mode::empty());
        let shown = shown(&prepared.read_only).chain(NAMES.map(PathBuf::from)).collect();
        Ok(Self { output: doing("open", OUTPUT, output)?, disk, shown })
    }
}
