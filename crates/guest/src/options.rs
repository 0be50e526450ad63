//! The command line: descriptors by number, and a few facts.
//!
//! Owns its form, which only the spawner of the same build writes.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use outrigger_sandbox::Generation;

use crate::{limits, sys};

/// How the guest is reached.
#[derive(Debug)]
pub(crate) enum Way {
    /// By the spawner's socket.
    Control(OwnedFd),
    /// By one connection on the standard streams.
    Stdio,
    /// By a socket that it listens on at a path.
    Listen(PathBuf),
}

/// What this program is to be.
#[derive(Debug)]
pub(crate) enum Role {
    Guest(Box<Options>),
    /// A way to the guest that listens at a path, on the standard streams.
    Bridge(PathBuf),
}

/// What the guest was started with.
#[derive(Debug)]
pub(crate) struct Options {
    /// Made up where the guest is started again and again with the same options.
    pub(crate) generation: Option<Generation>,
    pub(crate) way: Way,
    /// The directory for whole outputs.
    pub(crate) output: Option<OwnedFd>,
    /// The sandbox's cgroup of version 2.
    pub(crate) cgroup2: Option<OwnedFd>,
    /// The sandbox's cgroup in the freezer's hierarchy of version 1.
    pub(crate) freezer: Option<OwnedFd>,
    /// A file with an `oom_kill` line.
    pub(crate) memory_events: Option<OwnedFd>,
    /// Processes of the commands together. Without it that is somebody else's to limit.
    pub(crate) pids_max: Option<u64>,
    /// Largest file that a command can make, in bytes.
    pub(crate) file_bytes_max: u64,
    /// What an earlier life handed over.
    pub(crate) kept: Option<OwnedFd>,
}

impl Role {
    /// Reads `--name value` pairs. `None`: something is missing or unknown.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Options {
            generation: None,
            way: Way::Stdio,
            output: None,
            cgroup2: None,
            freezer: None,
            memory_events: None,
            pids_max: None,
            file_bytes_max: limits::FILE_BYTES_MAX,
            kept: None,
        };
        while let Some(name) = args.next() {
            if name == "--stdio" {
                continue;
            }
            let value = args.next()?;
            let descriptor =
                |value: &str| -> Option<OwnedFd> { sys::inherited(value.parse().ok()?).ok() };
            match name.as_str() {
                "--bridge" => return args.next().is_none().then_some(Self::Bridge(value.into())),
                "--generation" => options.generation = Some(Generation::new(value).ok()?),
                "--pids" => options.pids_max = Some(value.parse().ok()?),
                "--file-bytes" => options.file_bytes_max = value.parse().ok()?,
                "--listen" => options.way = Way::Listen(value.into()),
                "--control" => options.way = Way::Control(descriptor(&value)?),
                "--output" => options.output = Some(descriptor(&value)?),
                "--cgroup2" => options.cgroup2 = Some(descriptor(&value)?),
                "--freezer" => options.freezer = Some(descriptor(&value)?),
                "--memory-events" => options.memory_events = Some(descriptor(&value)?),
                "--kept" => options.kept = Some(descriptor(&value)?),
                _ => return None,
            }
        }
        let whole = match options.way {
            Way::Control(_) | Way::Stdio => {
                options.generation.is_some() && options.pids_max.is_some()
            }
            Way::Listen(_) => true,
        };
        whole.then(|| Self::Guest(Box::new(options)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Option<Role> {
        Role::parse(args.iter().map(|&arg| arg.to_owned()))
    }

    #[test]
    fn unknown_and_unfinished_options_are_refused() {
        for args in [
            &["--generation"][..],
            &["--generation", "g", "--wat", "1"],
            &[],
            &["--pids", "1"],
            &["--bridge", "a", "--pids", "1"],
            &["--listen"],
        ] {
            assert!(parse(args).is_none(), "{args:?}");
        }
        let Some(Role::Guest(options)) = parse(&["--generation", "g", "--pids", "5"]) else {
            panic!("these are whole");
        };
        assert_eq!(options.pids_max, Some(5));
        assert!(matches!(parse(&["--listen", "/a"]), Some(Role::Guest(_))));
        assert!(matches!(parse(&["--bridge", "/a"]), Some(Role::Bridge(_))));
    }
}
