//! All commands of a sandbox: starts them, moves them on, tells those who wait.
//!
//! Owns the table of ids and the processes behind it. Never waits: the serving
//! loop says what is ready.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use outrigger_sandbox::wire::{GuestReply, Stream};
use outrigger_sandbox::{End, Error, ExecId, ExecOutcome, Execute, Input, limits as door};

use crate::connection::Connections;
use crate::exec::caller::Caller;
use crate::exec::freezer::Freezer;
use crate::exec::handover;
use crate::exec::output::{Output, SpillDir};
use crate::exec::process_group::{Cgroups, Group};
use crate::exec::running::{MemoryEvents, Pipe, RunningCommand};
use crate::exec::spawn::Launcher;
use crate::exec::table::{CommandEntry, ExecLookup, Slot, State, Table, Watcher, brief};
use crate::exec::vfork::Memory;
use crate::scratch::Scratch;
use crate::{limits, sys};

/// All commands, running or not.
#[derive(Debug)]
pub(crate) struct Commands {
    pub(crate) table: Table,
    launcher: Launcher,
    cgroups: Cgroups,
    freezer: Freezer,
    spills: SpillDir,
    memory: MemoryEvents,
    running: BTreeMap<i32, ExecId>,
    watched: BTreeSet<ExecId>,
    leftover: Vec<Group>,
    drains: Vec<OwnedFd>,
    scratch: Scratch,
}

impl Commands {
    pub(crate) fn new(
        launcher: Launcher,
        cgroups: Cgroups,
        (table, spills): (Table, SpillDir),
        memory: MemoryEvents,
    ) -> Self {
        Self {
            table,
            launcher,
            cgroups,
            freezer: Freezer::default(),
            spills,
            memory,
            running: BTreeMap::new(),
            watched: BTreeSet::new(),
            leftover: Vec::new(),
            drains: Vec::new(),
            scratch: Scratch::new(),
        }
    }

    /// Starts a command, or attaches to the one of that id.
    pub(crate) fn execute(&mut self, request: Execute, caller: Caller, out: &mut Connections) {
        let id = request.id.clone();
        let refusal = match self.table.look(&id) {
            ExecLookup::Slot(Slot::Command(entry)) => {
                entry.watchers.push(Watcher::new(caller));
                self.watched.insert(id);
                return;
            }
            ExecLookup::Slot(Slot::File(_)) => {
                Some(Error::Invalid(format!("`{id}` names a file operation")))
            }
            ExecLookup::Forgotten => Some(Error::Forgotten { id: id.to_string() }),
            ExecLookup::New => self.start(request, caller, out).err(),
        };
        if let Some(error) = refusal {
            out.reply(caller, GuestReply::Executed(Err(error)));
        }
    }

    fn start(
        &mut self,
        mut request: Execute,
        caller: Caller,
        out: &mut Connections,
    ) -> Result<(), Error> {
        request.check()?;
        if self.running.len() >= door::RUNNING_EXECS_MAX {
            let many = door::RUNNING_EXECS_MAX;
            return Err(Error::Busy { reason: format!("{many} commands run, which is the most") });
        }
        self.freezer.thaw(&mut self.cgroups, out)?;
        let mut group = self.cgroups.make();
        let alone = self.running.is_empty() && self.leftover.is_empty() && group.sees_all();
        let memory = if alone { Memory::Borrowed } else { Memory::Copied };
        let now = Instant::now();
        let started = match self.launcher.start(&request, &group, memory) {
            Ok(started) => started,
            Err(error) => {
                self.leftover.extend(self.cgroups.take_back(group));
                return Err(error);
            }
        };
        group.begin(started.pid);
        let id = request.id.clone();
        let output = Output::new(&request);
        let running = RunningCommand::new(&mut request, started, group, now);
        self.running.insert(running.pid, id.clone());
        let state = State::Running(Box::new(running));
        let entry = CommandEntry {
            output,
            state,
            watchers: vec![Watcher::new(caller)],
            killers: Vec::new(),
        };
        self.table.insert(id.clone(), Slot::Command(Box::new(entry)));
        self.watched.insert(id);
        Ok(())
    }

    /// Kills a command's tree; the answer follows when it is gone.
    pub(crate) fn kill(&mut self, id: &ExecId, caller: Caller, out: &mut Connections) {
        // What is stopped may not be able to die.
        if let Err(error) = self.freezer.thaw(&mut self.cgroups, out) {
            return out.reply(caller, GuestReply::Killed(Err(error)));
        }
        match self.table.look(id) {
            ExecLookup::Slot(Slot::Command(entry)) => {
                if let State::Running(running) = &mut entry.state {
                    running.kill(End::Killed, Instant::now());
                    entry.killers.push(caller);
                    return;
                }
            }
            ExecLookup::Slot(Slot::File(_)) | ExecLookup::Forgotten => {}
            ExecLookup::New => {
                let output = Output::new(&Execute::new(
                    id.clone(),
                    outrigger_sandbox::Command::Argv(Vec::new()),
                ));
                let entry = CommandEntry {
                    output,
                    state: State::Ended(Ok(ExecOutcome::never_ran())),
                    watchers: Vec::new(),
                    killers: Vec::new(),
                };
                self.table.insert(id.clone(), Slot::Command(Box::new(entry)));
                self.table.finish(id.clone(), 0);
            }
        }
        out.reply(caller, GuestReply::Killed(Ok(())));
    }

    /// Whether any command runs.
    pub(crate) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Whether any command is being killed for long enough that something holds it.
    pub(crate) fn is_killing(&mut self) -> bool {
        let Self { running, table, .. } = self;
        let now = Instant::now();
        running.values().any(|id| match table.entry(id).map(|entry| &entry.state) {
            Some(State::Running(running)) => running.resists(now),
            Some(State::Ended(_)) | None => false,
        })
    }

    /// Kills the trees of all commands that run.
    pub(crate) fn kill_all(&mut self, why: End) {
        let now = Instant::now();
        for id in self.running.values() {
            if let Some(CommandEntry { state: State::Running(running), .. }) = self.table.entry(id)
            {
                running.kill(why, now);
            }
        }
    }

    /// Writes what the next life is to know. Nothing may run.
    pub(crate) fn hand_over(&mut self, to: OwnedFd, out: &mut Connections) -> io::Result<()> {
        handover::write(&self.table, &self.spills, to)?;
        // The end of this guest ends all that commands left behind, which version 1
        // of cgroups allows only to what is not stopped.
        self.freezer.thaw(&mut self.cgroups, out).map_err(io::Error::other)
    }

    /// Stops all that commands left behind; the answer follows when it stopped.
    pub(crate) fn freeze(&mut self, caller: Caller, out: &mut Connections) {
        if self.is_busy() {
            let reason = match self.running.len() {
                1 => "a command runs in it".to_owned(),
                count => format!("{count} commands run in it"),
            };
            return out.reply(caller, GuestReply::Frozen(Err(Error::Busy { reason })));
        }
        self.freezer.freeze(&mut self.cgroups, caller, out);
    }

    /// Lets it go on.
    pub(crate) fn thaw(&mut self, caller: Caller, out: &mut Connections) {
        let thawed = self.freezer.thaw(&mut self.cgroups, out);
        out.reply(caller, GuestReply::Thawed(thawed));
    }

    /// Stops telling a caller.
    pub(crate) fn forget(&mut self, caller: Caller) {
        for id in &self.watched {
            if let Some(entry) = self.table.entry(id) {
                entry.watchers.retain(|watcher| watcher.caller != caller);
            }
        }
    }

    /// Adds every pipe to wait for.
    pub(crate) fn poll(&mut self, mut add: impl FnMut(libc::pollfd, Option<(i32, Pipe)>)) {
        for (pid, id) in &self.running {
            if let Some(CommandEntry { state: State::Running(running), .. }) = self.table.entry(id)
            {
                for (pipe, fd) in running.pipes() {
                    add(fd, Some((*pid, pipe)));
                }
            }
        }
        for fd in &self.drains {
            add(sys::pollfd(fd, libc::POLLIN), None);
        }
    }

    /// When to look at the clock again.
    pub(crate) fn wake(&mut self, releasing: bool) -> Option<Duration> {
        let Self { running, table, .. } = self;
        let commands = running.values().filter_map(|id| match &table.entry(id)?.state {
            State::Running(running) => Some(running.wake(releasing)),
            State::Ended(_) => None,
        });
        commands.chain(self.freezer.wake()).min()
    }

    /// A pipe of a command is ready.
    pub(crate) fn ready(&mut self, pid: i32, pipe: Pipe, out: &mut Connections) {
        let Some(id) = self.running.get(&pid) else { return };
        if let Some(CommandEntry { state: State::Running(running), output, .. }) =
            self.table.entry(id)
        {
            running.ready(pipe, id, output, &mut self.spills, &mut self.scratch);
            tell(running.answers(), out);
        }
    }

    /// Gives a command's terminal something.
    pub(crate) fn input(
        &mut self,
        id: &ExecId,
        input: Input,
        caller: Caller,
        out: &mut Connections,
    ) {
        let refusal = match self.table.entry(id) {
            Some(CommandEntry { state: State::Running(running), .. }) => {
                running.input(input, caller);
                return tell(running.answers(), out);
            }
            Some(CommandEntry { state: State::Ended(_), .. }) => format!("`{id}` ended"),
            None => format!("`{id}` names no command"),
        };
        out.reply(caller, GuestReply::Taken(Err(Error::Invalid(refusal))));
    }

    /// Reads on the pipes of children that commands left behind.
    pub(crate) fn drain(&mut self) {
        let scratch = &mut self.scratch;
        self.drains.retain(|fd| {
            use rustix::io::Errno;
            for _ in 0..limits::PIECES_PER_TURN_MAX {
                match scratch.read(fd) {
                    Ok([]) => return false,
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return true,
                    Err(_) => return false,
                }
            }
            true
        });
    }

    /// Reaps every child that ended.
    pub(crate) fn reap(&mut self) {
        let now = Instant::now();
        while let Some(reaped) = sys::reap() {
            let Some(id) = self.running.get(&reaped.pid) else { continue };
            if let Some(CommandEntry { state: State::Running(running), .. }) = self.table.entry(id)
            {
                running.reaped(reaped, now);
            }
        }
        for group in std::mem::take(&mut self.leftover) {
            self.leftover.extend(self.cgroups.take_back(group));
        }
    }

    /// Moves every command on by the clock, and finishes those that are over.
    /// `releasing`: what ended commands wrote may not be outside yet.
    pub(crate) fn step(&mut self, out: &mut Connections, releasing: bool) {
        self.freezer.step(&mut self.cgroups, out);
        let now = Instant::now();
        let mains: BTreeSet<i32> = self.running.keys().copied().collect();
        for pid in &mains {
            let Some(id) = self.running.get(pid).cloned() else { continue };
            let Some(entry) = self.table.entry(&id) else { continue };
            let State::Running(running) = &mut entry.state else { continue };
            let mut others = mains.clone();
            others.remove(pid);
            if running.step(now, &others) && !(releasing && running.lingers(now)) {
                self.running.remove(pid);
                self.finish(id, out);
            }
        }
    }

    fn finish(&mut self, id: ExecId, out: &mut Connections) {
        let Some(entry) = self.table.entry(&id) else { return };
        let gone = State::Ended(Ok(ExecOutcome::never_ran()));
        let State::Running(running) = std::mem::replace(&mut entry.state, gone) else { return };
        let memory = &mut self.memory;
        let finished = running.finish(
            &id,
            &mut entry.output,
            &mut self.spills,
            &mut self.scratch,
            &mut || memory.grew(),
        );
        let outcome = finished.outcome.map_err(brief);
        tell(finished.answers, out);
        if let (Err(error @ Error::CannotStart { .. }), true) = (&outcome, entry.killers.is_empty())
        {
            // It never ran, so that its name is free: for who only asked how it stands, too.
            for watcher in entry.watchers.drain(..) {
                out.reply(watcher.caller, GuestReply::Executed(Err(error.clone())));
            }
            self.table.remove(&id);
        } else {
            entry.state = State::Ended(outcome);
            for caller in entry.killers.drain(..) {
                out.reply(caller, GuestReply::Killed(Ok(())));
            }
            let bytes = entry.output.stdout.bytes.len() + entry.output.stderr.bytes.len();
            self.table.finish(id, bytes);
        }
        self.leftover.extend(self.cgroups.take_back(finished.group));
        self.drains.extend(finished.pipes);
        let excess = self.drains.len().saturating_sub(limits::DRAINS_MAX);
        self.drains.drain(..excess);
    }

    /// Sends every watcher what it has not seen, as far as its connection has room.
    pub(crate) fn pump(&mut self, out: &mut Connections) {
        let Self { watched, table, .. } = self;
        let before = watched.len();
        watched.retain(|id| {
            let Some(entry) = table.entry(id) else { return false };
            let CommandEntry { output, state, watchers, .. } = entry;
            watchers.retain_mut(|watcher| advance(watcher, output, state, out));
            !watchers.is_empty() || matches!(state, State::Running(_))
        });
        if watched.len() < before {
            table.trim();
        }
    }
}

/// Answers those who gave input.
fn tell(answers: impl IntoIterator<Item = (Caller, Result<(), Error>)>, out: &mut Connections) {
    for (caller, answer) in answers {
        out.reply(caller, GuestReply::Taken(answer));
    }
}

/// Sends one watcher its next pieces; says whether it is still owed something.
fn advance(watcher: &mut Watcher, output: &Output, state: &State, out: &mut Connections) -> bool {
    let caller = watcher.caller;
    let streams = [
        (Stream::Stdout, &output.stdout.bytes, &mut watcher.stdout),
        (Stream::Stderr, &output.stderr.bytes, &mut watcher.stderr),
    ];
    for (stream, bytes, at) in streams {
        while *at < bytes.len() {
            match out.has_room(caller.connection) {
                None => return false,
                Some(false) => return true,
                Some(true) => {}
            }
            let end = bytes.len().min(*at + limits::PIECE_BYTES);
            out.reply(caller, GuestReply::Output { stream, bytes: bytes[*at..end].to_vec() });
            *at = end;
        }
    }
    let State::Ended(outcome) = state else { return out.has_room(caller.connection).is_some() };
    let outcome = outcome.clone().map(|executed| ExecOutcome {
        stdout_dropped_bytes: output.stdout.dropped,
        stderr_dropped_bytes: output.stderr.dropped,
        ..executed
    });
    out.reply(caller, GuestReply::Executed(outcome));
    false
}
