//! What a guest is started with: descriptors by number, and a few facts.
//!
//! Owns the form of the command line, which only the spawner of the same build writes. A guest that is
//! reached by the spawner's socket may begin before it is known whose it is; the
//! rest of its command line then comes over the socket. One that is cloned has all of it
//! from sockets.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use outrigger_sandbox::Generation;

use crate::limits;

/// How the guest is reached.
#[derive(Debug)]
pub(crate) enum Transport {
    /// By the spawner's socket.
    Control(OwnedFd),
    /// By one connection on the standard streams.
    Stdio,
    /// By a socket that it listens on at a path.
    Listen(PathBuf),
}

/// What the guest was started with.
#[derive(Debug)]
pub(crate) struct Options {
    /// Made up where the guest is started again and again with the same options.
    pub(crate) generation: Option<Generation>,
    pub(crate) transport: Transport,
    /// The directory for whole outputs.
    pub(crate) output: Option<OwnedFd>,
    /// The sandbox's cgroup of version 2.
    pub(crate) cgroup2: Option<OwnedFd>,
    /// The sandbox's cgroup in the freezer's hierarchy of version 1.
    pub(crate) freezer: Option<OwnedFd>,
    /// A file with an `oom_kill` line.
    pub(crate) memory_events: Option<OwnedFd>,
    /// Files to write to, to enter the groups that it was not born into.
    pub(crate) doors: Vec<OwnedFd>,
    /// Processes of the commands together. Without it that is somebody else's to limit.
    pub(crate) pids_max: Option<u64>,
    /// Largest file that a command can make, in bytes.
    pub(crate) file_bytes_max: u64,
    /// What an earlier life handed over.
    pub(crate) kept: Option<OwnedFd>,
    /// Who to become first, in its own user namespace.
    pub(crate) user: Option<u32>,
    /// Variables that commands have beside the constructed few, and in their place.
    pub(crate) env: Vec<(String, String)>,
    /// Devices of trees that are served, each with the path where it is mounted.
    pub(crate) served: Vec<(OwnedFd, String)>,
    /// Whose their files are, as whoever mounted them counts ids.
    pub(crate) served_owner: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            generation: None,
            transport: Transport::Stdio,
            output: None,
            cgroup2: None,
            freezer: None,
            memory_events: None,
            doors: Vec::new(),
            pids_max: None,
            file_bytes_max: limits::FILE_BYTES_MAX,
            kept: None,
            user: None,
            env: Vec::new(),
            served: Vec::new(),
            served_owner: 0,
        }
    }
}

impl Options {
    /// Takes one `--name value` pair. `None`: it is unknown, or no descriptor is there.
    pub(crate) fn take(
        &mut self,
        name: &str,
        value: String,
        mut descriptor: impl FnMut(&str) -> Option<OwnedFd>,
    ) -> Option<()> {
        match name {
            "--generation" => self.generation = Some(Generation::new(value).ok()?),
            "--pids" => self.pids_max = Some(value.parse().ok()?),
            "--file-bytes" => self.file_bytes_max = value.parse().ok()?,
            "--user" => self.user = Some(value.parse().ok()?),
            "--env" => {
                let (name, value) = value.split_once('=')?;
                self.env.push((name.to_owned(), value.to_owned()));
            }
            "--listen" => self.transport = Transport::Listen(value.into()),
            "--control" => self.transport = Transport::Control(descriptor(&value)?),
            "--output" => self.output = Some(descriptor(&value)?),
            "--cgroup2" => self.cgroup2 = Some(descriptor(&value)?),
            "--freezer" => self.freezer = Some(descriptor(&value)?),
            "--memory-events" => self.memory_events = Some(descriptor(&value)?),
            "--door" => self.doors.push(descriptor(&value)?),
            "--kept" => self.kept = Some(descriptor(&value)?),
            "--served" => {
                let (number, path) = value.split_once(':')?;
                self.served.push((descriptor(number)?, path.to_owned()));
            }
            "--served-owner" => self.served_owner = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }

    /// Whether nothing is missing.
    pub(crate) fn is_whole(&self) -> bool {
        let named = self.generation.is_some() && self.pids_max.is_some();
        named || matches!(self.transport, Transport::Listen(_))
    }

    /// The socket over which the rest is to come, if it is not there yet.
    pub(crate) fn awaits_the_rest(&self) -> Option<&OwnedFd> {
        match &self.transport {
            Transport::Control(control) if !self.is_whole() => Some(control),
            _ => None,
        }
    }

    /// Takes the rest. `None`: something is missing or unknown.
    pub(crate) fn take_the_rest(&mut self, args: &[u8], fds: Vec<OwnedFd>) -> Option<()> {
        self.take_pieces(args, fds)?;
        self.is_whole().then_some(())
    }

    /// Takes a part that came over a socket; a descriptor is named by its place among those
    /// that came along. `None`: something is unknown.
    pub(crate) fn take_pieces(&mut self, args: &[u8], fds: Vec<OwnedFd>) -> Option<()> {
        let mut fds: Vec<Option<OwnedFd>> = fds.into_iter().map(Some).collect();
        let mut args = std::str::from_utf8(args).ok()?.split('\0');
        while let Some(name) = args.next() {
            let value = args.next()?.to_owned();
            self.take(name, value, |place| fds.get_mut(place.parse::<usize>().ok()?)?.take())?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_comes_later_and_whole() {
        let control = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let pieces = |rest: &str| rest.replace(' ', "\0").into_bytes();
        let waiting = || Options { transport: Transport::Control(control()), ..Options::default() };
        for (rest, fds) in [
            ("", 0),
            ("--generation g", 0),
            ("--generation g --pids 1 --wat 1", 0),
            ("--generation g --pids 1 --output", 1),
            ("--generation g --pids 1 --output 1", 1),
            ("--generation g --pids 1 --output 0 --kept 0", 1),
        ] {
            let fds = std::iter::repeat_with(control).take(fds).collect();
            assert!(waiting().take_the_rest(&pieces(rest), fds).is_none(), "{rest:?}");
        }
        let mut options = waiting();
        assert!(options.awaits_the_rest().is_some());
        let rest = pieces("--generation g --pids 5 --user 0 --env A=b=c --output 0 --kept 1");
        options.take_the_rest(&rest, vec![control(), control()]).expect("these are whole");
        assert!(options.output.is_some() && options.kept.is_some() && options.user == Some(0));
        assert_eq!(options.env, [("A".to_owned(), "b=c".to_owned())]);
        assert!(options.awaits_the_rest().is_none());
    }
}
