//! A guest on its way: a preforked one gets its root, its ids and its name, and serves.
//!
//! Owns the handshake with the guest that waits in it. Until that is told whose it is,
//! the spawner does everything that takes rights, from outside. A start that fails
//! leaves no process behind.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use outrigger_sandbox::{CreateSpec, Generation};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, socketpair};

use super::pool::PreforkPool;
use super::prefork::{GuestTemplate, PreforkedGuest};
use crate::passing;
use crate::spawner::quota::cgroup::Group;
use crate::spawner::quota::ids::IdRange;
use crate::spawner::rootfs::{DetachedRoot, HostMounts, PreparedRoot, RootPlan};
use crate::spawner::sys;

/// From the guest: it waits to be told whose it is.
const WAITING: &[u8] = b"w";
/// From the guest: it serves.
const READY: &[u8] = b"r";

/// What a guest is started with.
#[derive(Debug)]
pub(crate) struct GuestConfig<'a> {
    pub(crate) plan: &'a RootPlan,
    pub(crate) prepared: &'a PreparedRoot,
    pub(crate) ids: &'a IdRange,
    pub(crate) spec: &'a CreateSpec,
    pub(crate) generation: &'a Generation,
    /// The table of commands of an earlier life, a file open for reading.
    pub(crate) kept: Option<&'a OwnedFd>,
}

/// A guest that serves.
#[derive(Debug)]
pub(crate) struct RunningGuest {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    pub(crate) control: OwnedFd,
    /// A connection that it takes as soon as it serves, for whoever asks for one first.
    pub(crate) connection: Option<OwnedFd>,
    /// Numbers of the file systems that it serves itself, of which nobody else may ask
    /// anything: the answer would be its own.
    pub(crate) serves: Vec<u64>,
}

/// A guest on its way.
#[derive(Debug)]
pub(crate) struct StartingGuest {
    preforked: PreforkedGuest,
    host: Rc<HostMounts>,
    /// What it is told when it waits for that.
    pending: Option<PendingConfig>,
    connection: Option<OwnedFd>,
    serves: Vec<u64>,
}

/// What a guest was not told yet.
#[derive(Debug)]
struct PendingConfig {
    root: DetachedRoot,
    map: String,
    args: Vec<String>,
    kept: Option<OwnedFd>,
    agent: u32,
}

/// Has a guest begin. Where one that was made ahead fails, another one does: it may
/// have been killed while it waited.
pub(crate) fn spawn(config: &GuestConfig<'_>, pool: &mut PreforkPool) -> io::Result<StartingGuest> {
    let prepared = &config.prepared.namespace;
    let preforked = pool.take(prepared)?;
    if let Ok(guest) = begin(config, preforked, &pool.template) {
        return Ok(guest);
    }
    let preforked = pool.take(prepared)?;
    begin(config, preforked, &pool.template)
}

fn begin(
    config: &GuestConfig<'_>,
    mut preforked: PreforkedGuest,
    template: &GuestTemplate,
) -> io::Result<StartingGuest> {
    let pending = match prepare(config, &mut preforked, template) {
        Ok(pending) => Some(pending),
        Err(error) => {
            // What ended may have said why.
            let why = preforked.has_ended().then(|| expect(&preforked.control, WAITING).err());
            preforked.discard();
            return Err(why.flatten().unwrap_or(error));
        }
    };
    let host = Rc::clone(&template.host);
    let mut guest =
        StartingGuest { preforked, host, pending, connection: None, serves: Vec::new() };
    // One that was made ahead waits for its orders already.
    if guest.speaks()
        && let Err(error) = guest.hear()
    {
        guest.discard();
        return Err(error);
    }
    Ok(guest)
}

fn prepare(
    config: &GuestConfig<'_>,
    preforked: &mut PreforkedGuest,
    template: &GuestTemplate,
) -> io::Result<PendingConfig> {
    let GuestConfig { plan, prepared, ids, spec, generation, kept } = config;
    template.groups.limit(&preforked.group, spec, ids.guest())?;
    let args = [
        ("--generation", generation.to_string()),
        ("--pids", spec.pids_max.to_string()),
        ("--file-bytes", spec.disk_bytes_max.to_string()),
        ("--user", ids.inside().to_string()),
    ];
    let args = args.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
    Ok(PendingConfig {
        root: plan.ready(prepared, &template.host)?,
        map: ids.map(),
        args: args.collect(),
        kept: kept.map(OwnedFd::try_clone).transpose()?,
        agent: ids.agent(),
    })
}

impl StartingGuest {
    /// Readable when it has something to say.
    pub(crate) fn control(&self) -> &OwnedFd {
        &self.preforked.control
    }

    /// Whether it has something to say.
    fn speaks(&self) -> bool {
        sys::is_readable(&self.preforked.control)
    }

    /// Hears it, and answers; waits for no more than one word. `true`: it serves.
    pub(crate) fn hear(&mut self) -> io::Result<bool> {
        let control = &self.preforked.control;
        let Some(pending) = self.pending.take() else {
            return expect(control, READY).map(|()| true);
        };
        expect(control, WAITING)?;
        self.serves = self.tell(pending)?;
        // It comes upon this before anybody here hears that it is ready.
        self.connection = Some(connect(&self.preforked.control)?);
        Ok(false)
    }

    /// Makes it what it is to be. Gives the file systems that it serves.
    fn tell(&self, pending: PendingConfig) -> io::Result<Vec<u64>> {
        let PreforkedGuest { pid, control, .. } = &self.preforked;
        let PendingConfig { root, map, mut args, kept, agent } = pending;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = rustix::fs::open(format!("/proc/{pid}/ns/mnt"), flags, Mode::empty())?;
        let (output, devices) = root.attach(mounts.as_fd(), &self.host)?;
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
    pub(crate) fn into_running(self) -> (RunningGuest, Group) {
        let PreforkedGuest { pid, pidfd, control, group } = self.preforked;
        (
            RunningGuest { pid, pidfd, control, connection: self.connection, serves: self.serves },
            group,
        )
    }

    /// Ends it.
    pub(crate) fn discard(self) {
        self.preforked.discard();
    }
}

/// Passes a guest one end of a new socket and gives the other.
pub(crate) fn connect(control: &OwnedFd) -> io::Result<OwnedFd> {
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
