//! What an earlier life handed over, for fuzzing.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;

use outrigger_sandbox::{ExecId, ExecOutcome, FileReply};

use crate::exec::SpillDir;
use crate::exec::handover;
use crate::exec::output::{CappedBuffer, Output};
use crate::exec::table::{CommandEntry, FileEntry, Slot, State, Table};

fn written(table: &Table, spills: &SpillDir) -> Vec<u8> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = File::from(rustix::fs::memfd_create("kept", flags).expect("memory is there"));
    let to = file.try_clone().expect("a descriptor is there");
    handover::write(table, spills, OwnedFd::from(to)).expect("what was read can be handed on");
    let mut file = file;
    let mut bytes = Vec::new();
    file.flush().and_then(|()| file.rewind()).expect("it is in memory");
    std::io::Read::read_to_end(&mut file, &mut bytes).expect("it is in memory");
    bytes
}

/// Reads bytes as what an earlier life handed over.
///
/// # Panics
/// If a table that was taken is another one when it is handed on: a finding.
pub fn kept(bytes: &[u8]) {
    let mut spills = SpillDir::new(None);
    let Ok(table) = handover::read(bytes, &mut spills) else { return };
    let once = written(&table, &spills);
    let mut again = SpillDir::new(None);
    let table = handover::read(&once[..], &mut again).expect("what we hand over is taken");
    assert_eq!(once, written(&table, &again));
}

/// A table with one of each kind, as it is handed over.
#[must_use]
pub fn seed() -> Vec<u8> {
    let id = |name: &str| ExecId::new(name).expect("a valid name");
    let mut table = Table::default();
    let output =
        Output::again(CappedBuffer::again(vec![7; 100], 3), CappedBuffer::again(vec![0, 255], 0));
    let entry = CommandEntry {
        output,
        state: State::Ended(Ok(ExecOutcome::never_ran())),
        watchers: Vec::new(),
        killers: Vec::new(),
    };
    table.insert(id("command"), Slot::Command(Box::new(entry)));
    table.finish(id("command"), 102);
    table.insert(id("file"), Slot::File(FileEntry::Done(Ok(FileReply::Done))));
    table.finish(id("file"), 0);
    table.forget_mark(7);
    let mut spills = SpillDir::new(None);
    spills.keep(id("command"), 9);
    written(&table, &spills)
}
