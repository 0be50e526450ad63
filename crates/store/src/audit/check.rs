//! Checks the log itself: its entries against its checkpoints, its copy, and
//! checkpoints that somebody kept. Gives what the chains of the sessions must then fit.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_agent::{Digest, Seq, SessionId};
use tlog_tiles::{EMPTY_HASH, Hash};

use super::copy::Lines;
use super::{Edge, Entry, Fault, NoteFault, Opened, Outside, Place, VerifyingKey};
use crate::limits;

/// The log as the database has it, and what stands beside it.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Entries with their numbers, in that order.
    pub(crate) entries: Vec<(u64, Entry)>,
    /// Checkpoints in the order of their sizes: size, note, and the edge.
    pub(crate) checkpoints: Vec<(u64, String, String)>,
    pub(crate) copy: Option<Lines>,
    /// How many entries the copy had when the database had been read; nothing if its end
    /// can't be read, which `copy` tells.
    pub(crate) copied: Option<u64>,
    /// Whether a checkpoint lay beside it then.
    pub(crate) noted: bool,
    pub(crate) key: Option<VerifyingKey>,
    /// Checkpoints from outside the database, which the log must continue.
    pub(crate) against: Vec<Outside>,
}

/// What the log has for each session.
pub(crate) type Chains = BTreeMap<SessionId, Chain>;

/// What the log has for a session.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// Its links, by place.
    pub(crate) links: BTreeMap<Seq, Digest>,
    /// Whether its last entry says that it was removed on purpose.
    pub(crate) is_removed: bool,
}

impl Chain {
    fn add(&mut self, seq: Seq, link: &Digest) {
        self.is_removed = seq == Entry::REMOVED;
        if !self.is_removed {
            self.links.insert(seq, link.clone());
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) chains: Chains,
    pub(crate) faults: Vec<Fault>,
    pub(crate) checkpoint: Option<String>,
}

/// Checks the log.
pub(crate) fn check(kept: &Kept) -> Checked {
    let mut checked = Checked::default();
    let Some(key) = &kept.key else {
        let signed = !kept.entries.is_empty() || !kept.checkpoints.is_empty();
        if signed || !kept.against.is_empty() {
            let what = "it is missing, so no signature can be checked";
            checked.faults.push(Fault::file("audit/key.pub", what));
        }
        checked.add_chains(kept, false);
        return checked;
    };
    let open = |outside: &Outside| (outside.name.clone(), key.open(&outside.note));
    let against: Vec<_> = kept.against.iter().map(open).collect();
    let sizes = against.iter().flat_map(|(_, opened)| opened).map(|opened| opened.checkpoint.size);
    let sizes = sizes.chain(kept.checkpoints.iter().map(|(size, ..)| *size)).collect();
    let tree = Roots::of(&kept.entries, &sizes);
    checked.faults.extend(tree.gap.map(|entry| Fault {
        place: Place::Entry { entry, session: None, seq: None },
        what: "it is missing".to_owned(),
    }));
    checked.against(&against, &tree);
    checked.checkpoints(kept, key, &tree);
    let proven = checked.faults.is_empty();
    checked.missing(kept);
    checked.copy(kept, proven);
    checked.add_chains(kept, proven);
    checked
}

/// The roots of a log at certain sizes.
struct Roots {
    /// How many entries there are before the first gap.
    size: u64,
    /// The number of the first entry that is missing before others.
    gap: Option<u64>,
    at: BTreeMap<u64, (Hash, String)>,
}

impl Roots {
    fn of(entries: &[(u64, Entry)], sizes: &BTreeSet<u64>) -> Self {
        let (mut edge, mut at) = (Edge::default(), BTreeMap::new());
        at.insert(0, (EMPTY_HASH, String::new()));
        for (number, entry) in entries {
            if *number != edge.size() {
                return Self { size: edge.size(), gap: Some(edge.size()), at };
            }
            edge.push(entry.hash());
            if sizes.contains(&edge.size()) {
                at.insert(edge.size(), (edge.root(), edge.to_text()));
            }
        }
        Self { size: edge.size(), gap: None, at }
    }
}

impl Checked {
    fn fault(&mut self, place: Place, what: impl Into<String>) {
        self.faults.push(Fault { place, what: what.into() });
    }

    /// The database's own checkpoints. Only the first root that does not fit is told:
    /// none after it does.
    fn checkpoints(&mut self, kept: &Kept, key: &VerifyingKey, tree: &Roots) {
        let (mut fitting, mut forged) = (0, false);
        for (size, note, edge) in &kept.checkpoints {
            let size = *size;
            let place = Place::Checkpoint { size };
            let opened = match key.open_own(note) {
                Ok(opened) if opened.checkpoint.size == size && size > 0 => opened.checkpoint,
                Ok(_) => {
                    self.fault(place, "it is of another size");
                    continue;
                }
                Err(fault) => {
                    self.fault(place, fault.to_string());
                    continue;
                }
            };
            match tree.at.get(&size) {
                Some((root, known)) if *root == opened.root => {
                    fitting = size;
                    self.checkpoint = Some(note.clone());
                    if known != edge {
                        self.fault(place, "what is kept to go on from it does not fit it");
                    }
                }
                found if !forged => {
                    forged = true;
                    let last = size - 1;
                    let what = match found {
                        Some(_) => format!(
                            "the log does not fit it: of the entries {fitting} to {last} at least one was changed, removed or put in"
                        ),
                        None => format!("the log ends after {} of them", tree.size),
                    };
                    self.fault(place, what);
                }
                _ => {}
            }
        }
        let covered = kept.checkpoints.last().map_or(0, |(size, ..)| *size);
        if let Some((entry, found)) = kept.entries.iter().find(|(number, _)| *number >= covered) {
            let (session, seq) = (Some(found.session.clone()), Some(found.seq));
            let place = Place::Entry { entry: *entry, session, seq };
            self.fault(place, "no checkpoint covers it");
        }
    }

    /// Checkpoints from outside.
    fn against(&mut self, against: &[(String, Result<Opened, NoteFault>)], tree: &Roots) {
        for (name, opened) in against {
            let checkpoint = match opened {
                Ok(opened) => &opened.checkpoint,
                Err(fault) => {
                    self.faults.push(Fault::file(name, fault.to_string()));
                    continue;
                }
            };
            let size = checkpoint.size;
            let what = match tree.at.get(&size) {
                Some((root, _)) if *root == checkpoint.root => continue,
                Some(_) => {
                    "the log is no continuation of it: an entry that it covers is another one now"
                        .to_owned()
                }
                None => format!(
                    "the log ends after {} of them: it was cut, or an older database was put in place",
                    tree.size
                ),
            };
            self.fault(Place::Kept { name: name.clone(), size }, what);
        }
    }

    /// What should stand beside the database and does not. A crash leaves the copy behind
    /// by the one checkpoint that was not copied yet, several crashes by several.
    fn missing(&mut self, kept: &Kept) {
        let before = |newest: usize| kept.checkpoints.iter().rev().nth(newest);
        let Some((due, ..)) = before(1) else { return };
        let size = kept.entries.len();
        if kept.copied == Some(0) {
            let what = format!("it is missing or empty, and the database has {size} entries");
            self.faults.push(Fault::file("audit/log", what));
        } else if let Some((due, ..)) = before(limits::COPY_LAG_CHECKPOINTS_MAX)
            && let Some(copied) = kept.copied
            && copied < *due
        {
            let what = format!("its end was cut off: it has {copied} entries of {size}");
            self.faults.push(Fault::file("audit/log", what));
        }
        if !kept.noted {
            let what = format!("it is missing, and the log has one of {due} entries and newer");
            self.faults.push(Fault::file("audit/checkpoint", what));
        }
    }

    /// The copy beside the database, which may lag behind and never differ.
    fn copy(&mut self, kept: &Kept, proven: bool) {
        let Some(copy) = &kept.copy else { return };
        if let Some(line) = copy.broken {
            let what = format!("line {} is no entry of the log", line + 1);
            self.faults.push(Fault::file("audit/log", what));
        }
        let known: BTreeMap<u64, &Entry> = kept.entries.iter().map(|(n, e)| (*n, e)).collect();
        let differs = |(number, entry): &(u64, &Entry)| known.get(number) != Some(entry);
        let Some((entry, found)) = (0..).zip(&copy.entries).find(differs) else { return };
        let (session, seq) = (Some(found.session.clone()), Some(found.seq));
        let place = Place::Entry { entry, session, seq };
        let what = match known.get(&entry) {
            Some(_) if proven => {
                "its copy in audit/log was changed; the database has what was signed".to_owned()
            }
            Some(_) => "it is another one than its copy in audit/log".to_owned(),
            None => format!(
                "only its copy in audit/log is left: the database has {} entries of {}",
                known.len(),
                copy.entries.len()
            ),
        };
        self.fault(place, what);
    }

    /// What the sessions must fit. Where the database's log is not as it was signed,
    /// its copy is believed rather.
    fn add_chains(&mut self, kept: &Kept, proven: bool) {
        let copies = kept.copy.iter().flat_map(|copy| (0..).zip(&copy.entries));
        let size = kept.entries.len() as u64;
        let copies = copies.filter(|(number, _)| !proven || *number >= size);
        let entries = kept.entries.iter().map(|(_, entry)| entry);
        for Entry { session, seq, link } in entries.chain(copies.map(|(_, entry)| entry)) {
            self.chains.entry(session.clone()).or_default().add(*seq, link);
        }
    }
}
