//! The program that runs as process 1 of a sandbox.
//!
//! Owns everything that happens inside: it starts commands as another user, keeps
//! their output while hosts come and go, reaps orphans, and serves file operations
//! with the rights of that user. What commands give it is data. It must never hold
//! anything of the host but the descriptors that it was started with.
//!
//! It starts without the language's runtime, which looks for its stack in `/proc`, a
//! good part of the time until it serves, and installs handlers: commands may signal the
//! threads that have their user, the kernel drops for an init what it has no handler
//! for, and a handler would run on a thread that is not at fault, which can end it.

#![cfg_attr(not(test), no_main)]
#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper; each block says why it holds"
)]

mod bridge;
mod confine;
mod connection;
mod control;
mod exec;
mod files;
mod fuse;
mod limits;
mod listen;
mod network;
mod options;
mod paths;
mod role;
mod scratch;
mod serve;
mod sleep;
mod sys;
mod zygote;

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use confine::seccomp::Filters;
use control::SpawnerMessage;
use exec::handover::{self, HandoverError};
use exec::running::MemoryEvents;
use exec::spawn::{self, Launcher};
use exec::table::Table;
use exec::vfork::Stack;
use exec::{CgroupHierarchy, Cgroups, Commands, SpillDir};
use fuse::FuseServer;
use options::{Options, Transport};
use outrigger_sandbox::limits::HANDED_OVER_BYTES_MAX;
use role::Role;
use rustix::fs::{Mode, OFlags};
use serve::{ConnectionSource, Control, Guest};

/// Name of the process.
const NAME: &CStr = c"outrigger-guest";

/// Exit codes, which the spawner turns into words.
const EXIT_OPTIONS: u8 = 2;
const EXIT_SETUP: u8 = 3;
const EXIT_SERVE: u8 = 4;
/// What an earlier life handed over is not to be trusted. Nothing was started.
const EXIT_KEPT: u8 = 5;

/// The guest could not be reached, or no longer.
const EXIT_BRIDGE: u8 = 6;

/// Why this program ends early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the command line is missing or wrong")]
    Options,
    #[error(transparent)]
    Kernel(#[from] io::Error),
    #[error(transparent)]
    Kept(#[from] HandoverError),
    #[error("the guest can serve no longer")]
    Serve(#[source] io::Error),
    #[error("the bridge leads nowhere")]
    Bridge(#[source] io::Error),
}

impl Failure {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Options => EXIT_OPTIONS,
            Self::Kernel(_) => EXIT_SETUP,
            Self::Kept(_) => EXIT_KEPT,
            Self::Serve(_) => EXIT_SERVE,
            Self::Bridge(_) => EXIT_BRIDGE,
        }
    }
}

// SAFETY: the C library calls the one function of this name, with these arguments.
#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn main(_: libc::c_int, _: *const *const libc::c_char) -> libc::c_int {
    libc::c_int::from(run())
}

/// Serves until its end. Gives the exit code.
#[cfg_attr(test, expect(dead_code, reason = "tests have a main of their own"))]
fn run() -> u8 {
    sys::reset_signals();
    // Whoever looks at processes sees that, however this one was executed.
    let _ = rustix::thread::set_name(NAME);
    let ended = match Role::parse(std::env::args().skip(1)) {
        Some(Role::Guest(options)) => begin().and_then(|filters| serve(*options, filters)),
        Some(Role::Zygote(zygote)) => begin().and_then(|filters| {
            match zygote.serve()? {
                // This process was cloned from the one that asked.
                Some(options) => serve(options, filters),
                None => Ok(()),
            }
        }),
        Some(Role::Bridge(path)) => bridge::run(&path).map_err(Failure::Bridge),
        None => Err(Failure::Options),
    };
    ended.map_or_else(|failure| failure.exit_code(), |()| 0)
}

/// Does what is the same for all guests.
fn begin() -> Result<Filters, Failure> {
    spawn::set_limits()?;
    let filters = Filters::compile().map_err(io::Error::other)?;
    sys::give_back_memory();
    Ok(filters)
}

fn serve(options: Options, filters: Filters) -> Result<(), Failure> {
    if !matches!(options.transport, Transport::Control(_)) {
        // All containers of an engine have one user.
        confine::counts::leave_the_rest()?;
    }
    set_up(options, filters)?.serve().map_err(Failure::Serve)
}

/// Enters the domain of this program and of all that it starts.
fn confine(options: &Options) -> io::Result<()> {
    let own = [&options.output, &options.cgroup2, &options.freezer];
    let own: Vec<_> = own.into_iter().flatten().map(AsFd::as_fd).collect();
    let served: Vec<_> = options.served.iter().map(|(_, path)| Path::new(path)).collect();
    confine::domain::enter(&own, &served)?;
    sys::die_with_parent()
}

fn set_up(mut options: Options, filters: Filters) -> Result<Guest, Failure> {
    let signals = sys::child_signals()?;
    let filter = filters.install().map_err(io::Error::other)?;
    // Up to here everything is the same for all, and may be done before there is one.
    if let Some(control) = options.awaits_the_rest() {
        let (args, fds) = control::await_the_rest(control.as_fd())?.ok_or(Failure::Options)?;
        options.take_the_rest(&args, fds).ok_or(Failure::Options)?;
        // No file of the sandbox's grows above its disk, whoever writes it; nor does what
        // this program hands over.
        let bytes = options.file_bytes_max.max(HANDED_OVER_BYTES_MAX);
        sys::limit(libc::RLIMIT_FSIZE, bytes)?;
    }
    if let Some(user) = options.user {
        sys::become_user(user)?;
    }
    sys::hide()?;
    sys::drop_capabilities()?;
    match options.transport {
        Transport::Control(_) => confine(&options)?,
        // Process 1 of a container, which is confined from outside.
        Transport::Listen(_) | Transport::Stdio => {}
    }
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(io::Error::from)?;
    let has_bash = rustix::fs::access("/bin/bash", rustix::fs::Access::EXEC_OK).is_ok();
    let fuse = FuseServer::new(options.served, options.served_owner);
    let launcher = Launcher {
        filter,
        pids_max: options.pids_max,
        file_bytes_max: options.file_bytes_max,
        null,
        shell: if has_bash { "/bin/bash" } else { "/bin/sh" },
        stack: Stack::new(),
        // What the new process enters and executes may have to be answered for by this one.
        lends: fuse.is_empty(),
        env: options.env,
    };
    let hierarchy = match (options.cgroup2, options.freezer) {
        (Some(dir), _) => CgroupHierarchy::Unified(dir),
        (None, Some(dir)) => CgroupHierarchy::Freezer(dir),
        (None, None) => CgroupHierarchy::Absent,
    };
    let memory = MemoryEvents::new(options.memory_events.or_else(|| match options.transport {
        Transport::Listen(_) => MemoryEvents::place(),
        Transport::Control(_) | Transport::Stdio => None,
    }));
    let mut spills = SpillDir::new(options.output.or_else(|| match options.transport {
        Transport::Listen(_) => SpillDir::place(),
        Transport::Control(_) | Transport::Stdio => None,
    }));
    let table = match options.kept {
        Some(kept) => handover::read(File::from(kept), &mut spills)?,
        None => Table::default(),
    };
    let commands = Commands::new(launcher, Cgroups::new(hierarchy), (table, spills), memory);
    let generation = options.generation.map_or_else(sys::generation, Ok)?;
    let mut connections = connection::Connections::new(generation);
    let files = files::Files::new(!fuse.is_empty())?;
    let source = match options.transport {
        Transport::Control(control) => {
            // The spawner waits for this before it calls the sandbox made.
            control::tell(control.as_fd(), SpawnerMessage::Ready)?;
            ConnectionSource::Control(Control::new(control))
        }
        Transport::Listen(path) => ConnectionSource::Listen(listen::listen(&path)?),
        Transport::Stdio => {
            connections.open(sys::inherited(0)?, Some(sys::inherited(1)?))?;
            ConnectionSource::Single
        }
    };
    let sleep = sleep::Sleep::default();
    let network = network::Network::default();
    Ok(Guest { source, signals, connections, commands, files, fuse, network, sleep })
}
