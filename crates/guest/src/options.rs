//! The command line: descriptors by number, and a few facts.
//!
//! Owns its form, which only the spawner of the same build writes.

use std::os::fd::OwnedFd;

use outrigger_sandbox::Generation;

use crate::{limits, sys};

/// What the guest was started with.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) generation: Generation,
    /// The spawner's socket. Without it one connection is served on the standard streams.
    pub(crate) control: Option<OwnedFd>,
    /// The directory for whole outputs.
    pub(crate) output: Option<OwnedFd>,
    /// The sandbox's cgroup of version 2.
    pub(crate) cgroup2: Option<OwnedFd>,
    /// The sandbox's cgroup in the freezer's hierarchy of version 1.
    pub(crate) freezer: Option<OwnedFd>,
    /// A file with an `oom_kill` line.
    pub(crate) memory_events: Option<OwnedFd>,
    /// Processes of the commands together.
    pub(crate) pids_max: u64,
    /// Largest file that a command can make, in bytes.
    pub(crate) file_bytes_max: u64,
    /// What an earlier life handed over.
    pub(crate) kept: Option<OwnedFd>,
}

impl Options {
    /// Reads `--name value` pairs. `None`: something is missing or unknown.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let (mut generation, mut pids_max, mut kept) = (None, None, None);
        let mut file_bytes_max = limits::FILE_BYTES_MAX;
        let (mut control, mut output, mut cgroup2, mut freezer, mut memory_events) =
            (None, None, None, None, None);
        while let Some(name) = args.next() {
            if name == "--stdio" {
                continue;
            }
            let value = args.next()?;
            let descriptor = match name.as_str() {
                "--generation" => {
                    generation = Some(Generation::new(value).ok()?);
                    continue;
                }
                "--pids" => {
                    pids_max = Some(value.parse().ok()?);
                    continue;
                }
                "--file-bytes" => {
                    file_bytes_max = value.parse().ok()?;
                    continue;
                }
                "--kept" => &mut kept,
                "--control" => &mut control,
                "--output" => &mut output,
                "--cgroup2" => &mut cgroup2,
                "--freezer" => &mut freezer,
                "--memory-events" => &mut memory_events,
                _ => return None,
            };
            *descriptor = Some(sys::inherited(value.parse().ok()?).ok()?);
        }
        let (generation, pids_max) = (generation?, pids_max?);
        Some(Self {
            generation,
            control,
            output,
            cgroup2,
            freezer,
            memory_events,
            pids_max,
            file_bytes_max,
            kept,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_unfinished_options_are_refused() {
        for args in
            [&["--generation"][..], &["--generation", "g", "--wat", "1"], &[], &["--pids", "1"]]
        {
            assert!(Options::parse(args.iter().map(|&arg| arg.to_owned())).is_none(), "{args:?}");
        }
        let args = ["--generation", "g", "--pids", "5"].map(str::to_owned);
        assert_eq!(Options::parse(args.into_iter()).unwrap().pids_max, 5);
    }
}
