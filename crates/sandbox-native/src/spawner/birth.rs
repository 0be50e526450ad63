//! The spawner's side of a birth: a blank is told what to become, its ids are mapped,
//! and its guest serves.
//!
//! Owns the handshake with the new process. A birth that fails leaves no process behind.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use outrigger_sandbox::{Generation, Spec};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags, recv};
use serde::{Deserialize, Serialize};

use super::blank::{self, Blank};
use super::ids::Lease;
use super::root::{Packed, Plan, Prepared};
use super::setup::{GO, MAP, READY};
use super::stock::Stock;
use crate::cgroup::Group;

/// What is to be born.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) plan: Plan,
    pub(super) prepared: &'a Prepared,
    pub(super) lease: &'a Lease,
    pub(super) spec: &'a Spec,
    pub(super) generation: &'a Generation,
    /// The table of commands of an earlier life, a file open for reading.
    pub(super) kept: Option<OwnedFd>,
}

/// What a blank is told, beside descriptors: those of the root, then what is kept.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) generation: Generation,
    /// Processes of the commands together.
    pub(super) pids_max: u32,
    /// Largest file that a command can make, in bytes.
    pub(super) file_bytes_max: u64,
    /// The guest's id inside.
    pub(super) inside: u32,
    pub(super) root: Option<Packed>,
    /// Whether there is a table of commands of an earlier life.
    pub(super) kept: bool,
}

/// A guest that serves.
#[derive(Debug)]
pub(super) struct Born {
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    pub(super) control: OwnedFd,
}

/// A guest on its way.
#[derive(Debug)]
pub(super) struct Unborn {
    blank: Blank,
    mapped: bool,
}

/// Has a guest begin.
pub(super) fn conceive(order: Order<'_>, stock: &mut Stock) -> io::Result<Unborn> {
    let blank = stock.take(&order.prepared.namespace)?;
    let owner = order.lease.guest();
    let limited = stock.mould.groups.limit(&blank.group, order.spec, owner);
    match limited.and_then(|()| tell(order, &blank)) {
        Ok(()) => Ok(Unborn { blank, mapped: false }),
        Err(error) => {
            blank.discard();
            Err(error)
        }
    }
}

impl Unborn {
    /// Readable when it has something to say.
    pub(super) fn control(&self) -> &OwnedFd {
        &self.blank.control
    }

    /// Hears it, and answers; waits for no more than one word. `true`: it serves.
    pub(super) fn hear(&mut self, lease: &Lease) -> io::Result<bool> {
        let Blank { pid, control, .. } = &self.blank;
        if self.mapped {
            return expect(control, READY).map(|()| true);
        }
        expect(control, MAP)?;
        let map = lease.map();
        // Root of a namespace may map many ids; with one, giving up groups stays forbidden.
        for file in ["uid_map", "gid_map"] {
            write_map(&format!("/proc/{pid}/{file}"), &map).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot map user ids ({file}): {error}"))
            })?;
        }
        blank::send(control, GO, &[], SendFlags::empty())?;
        self.mapped = true;
        Ok(false)
    }

    /// It serves, and these are its groups.
    pub(super) fn born(self) -> (Born, Group) {
        let Blank { pid, pidfd, control, group } = self.blank;
        (Born { pid, pidfd, control }, group)
    }

    /// Ends it.
    pub(super) fn discard(self) {
        self.blank.discard();
    }
}

/// Makes what only the spawner can, and tells the blank of it.
fn tell(order: Order<'_>, blank: &Blank) -> io::Result<()> {
    let Order { plan, prepared, lease, spec, generation, kept } = order;
    let (root, fds) = plan.ready(prepared)?.pack();
    let told = Told {
        generation: generation.clone(),
        pids_max: spec.pids_max,
        file_bytes_max: spec.disk_bytes_max,
        inside: lease.inside(),
        root: Some(root),
        kept: kept.is_some(),
    };
    let told = postcard::to_allocvec(&told).map_err(io::Error::other)?;
    let fds: Vec<BorrowedFd<'_>> =
        fds.iter().map(|fd| fd.as_fd()).chain(kept.iter().map(AsFd::as_fd)).collect();
    match blank::send(&blank.control, &told, &fds, SendFlags::empty()) {
        // It may have said why it left before it was told.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => expect(&blank.control, GO),
        sent => sent,
    }
}

fn write_map(path: &str, map: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, map.as_bytes())?;
    Ok(())
}

/// Waits for a word of the new process; any other is why there is none.
fn expect(control: &OwnedFd, wanted: &[u8]) -> io::Result<()> {
    let mut report = [0; 512];
    let (_, length) = retry_on_intr(|| recv(control, &mut report[..], RecvFlags::empty()))?;
    match &report[..length] {
        [] => Err(io::Error::other("the new process ended before it served")),
        message if message == wanted => Ok(()),
        message => Err(io::Error::other(String::from_utf8_lossy(message).into_owned())),
    }
}
