//! The program that runs as process 1 of a sandbox.
//!
//! Owns everything that happens inside: it starts commands as another user, keeps
//! their output while hosts come and go, reaps orphans, and serves file operations
//! with the rights of that user. What commands give it is data. It must never hold
//! anything of the host but the descriptors that it was started with.

#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper; each block says why it holds"
)]

mod connection;
mod control;
mod exec;
mod files;
mod limits;
mod options;
mod seccomp;
mod serve;
mod sys;

use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use exec::child::{self, Launcher};
use exec::running::MemoryEvents;
use exec::{Cgroups, Commands, Spills};
use options::Options;
use rustix::fs::{Mode, OFlags};
use serve::{Door, Guest};

/// Exit codes, which the spawner turns into words.
const EXIT_OPTIONS: u8 = 2;
const EXIT_SETUP: u8 = 3;
const EXIT_SERVE: u8 = 4;

fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        return ExitCode::from(EXIT_OPTIONS);
    };
    match set_up(options) {
        Ok(guest) => match guest.serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(EXIT_SERVE),
        },
        Err(_) => ExitCode::from(EXIT_SETUP),
    }
}

fn set_up(options: Options) -> io::Result<Guest> {
    sys::hide()?;
    child::set_limits()?;
    let signals = sys::child_signals()?;
    sys::drop_capabilities()?;
    if options.control.is_some() {
        sys::die_with_parent()?;
    }
    let filter = seccomp::install().map_err(io::Error::other)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let has_bash = rustix::fs::access("/bin/bash", rustix::fs::Access::EXEC_OK).is_ok();
    let launcher = Launcher {
        filter: Some(filter),
        pids_max: options.pids_max,
        null,
        shell: if has_bash { "/bin/bash" } else { "/bin/sh" },
    };
    let cgroups = match (options.cgroup2, options.freezer) {
        (Some(dir), _) => Cgroups::Unified(dir),
        (None, Some(dir)) => Cgroups::Freezer(dir),
        (None, None) => Cgroups::Absent,
    };
    let memory = MemoryEvents::new(options.memory_events);
    let commands = Commands::new(launcher, cgroups, Spills::new(options.output), memory);
    let mut connections = connection::Connections::new(options.generation);
    let door = match options.control {
        Some(control) => {
            // The spawner waits for this byte before it calls the sandbox made.
            rustix::io::write(control.as_fd(), b"r")?;
            Door::Control(control)
        }
        None => {
            connections.open(sys::inherited(0)?, Some(sys::inherited(1)?))?;
            Door::Single
        }
    };
    Ok(Guest { door, signals, connections, commands, files: files::Files::new()? })
}
