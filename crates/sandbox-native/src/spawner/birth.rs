//! A birth: a blank gets its root, its ids and its name, and serves.
//!
//! Owns the handshake with the guest that waits in it. Until that is told whose it is,
//! the spawner does everything that takes rights, from outside. A birth that fails
//! leaves no process behind.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use outrigger_sandbox::{Generation, Spec};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, socketpair};

use super::blank::{Blank, Mould};
use super::ids::Lease;
use super::root::{Home, Plan, Prepared, Ready};
use super::stock::Stock;
use super::sys;
use crate::cgroup::Group;
use crate::passing;

/// From the guest: it waits to be told whose it is.
const WAITING: &[u8] = b"w";
/// From the guest: it serves.
const READY: &[u8] = b"r";

/// What is to be born.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) plan: &'a Plan,
    pub(super) prepared: &'a Prepared,
    pub(super) lease: &'a Lease,
    pub(super) spec: &'a Spec,
    pub(super) generation: &'a Generation,
    /// The table of commands of an earlier life, a file open for reading.
    pub(super) kept: Option<&'a OwnedFd>,
}

/// A guest that serves.
#[derive(Debug)]
pub(super) struct Born {
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    pub(super) control: OwnedFd,
    /// A connection that it takes as soon as it serves, for whoever asks for one first.
    pub(super) way: Option<OwnedFd>,
    /// Numbers of the file systems that it serves itself, of which nobody else may ask
    /// anything: the answer would be its own.
    pub(super) serves: Vec<u64>,
}

/// A guest on its way.
#[derive(Debug)]
pub(super) struct Unborn {
    blank: Blank,
    home: Rc<Home>,
    /// What it is told when it waits for that.
    untold: Option<Untold>,
    way: Option<OwnedFd>,
    serves: Vec<u64>,
}

#[derive(Debug)]
struct Untold {
    root: Ready,
    map: String,
    args: Vec<String>,
    kept: Option<OwnedFd>,
    agent: u32,
}

/// Has a guest begin. Where one that was made ahead fails, another one does: it may
/// have been killed while it waited.
pub(super) fn conceive(order: &Order<'_>, stock: &mut Stock) -> io::Result<Unborn> {
    let prepared = &order.prepared.namespace;
    let blank = stock.take(prepared)?;
    if let Ok(unborn) = begin(order, blank, &stock.mould) {
        return Ok(unborn);
    }
    let blank = stock.take(prepared)?;
    begin(order, blank, &stock.mould)
}

fn begin(order: &Order<'_>, mut blank: Blank, mould: &Mould) -> io::Result<Unborn> {
    let untold = match prepare(order, &mut blank, mould) {
        Ok(untold) => Some(untold),
        Err(error) => {
            // What ended may have said why.
            let why = blank.has_ended().then(|| expect(&blank.control, WAITING).err());
            blank.discard();
            return Err(why.flatten().unwrap_or(error));
        }
    };
    let home = Rc::clone(&mould.home);
    let mut unborn = Unborn { blank, home, untold, way: None, serves: Vec::new() };
    // One that was made ahead waits for its orders already.
    if unborn.speaks()
        && let Err(error) = unborn.hear()
    {
        unborn.discard();
        return Err(error);
    }
    Ok(unborn)
}

fn prepare(order: &Order<'_>, blank: &mut Blank, mould: &Mould) -> io::Result<Untold> {
    let Order { plan, prepared, lease, spec, generation, kept } = order;
    mould.groups.limit(&blank.group, spec, lease.guest())?;
    let args = [
        ("--generation", generation.to_string()),
        ("--pids", spec.pids_max.to_string()),
        ("--file-bytes", spec.disk_bytes_max.to_string()),
        ("--user", lease.inside().to_string()),
    ];
    let args = args.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
    Ok(Untold {
        root: plan.ready(prepared, &mould.home)?,
        map: lease.map(),
        args: args.collect(),
        kept: kept.map(OwnedFd::try_clone).transpose()?,
        agent: lease.agent(),
    })
}

impl Unborn {
    /// Readable when it has something to say.
    pub(super) fn control(&self) -> &OwnedFd {
        &self.blank.control
    }

    /// Whether it has something to say.
    fn speaks(&self) -> bool {
        sys::is_readable(&self.blank.control)
    }

    /// Hears it, and answers; waits for no more than one word. `true`: it serves.
    pub(super) fn hear(&mut self) -> io::Result<bool> {
        let control = &self.blank.control;
        let Some(untold) = self.untold.take() else {
            return expect(control, READY).map(|()| true);
        };
        expect(control, WAITING)?;
        self.serves = self.tell(untold)?;
        // It comes upon this before anybody here hears that it is ready.
        self.way = Some(connect(&self.blank.control)?);
        Ok(false)
    }

    /// Makes it what it is to be. Gives the file systems that it serves.
    fn tell(&self, untold: Untold) -> io::Result<Vec<u64>> {
        let Blank { pid, control, .. } = &self.blank;
        let Untold { root, map, mut args, kept, agent } = untold;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = rustix::fs::open(format!("/proc/{pid}/ns/mnt"), flags, Mode::empty())?;
        let (output, devices) = root.attach(mounts.as_fd(), &self.home)?;
        write_maps(*pid, &map)?;
        // Descriptors are named by their place.
        let mut fds = vec![output.as_fd()];
        args.extend(["--output", "0"].map(str::to_owned));
        if let Some(kept) = &kept {
            fds.push(kept.as_fd());
            args.extend(["--kept", "1"].map(str::to_owned));
        }
        if !devices.is_empty() {
            args.extend(["--served-owner".to_owned(), agent.to_string()]);
        }
        for device in &devices {
            args.extend(["--served".to_owned(), format!("{}:{}", fds.len(), device.path)]);
            fds.push(device.fd.as_fd());
        }
        let args = args.join("\0");
        passing::send(control, args.as_bytes(), &fds, SendFlags::empty())?;
        Ok(devices.iter().map(|device| device.number).collect())
    }

    /// It serves, and these are its groups.
    pub(super) fn born(self) -> (Born, Group) {
        let Blank { pid, pidfd, control, group } = self.blank;
        (Born { pid, pidfd, control, way: self.way, serves: self.serves }, group)
    }

    /// Ends it.
    pub(super) fn discard(self) {
        self.blank.discard();
    }
}

/// Passes a guest one end of a new socket and gives the other.
pub(super) fn connect(control: &OwnedFd) -> io::Result<OwnedFd> {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A guest that listens no more must not hold the spawner.
    passing::send(control, b"c", &[theirs.as_fd()], SendFlags::DONTWAIT)?;
    Ok(ours)
}

/// Root of a namespace may map many ids; with one, giving up groups stays forbidden.
fn write_maps(pid: i32, map: &str) -> io::Result<()> {
    for file in ["uid_map", "gid_map"] {
        let path = format!("/proc/{pid}/{file}");
        let opened = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        opened.and_then(|map_file| rustix::io::write(map_file, map.as_bytes())).map_err(
            |error| {
                let error = io::Error::from(error);
                io::Error::new(error.kind(), format!("cannot map user ids ({file}): {error}"))
            },
        )?;
    }
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
