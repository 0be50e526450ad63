//! A guest on its way: a preforked one gets its root, its ids and its name, and serves.
//!
//! Owns the handshake with the guest that waits in it. Until that is told whose it is,
//! the spawner does everything that takes rights, from outside. A start that fails
//! leaves no process behind.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use outrigger_sandbox::Generation;
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags, recv};

use super::pool::PreforkPool;
use super::prefork::{GuestTemplate, PreforkedGuest};
use super::request::CreateRequest;
use super::running::{RunningGuest, new_connection};
use crate::passing;
use crate::spawner::quota::ids::IdRange;
use crate::spawner::quota::quota_state::QuotaState;
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
    pub(crate) ids: IdRange,
    pub(crate) request: CreateRequest,
    pub(crate) generation: Generation,
    /// `NAME=value`, variables of all its commands.
    pub(crate) env: Vec<String>,
    /// The table of commands of an earlier life, a file open for reading.
    pub(crate) kept: Option<OwnedFd>,
}

/// A guest on its way.
#[derive(Debug)]
pub(crate) struct StartingGuest {
    handshake: Handshake,
    generation: Generation,
    request: CreateRequest,
    ids: IdRange,
}

/// How far a preforked guest and the spawner are with each other.
#[derive(Debug)]
struct Handshake {
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

/// Variables that say where a sandbox has its own places, whatever an image says of its.
const OF_SANDBOX: [&str; 4] = ["HOME", "USER", "WORKSPACE", "TMPDIR"];

fn is_of_sandbox(pair: &str) -> bool {
    OF_SANDBOX.iter().any(|name| pair.split('=').next() == Some(name))
}

fn prepare(
    config: &GuestConfig<'_>,
    preforked: &mut PreforkedGuest,
    template: &GuestTemplate,
) -> io::Result<PendingConfig> {
    let GuestConfig { plan, prepared, ids, request, generation, env, kept } = config;
    let spec = &request.spec;
    template.groups.limit(&preforked.group, spec, ids.guest())?;
    let args = [
        ("--generation", generation.to_string()),
        ("--pids", spec.pids_max.to_string()),
        ("--file-bytes", spec.disk_bytes_max.to_string()),
        ("--user", ids.inside().to_string()),
    ];
    let env = env.iter().filter(|pair| !is_of_sandbox(pair)).cloned();
    let args = args.into_iter().chain(env.map(|pair| ("--env", pair)));
    let args = args.flat_map(|(name, value)| [name.to_owned(), value]);
    Ok(PendingConfig {
        root: plan.ready(prepared, &template.host)?,
        map: ids.map(),
        args: args.collect(),
        kept: kept.as_ref().map(OwnedFd::try_clone).transpose()?,
        agent: ids.agent(),
    })
}

impl StartingGuest {
    /// Has a guest begin. Where one that was made ahead fails, another one does: it may
    /// have been killed while it waited.
    pub(crate) fn spawn(config: GuestConfig<'_>, pool: &mut PreforkPool) -> io::Result<Self> {
        let prepared = &config.prepared.namespace;
        let handshake = match Handshake::begin(&config, pool.take(prepared)?, &pool.template) {
            Ok(handshake) => handshake,
            Err(_) => Handshake::begin(&config, pool.take(prepared)?, &pool.template)?,
        };
        let GuestConfig { ids, request, generation, .. } = config;
        Ok(Self { handshake, generation, request, ids })
    }

    /// Readable when it has something to say.
    pub(crate) fn control(&self) -> &OwnedFd {
        &self.handshake.preforked.control
    }

    /// Hears what it has to say, and answers. `true`: it serves.
    pub(crate) fn hear(&mut self) -> io::Result<bool> {
        self.handshake.hear()
    }

    /// It serves.
    pub(crate) fn into_running(self) -> RunningGuest {
        let Self { handshake, generation, request, ids } = self;
        let Handshake { preforked, connection, serves, .. } = handshake;
        let PreforkedGuest { pid, pidfd, control, group } = preforked;
        RunningGuest {
            pid,
            pidfd,
            control,
            connection,
            serves,
            generation,
            group,
            request,
            active: Instant::now(),
            quota: QuotaState::default(),
            ids,
            poll_keys: None,
        }
    }

    /// Ends it.
    pub(crate) fn discard(self) {
        self.handshake.preforked.discard();
    }
}

impl Handshake {
    fn begin(
        config: &GuestConfig<'_>,
        mut preforked: PreforkedGuest,
        template: &GuestTemplate,
    ) -> io::Result<Self> {
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
        let mut handshake = Self { preforked, host, pending, connection: None, serves: Vec::new() };
        // One that was made ahead waits for its orders already.
        if sys::is_readable(&handshake.preforked.control)
            && let Err(error) = handshake.hear()
        {
            handshake.preforked.discard();
            return Err(error);
        }
        Ok(handshake)
    }

    /// Hears what the guest has to say, and answers; waits for no more than one word.
    /// `true`: it serves.
    fn hear(&mut self) -> io::Result<bool> {
        let control = &self.preforked.control;
        let Some(pending) = self.pending.take() else {
            return expect(control, READY).map(|()| true);
        };
        expect(control, WAITING)?;
        self.serves = self.tell(pending)?;
        // It comes upon this before anybody here hears that it is ready.
        self.connection = Some(new_connection(&self.preforked.control)?);
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
