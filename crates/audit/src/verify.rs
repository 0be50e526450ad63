//! Verifies the log itself, one entry after the other: against its checkpoints, its copy,
//! and checkpoints that somebody kept. Gives what the chains of the sessions must fit
//! beside what the database has of them.
//!
//! Must never hold the log, which may be larger than memory: only what differs in it.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_agent::{Digest, Seq, SessionId};
use tlog_tiles::{EMPTY_HASH, Hash};

use crate::checkpoint::{ExternalCheckpoint, NoteFault, SignedCheckpoint, VerifyingKey};
use crate::copy::LogCopyLines;
use crate::error::Error;
use crate::limits;
use crate::log::{Frontier, LogEntry};
use crate::report::{Finding, Location};

/// What the log has for a session.
#[derive(Debug, Default)]
pub struct SessionLinks {
    /// Its links, by place.
    pub links: BTreeMap<Seq, Digest>,
    /// The number of its last entry.
    last: u64,
    /// Whether its last entry says that it was removed on purpose.
    pub is_removed: bool,
}

impl SessionLinks {
    /// Adds an entry, whose link is believed rather than one that was added before.
    pub fn add(&mut self, number: u64, seq: Seq, link: Digest) {
        let is_removed = seq == LogEntry::REMOVED;
        if number >= self.last {
            (self.last, self.is_removed) = (number, is_removed);
        }
        if !is_removed {
            self.links.insert(seq, link);
        }
    }
}

/// What the copy corrects in the log. Where the database's log is not as it was signed,
/// its copy is believed rather.
#[derive(Debug)]
pub struct Corrections {
    /// Entries by session, with their numbers.
    pub entries: BTreeMap<SessionId, Vec<(u64, Seq, Digest)>>,
    /// Numbers of entries of the database that are not believed.
    instead_of: BTreeSet<u64>,
    /// From which number on the database alone is not believed that a session was removed.
    removals_below: u64,
}

impl Corrections {
    /// Whether an entry of the database is believed.
    #[must_use]
    pub fn believes(&self, number: u64, seq: Seq) -> bool {
        let is_removal_alone = seq == LogEntry::REMOVED && number >= self.removals_below;
        !is_removal_alone && !self.instead_of.contains(&number)
    }
}

/// What was found in the log.
#[derive(Debug)]
pub struct LogFindings {
    /// How many entries the database has.
    pub entries: u64,
    /// What its copy says of sessions instead.
    pub corrections: Corrections,
    /// What is wrong, at most [`limits::FAULTS_MAX`].
    pub faults: Vec<Finding>,
    /// How many more there were.
    pub faults_left_out: u64,
    /// The newest checkpoint that fits.
    pub checkpoint: Option<String>,
}

/// A check that goes along the log.
#[derive(Debug)]
pub struct LogVerifier {
    key: Option<VerifyingKey>,
    /// Checkpoints from outside the database, which the log must continue.
    against: Vec<(String, Result<SignedCheckpoint, NoteFault>)>,
    /// The sizes of the newest checkpoints, the newest first.
    newest: Vec<u64>,
    copy: Option<LogCopyLines>,
    differing: CopyDifferences,
    /// The log up to its first gap.
    frontier: Frontier,
    has_gap: bool,
    /// The roots at the sizes of `against`.
    roots: BTreeMap<u64, Hash>,
    /// The size of the last checkpoint that fits.
    fitting: u64,
    /// Whether a checkpoint did not fit: none after it does.
    is_forged: bool,
    /// The first entry that no checkpoint covers.
    uncovered: Option<(u64, LogEntry)>,
    checked: LogFindings,
}

/// How the copy differs from the database.
#[derive(Debug, Default)]
struct CopyDifferences {
    /// The first entry of the copy that does, and whether the database has one there.
    first: Option<(u64, LogEntry, bool)>,
    /// The entries that do, and whether the database has one there.
    entries: Vec<(u64, LogEntry, bool)>,
    left_out: u64,
}

impl CopyDifferences {
    fn add(&mut self, number: u64, entry: LogEntry, is_there: bool) {
        if self.first.is_none() {
            self.first = Some((number, entry.clone(), is_there));
        }
        if self.entries.len() < limits::DIFFERING_ENTRIES_MAX {
            self.entries.push((number, entry, is_there));
        } else {
            self.left_out += 1;
        }
    }
}

impl LogVerifier {
    /// A check with the key that must have signed, checkpoints from outside, the copy as
    /// it was before the log is read, and the sizes of the newest checkpoints.
    #[must_use]
    pub fn new(
        key: Option<VerifyingKey>,
        against: &[ExternalCheckpoint],
        copy: Option<LogCopyLines>,
        newest: Vec<u64>,
    ) -> Self {
        let open = |outside: &ExternalCheckpoint| {
            Some((outside.name.clone(), key.as_ref()?.open(&outside.note)))
        };
        let mut check = Self {
            against: against.iter().filter_map(open).collect(),
            key,
            newest,
            copy,
            differing: CopyDifferences::default(),
            frontier: Frontier::default(),
            has_gap: false,
            roots: BTreeMap::from([(0, EMPTY_HASH)]),
            fitting: 0,
            is_forged: false,
            uncovered: None,
            checked: LogFindings {
                entries: 0,
                corrections: Corrections {
                    entries: BTreeMap::new(),
                    instead_of: BTreeSet::new(),
                    removals_below: u64::MAX,
                },
                faults: Vec::new(),
                faults_left_out: 0,
                checkpoint: None,
            },
        };
        if check.key.is_none() && !(against.is_empty() && check.newest.is_empty()) {
            check.no_key();
        }
        check
    }

    fn no_key(&mut self) {
        if self.checked.faults.is_empty() {
            let what = "it is missing, so no signature can be checked";
            self.checked.faults.push(Finding::file("audit/key.pub", what));
        }
    }

    /// Checks the next entry, and the checkpoint that ends with it.
    ///
    /// # Errors
    /// What keeps the copy from being read.
    pub fn entry(
        &mut self,
        number: u64,
        entry: &LogEntry,
        checkpoint: Option<(&str, &str)>,
    ) -> Result<(), Error> {
        self.compare(number, entry)?;
        self.checked.entries += 1;
        if self.key.is_none() {
            self.no_key();
            return Ok(());
        }
        if self.uncovered.is_none() && number >= self.newest.first().copied().unwrap_or(0) {
            self.uncovered = Some((number, entry.clone()));
        }
        self.has_gap |= number != self.frontier.size();
        if self.has_gap {
            return Ok(());
        }
        self.frontier.push(entry.hash());
        let size = self.frontier.size();
        let is_asked = |(_, opened): &(String, Result<SignedCheckpoint, NoteFault>)| {
            opened.as_ref().is_ok_and(|opened| opened.checkpoint.size == size)
        };
        if self.against.iter().any(is_asked) {
            self.roots.insert(size, self.frontier.root());
        }
        if let Some((note, frontier)) = checkpoint {
            self.checkpoint(size, note, frontier);
        }
        Ok(())
    }

    /// How many entries there are before the first gap. Checkpoints of more are checked
    /// once all entries are.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// Checks a checkpoint of the database. Only the first root that does not fit is told.
    pub fn checkpoint(&mut self, size: u64, note: &str, frontier: &str) {
        let Some(key) = &self.key else { return };
        let place = Location::Checkpoint { size };
        let opened = match key.open_own(note) {
            Ok(opened) if opened.checkpoint.size == size && size > 0 => opened.checkpoint,
            Ok(_) => return self.checked.fault(place, "it is of another size"),
            Err(fault) => return self.checked.fault(place, fault.to_string()),
        };
        let is_there = size == self.frontier.size();
        if is_there && opened.root == self.frontier.root() {
            self.fitting = size;
            self.checked.checkpoint = Some(note.to_owned());
            if self.frontier.to_text() != frontier {
                self.checked.fault(place, "what is kept to go on from it does not fit it");
            }
        } else if !self.is_forged {
            self.is_forged = true;
            let (fitting, last) = (self.fitting, size - 1);
            let what = if is_there {
                format!(
                    "the log does not fit it: of the entries {fitting} to {last} at least one was changed, removed or put in"
                )
            } else {
                format!("the log ends after {} of them", self.frontier.size())
            };
            self.checked.fault(place, what);
        }
    }

    /// Compares the copy up to an entry. It may lag behind the log, and never differs.
    fn compare(&mut self, number: u64, entry: &LogEntry) -> Result<(), Error> {
        let Some(copy) = &mut self.copy else { return Ok(()) };
        while copy.size <= number {
            let at = copy.size;
            match copy.next_entry()? {
                None => break,
                Some(copied) if at == number => {
                    if copied != *entry {
                        self.differing.add(at, copied, true);
                    }
                }
                Some(copied) => self.differing.add(at, copied, false),
            }
        }
        Ok(())
    }

    /// The end of the log: what is beside it now, which is how many entries the copy has,
    /// if its end can be read, and whether a checkpoint lies there.
    ///
    /// # Errors
    /// What keeps the copy from being read.
    pub fn finish(mut self, copied: Option<u64>, noted: bool) -> Result<LogFindings, Error> {
        while let Some(copy) = &mut self.copy {
            let at = copy.size;
            let Some(entry) = copy.next_entry()? else { break };
            self.differing.add(at, entry, false);
        }
        let mut proven = false;
        if self.key.is_some() {
            let own = std::mem::take(&mut self.checked.faults);
            self.gap();
            self.check_against();
            self.checked.faults.extend(own);
            self.check_covered();
            proven = self.checked.faults.is_empty();
            self.missing(copied, noted);
            self.check_copy(proven);
        }
        let corrections = &mut self.checked.corrections;
        if let Some(copy) = self.copy.filter(|_| !proven) {
            corrections.removals_below = copy.size;
        }
        for (number, LogEntry { session, seq, link }, is_there) in self.differing.entries {
            if is_there && proven {
                continue;
            }
            corrections.instead_of.insert(number);
            corrections.entries.entry(session).or_default().push((number, seq, link));
        }
        Ok(self.checked)
    }

    fn gap(&mut self) {
        if self.has_gap {
            let entry = self.frontier.size();
            self.checked
                .fault(Location::Entry { entry, session: None, seq: None }, "it is missing");
        }
    }

    fn check_covered(&mut self) {
        if let Some((entry, found)) = self.uncovered.take() {
            let (session, seq) = (Some(found.session), Some(found.seq));
            self.checked.fault(Location::Entry { entry, session, seq }, "no checkpoint covers it");
        }
    }

    /// Checkpoints from outside.
    fn check_against(&mut self) {
        for (name, opened) in std::mem::take(&mut self.against) {
            let checkpoint = match opened {
                Ok(opened) => opened.checkpoint,
                Err(fault) => {
                    self.checked.faults.push(Finding::file(&name, fault.to_string()));
                    continue;
                }
            };
            let size = checkpoint.size;
            let what = match self.roots.get(&size) {
                Some(root) if *root == checkpoint.root => continue,
                Some(_) => {
                    "the log is no continuation of it: an entry that it covers is another one now"
                        .to_owned()
                }
                None => format!(
                    "the log ends after {} of them: it was cut, or an older database was put in place",
                    self.frontier.size()
                ),
            };
            self.checked.fault(Location::Kept { name, size }, what);
        }
    }

    /// What should stand beside the database and does not. A crash leaves the copy behind
    /// by the one checkpoint that was not copied yet, several crashes by several.
    fn missing(&mut self, copied: Option<u64>, noted: bool) {
        let Some(due) = self.newest.get(1) else { return };
        let size = self.checked.entries;
        let lagging = self.newest.get(limits::COPY_LAG_CHECKPOINTS_MAX);
        let cut = copied.filter(|copied| lagging.is_some_and(|due| copied < due));
        let faults = &mut self.checked.faults;
        if copied == Some(0) {
            let what = format!("it is missing or empty, and the database has {size} entries");
            faults.push(Finding::file("audit/log", what));
        } else if let Some(copied) = cut {
            let what = format!("its end was cut off: it has {copied} entries of {size}");
            faults.push(Finding::file("audit/log", what));
        }
        if !noted {
            let what = format!("it is missing, and the log has one of {due} entries and newer");
            faults.push(Finding::file("audit/checkpoint", what));
        }
    }

    fn check_copy(&mut self, proven: bool) {
        let Some(copy) = &self.copy else { return };
        let faults = &mut self.checked.faults;
        if copy.is_broken {
            let what = format!("line {} is no entry of the log", copy.size + 1);
            faults.push(Finding::file("audit/log", what));
        }
        if self.differing.left_out > 0 {
            let (told, more) = (limits::DIFFERING_ENTRIES_MAX, self.differing.left_out);
            let what = format!(
                "it differs so often that the sessions were compared with the first {told} entries of it that do, and not with {more} more"
            );
            faults.push(Finding::file("audit/log", what));
        }
        let Some((entry, found, is_there)) = self.differing.first.take() else { return };
        let what = if !is_there {
            let (size, copied) = (self.checked.entries, copy.size);
            format!(
                "only its copy in audit/log is left: the database has {size} entries of {copied}"
            )
        } else if proven {
            "its copy in audit/log was changed; the database has what was signed".to_owned()
        } else {
            "it is another one than its copy in audit/log".to_owned()
        };
        let (session, seq) = (Some(found.session), Some(found.seq));
        self.checked.fault(Location::Entry { entry, session, seq }, what);
    }
}

impl LogFindings {
    fn fault(&mut self, place: Location, what: impl Into<String>) {
        if self.faults.len() < limits::FAULTS_MAX {
            self.faults.push(Finding { place, what: what.into() });
        } else {
            self.faults_left_out += 1;
        }
    }
}
