//! One running command: its pipes, its clock, its end.
//!
//! Owns what happens between the fork and the outcome, one step at a time: it is
//! told what is ready and what the time is, and never waits.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use outrigger_sandbox::wire::Stream;
use outrigger_sandbox::{End, Error, ExecId, ExecOutcome, Execute, Input, limits as door};
use rustix::io::Errno;

use crate::exec::caller::Caller;
use crate::exec::output::{Output, SpillDir};
use crate::exec::process_group::Group;
use crate::exec::report::Report;
use crate::exec::spawn::{self, ChildProcess, ParentStreams};
use crate::exec::terminal::Terminal;
use crate::scratch::Scratch;
use crate::sys::ChildExit;
use crate::{limits, sys};

/// Which pipe of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pipe {
    Stdin,
    Stdout,
    Stderr,
    Terminal,
}

/// A command between its fork and its outcome.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    pub(crate) pid: i32,
    stdin: Option<(OwnedFd, Vec<u8>, usize)>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    terminal: Option<Terminal>,
    answers: Vec<(Caller, Result<(), Error>)>,
    program: String,
    report: Report,
    began: Instant,
    deadline: Instant,
    exit: Option<(ChildExit, Instant)>,
    killed: Option<(End, Instant)>,
    pub(crate) group: Group,
}

/// What is left of a command that ended.
#[derive(Debug)]
pub(crate) struct FinishedCommand {
    pub(crate) outcome: Result<ExecOutcome, Error>,
    pub(crate) group: Group,
    /// Pipes that background children still hold. They are read on, so that those
    /// children don't die of a closed pipe.
    pub(crate) pipes: Vec<OwnedFd>,
    /// Those who gave input and were not told yet.
    pub(crate) answers: Vec<(Caller, Result<(), Error>)>,
}

impl RunningCommand {
    pub(crate) fn new(
        request: &mut Execute,
        started: ChildProcess,
        group: Group,
        now: Instant,
    ) -> Self {
        let feed = std::mem::take(&mut request.stdin);
        let (stdin, stdout, stderr, terminal) = match started.streams {
            ParentStreams::Pipes { stdin, stdout, stderr } => {
                (stdin.map(|fd| (fd, feed, 0)), Some(stdout), stderr, None)
            }
            ParentStreams::Terminal(fd) => (None, None, None, Some(Terminal::new(fd, feed))),
        };
        Self {
            pid: started.pid,
            stdin,
            stdout,
            stderr,
            terminal,
            answers: Vec::new(),
            program: spawn::program(&request.command),
            report: started.report,
            began: now,
            deadline: now + Duration::from_millis(request.deadline_ms),
            exit: None,
            killed: None,
            group,
        }
    }

    /// The pipes to wait for, and what for.
    pub(crate) fn pipes(&self) -> impl Iterator<Item = (Pipe, libc::pollfd)> {
        let (reads, writes) = (libc::POLLIN, libc::POLLOUT);
        let pipe =
            |pipe, fd: Option<&OwnedFd>, events| fd.map(|fd| (pipe, sys::pollfd(fd, events)));
        let terminal = self.terminal.as_ref().map(|terminal| {
            let events = if terminal.is_waiting() { reads | writes } else { reads };
            (Pipe::Terminal, sys::pollfd(&terminal.fd, events))
        });
        [
            pipe(Pipe::Stdin, self.stdin.as_ref().map(|(fd, ..)| fd), writes),
            pipe(Pipe::Stdout, self.stdout.as_ref(), reads),
            pipe(Pipe::Stderr, self.stderr.as_ref(), reads),
            terminal,
        ]
        .into_iter()
        .flatten()
    }

    /// Moves what a ready pipe has.
    pub(crate) fn ready(
        &mut self,
        pipe: Pipe,
        id: &ExecId,
        output: &mut Output,
        spills: &mut SpillDir,
        scratch: &mut Scratch,
    ) {
        match pipe {
            Pipe::Stdin => self.feed(),
            Pipe::Stdout => {
                let open = self.stdout.as_ref();
                if open.is_some_and(|fd| gather(fd, Stream::Stdout, id, output, spills, scratch)) {
                    self.stdout = None;
                }
            }
            Pipe::Stderr => {
                let open = self.stderr.as_ref();
                if open.is_some_and(|fd| gather(fd, Stream::Stderr, id, output, spills, scratch)) {
                    self.stderr = None;
                }
            }
            Pipe::Terminal => {
                let Some(terminal) = &mut self.terminal else { return };
                terminal.feed();
                // When nobody has it open any more, reading ends with EIO.
                if gather(&terminal.fd, Stream::Stdout, id, output, spills, scratch) {
                    self.hang_up();
                }
            }
        }
    }

    fn feed(&mut self) {
        let Some((fd, bytes, at)) = &mut self.stdin else { return };
        match rustix::io::write(&*fd, &bytes[*at..]) {
            Ok(written) => *at += written,
            Err(Errno::AGAIN | Errno::INTR) => return,
            // The command closed it: what it does not want is not its failure.
            Err(_) => *at = bytes.len(),
        }
        if *at == bytes.len() {
            self.stdin = None;
        }
    }

    /// Closes the terminal, which ends those who still have it (`SIGHUP`).
    fn hang_up(&mut self) {
        let Some(mut terminal) = self.terminal.take() else { return };
        self.answers.extend(terminal.taken().map(|caller| (caller, Ok(()))));
        self.answers.extend(terminal.owed().map(|caller| (caller, Err(ended()))));
    }

    /// Gives the command something to read.
    pub(crate) fn input(&mut self, input: Input, caller: Caller) {
        let answer = match (&mut self.terminal, input) {
            (None, _) => Err(ended()),
            (Some(terminal), Input::Size(size)) => terminal.resize(size),
            (Some(terminal), Input::Bytes(bytes)) => match terminal.push(caller, bytes) {
                // Answered when it was taken, which may have been at once.
                Ok(()) => return,
                Err(error) => Err(error),
            },
        };
        self.answers.push((caller, answer));
    }

    /// Those who gave input and can be told.
    pub(crate) fn answers(&mut self) -> impl Iterator<Item = (Caller, Result<(), Error>)> {
        let taken = self.terminal.as_mut().map(Terminal::taken).into_iter().flatten();
        taken.map(|caller| (caller, Ok(()))).chain(self.answers.drain(..))
    }

    /// Notes that the command's own process ended.
    pub(crate) fn reaped(&mut self, reaped: ChildExit, now: Instant) {
        self.exit = Some((reaped, now));
    }

    /// Begins to kill the tree; the first reason stands.
    pub(crate) fn kill(&mut self, why: End, now: Instant) {
        self.killed.get_or_insert((why, now));
    }

    /// When [`RunningCommand::step`] has something to do although no pipe is ready.
    pub(crate) fn wake(&self, releasing: bool) -> Duration {
        let now = Instant::now();
        if releasing && self.lingers(now) {
            return Duration::from_millis(limits::RELEASING_POLL_MS);
        }
        match (&self.killed, &self.exit) {
            (Some(_), _) => Duration::from_millis(limits::KILL_POLL_MS),
            (None, Some((_, at))) => (*at + Self::DRAIN).saturating_duration_since(now),
            (None, None) => self.deadline.saturating_duration_since(now),
        }
    }

    /// Whether its end may still be put off until what it wrote is outside.
    pub(crate) fn lingers(&self, now: Instant) -> bool {
        let limit = Duration::from_millis(limits::RELEASING_MS_MAX);
        self.killed.is_none() && self.exit.is_some_and(|(_, at)| now < at + limit)
    }

    /// Whether it is being killed and goes on for longer than that takes.
    pub(crate) fn resists(&self, now: Instant) -> bool {
        let limit = Duration::from_millis(limits::INTERRUPTED_MS_MAX);
        self.killed.is_some_and(|(_, since)| now >= since + limit)
    }

    const DRAIN: Duration = Duration::from_millis(door::DRAIN_MS_MAX);

    /// Looks at the clock; says whether the command is over.
    pub(crate) fn step(&mut self, now: Instant, others: &BTreeSet<i32>) -> bool {
        if self.exit.is_none() && now >= self.deadline {
            self.kill(End::Deadline, now);
        }
        if let Some((_, since)) = self.killed {
            if self.exit.is_some() && self.group.is_empty(others) {
                return true;
            }
            self.group.kill(others);
            // A process that the kernel itself can't end must not hold the caller.
            return now >= since + Duration::from_millis(door::KILL_MS_MAX);
        }
        match &self.exit {
            Some((_, at)) => {
                let pipes = self.stdout.is_some() || self.stderr.is_some();
                !(pipes || self.terminal.is_some()) || now >= *at + Self::DRAIN
            }
            None => false,
        }
    }

    /// The outcome. `out_of_memory` asks whether the kernel killed something for
    /// memory since it was asked before.
    pub(crate) fn finish(
        mut self,
        id: &ExecId,
        output: &mut Output,
        spills: &mut SpillDir,
        scratch: &mut Scratch,
        out_of_memory: &mut dyn FnMut() -> bool,
    ) -> FinishedCommand {
        for pipe in [Pipe::Stdout, Pipe::Stderr, Pipe::Terminal] {
            self.ready(pipe, id, output, spills, scratch);
        }
        self.hang_up();
        let end = match (&self.killed, &self.exit) {
            (Some((why, _)), _) => *why,
            (None, Some((reaped, _))) => end(reaped.status, out_of_memory),
            (None, None) => End::Killed,
        };
        let spill = output.finish(id, spills);
        let ended = self.exit.map_or_else(Instant::now, |(_, at)| at);
        let outcome = match spawn::refusal(&self.report, &self.program) {
            Some(error) => Err(error),
            None => Ok(ExecOutcome {
                stdout: Vec::new(),
                stderr: Vec::new(),
                stdout_dropped_bytes: 0,
                stderr_dropped_bytes: 0,
                end,
                spill,
                wall_ms: u64::try_from((ended - self.began).as_millis()).unwrap_or(u64::MAX),
                cpu_ms: self.exit.map_or(0, |(reaped, _)| reaped.cpu_ms),
                peak_memory_bytes: self.exit.map_or(0, |(reaped, _)| reaped.peak_bytes),
            }),
        };
        let pipes = [self.stdout, self.stderr].into_iter().flatten().collect();
        FinishedCommand { outcome, group: self.group, pipes, answers: self.answers }
    }
}

fn ended() -> Error {
    Error::Invalid("the terminal of this command is closed".to_owned())
}

/// Reads what a pipe has; says whether that was the last of it.
fn gather(
    fd: &OwnedFd,
    stream: Stream,
    id: &ExecId,
    output: &mut Output,
    spills: &mut SpillDir,
    scratch: &mut Scratch,
) -> bool {
    for _ in 0..limits::PIECES_PER_TURN_MAX {
        match scratch.read(fd) {
            Ok([]) => return true,
            Ok(piece) => output.push(stream, piece, id, spills),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return false,
            Err(_) => return true,
        }
    }
    false
}

/// How a process ended, from its wait status.
fn end(status: i32, out_of_memory: &mut dyn FnMut() -> bool) -> End {
    let killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
    // A shell passes the death of its child on as this code.
    let passed_on = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 128 + libc::SIGKILL;
    if (killed || passed_on) && out_of_memory() {
        return End::OutOfMemory;
    }
    if libc::WIFSIGNALED(status) {
        return End::Signalled(libc::WTERMSIG(status));
    }
    End::Exited(libc::WEXITSTATUS(status))
}

/// The kernel's count of processes killed for memory in this sandbox.
#[derive(Debug)]
pub(crate) struct MemoryEvents {
    file: Option<std::fs::File>,
    seen: u64,
}

impl MemoryEvents {
    pub(crate) fn new(file: Option<OwnedFd>) -> Self {
        Self { file: file.map(std::fs::File::from), seen: 0 }
    }

    /// Where process 1 of a container finds them, of version 2 of cgroups or of 1.
    pub(crate) fn place() -> Option<OwnedFd> {
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let files = ["memory.events", "memory/memory.oom_control"];
        files
            .iter()
            .find_map(|file| open(format!("/sys/fs/cgroup/{file}"), flags, Mode::empty()).ok())
    }

    /// Whether the count grew since the last question.
    pub(crate) fn grew(&mut self) -> bool {
        use std::os::unix::fs::FileExt;
        let Some(file) = &self.file else { return false };
        let mut text = [0; 512];
        let length = file.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        let count = count.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
        std::mem::replace(&mut self.seen, count) < count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_status_becomes_an_end() {
        // Bits of wait(2): code in the second byte, signal in the first.
        assert_eq!(end(3 << 8, &mut || false), End::Exited(3));
        assert_eq!(end(15, &mut || true), End::Signalled(15));
        assert_eq!(end(9, &mut || false), End::Signalled(9));
        assert_eq!(end(9, &mut || true), End::OutOfMemory);
        assert_eq!(end(137 << 8, &mut || true), End::OutOfMemory);
    }
}
