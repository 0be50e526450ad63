//! What is known of a session's sandboxes: which of them live, what is kept of their disks,
//! and what the model is told when one is not as it was left.
//!
//! Owns the words of such news: the journal holds values, and only [`told`] makes
//! sentences of them. Must never say more than the journal knows.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::{CutSandbox, Loss, Replacement, SandboxReady, Seq, SnapshotRef, limits};

/// Sandboxes that were ready once, by name, whether they live or not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Sandboxes(BTreeMap<String, SandboxRecord>);

impl Sandboxes {
    /// What is known of one.
    pub(crate) fn get(&self, name: &str) -> Option<&SandboxRecord> {
        self.0.get(name)
    }

    /// What is known of one that lives.
    pub(crate) fn living(&self, name: &str) -> Option<&SandboxRecord> {
        self.get(name).filter(|known| known.lost.is_none())
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &SandboxRecord)> {
        self.0.iter().map(|(name, known)| (name.as_str(), known))
    }

    /// One is ready at `seq`. Returns what the model is to be told of that.
    pub(crate) fn ready(
        &mut self,
        name: &str,
        ready: &SandboxReady,
        seq: Seq,
        now_ms: u64,
    ) -> Option<String> {
        let before = self.0.remove(name);
        let (known, text) = SandboxRecord::ready(before, name, ready, seq, now_ms);
        self.0.insert(name.to_owned(), known);
        text
    }

    /// A life that is not the current one was mourned before, and its successor lives.
    pub(crate) fn lose(&mut self, name: &str, generation: &str, loss: &Loss) {
        let known = self.0.get_mut(name);
        if let Some(known) = known.filter(|known| known.ready.generation == generation) {
            known.lost.get_or_insert_with(|| loss.clone());
        }
    }

    /// The event `seq` lets something change it.
    pub(crate) fn change(&mut self, name: &str, seq: Seq) {
        if let Some(known) = self.0.get_mut(name) {
            known.changed = Some(seq);
        }
    }

    /// Its disk was kept, and some that were kept before are not any more.
    pub(crate) fn keep(&mut self, name: &str, kept: &SnapshotRef, dropped: &[String]) {
        if let Some(known) = self.0.get_mut(name) {
            known.keep(kept, dropped);
        }
    }

    /// Every disk that is the session's own goes back to what was kept of it; one that was
    /// not there yet begins anew.
    pub(crate) fn set_back(
        &mut self,
        cut: &BTreeMap<String, CutSandbox>,
        is_own: impl Fn(&str) -> bool,
    ) {
        for (name, known) in self.0.iter_mut().filter(|(name, _)| is_own(name)) {
            known.set_back(cut.get(name).and_then(|cut| cut.kept.as_ref()));
        }
        for (name, CutSandbox { ready, kept }) in cut {
            self.0.entry(name.clone()).or_insert_with(|| SandboxRecord {
                ready: ready.clone(),
                lost: Some(Loss::SetBack),
                kept: kept.iter().cloned().collect(),
                changed: None,
            });
        }
    }
}

/// What the fold knows of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SandboxRecord {
    /// As it was ready last.
    pub(crate) ready: SandboxReady,
    /// How that life was lost, if it was.
    pub(crate) lost: Option<Loss>,
    /// What is kept of it, the oldest first.
    pub(crate) kept: Vec<SnapshotRef>,
    /// The last event that let something change it after it was kept.
    pub(crate) changed: Option<Seq>,
}

impl SandboxRecord {
    /// A sandbox is ready at `seq`, in the place of what was known of it. With what
    /// the model is to be told of it.
    fn ready(
        before: Option<Self>,
        name: &str,
        ready: &SandboxReady,
        seq: Seq,
        now_ms: u64,
    ) -> (Self, Option<String>) {
        let ready = ready.clone();
        let Some(before) = before else {
            let (lost, kept) = (None, Vec::new());
            return (Self { ready, lost, kept, changed: Some(seq) }, None);
        };
        let same_life = before.ready.generation == ready.generation;
        let text =
            (!same_life).then(|| told(name, before.lost.as_ref(), ready.replaces.as_ref(), now_ms));
        let changed = match &ready.replaces {
            None | Some(Replacement::Disk) => before.changed,
            // It is as it was kept.
            Some(Replacement::Snapshot(_)) => None,
            Some(Replacement::Start) => Some(seq),
        };
        (Self { ready, lost: None, kept: before.kept, changed }, text)
    }

    /// Its disk goes back to what was kept, and what was kept later is forgotten.
    fn set_back(&mut self, kept: Option<&SnapshotRef>) {
        let known = self.kept.iter().position(|old| Some(old) == kept);
        match known {
            Some(place) => self.kept.truncate(place + 1),
            None => self.kept = kept.into_iter().cloned().collect(),
        }
        (self.lost, self.changed) = (Some(Loss::SetBack), None);
    }

    /// Its disk was kept, and some that were kept before are not any more.
    fn keep(&mut self, kept: &SnapshotRef, dropped: &[String]) {
        self.kept.retain(|old| old.snapshot != kept.snapshot && !dropped.contains(&old.snapshot));
        if self.kept.len() >= limits::KEPT_MAX {
            self.kept.remove(0);
        }
        self.kept.push(kept.clone());
        self.changed = None;
    }
}

/// What the model is told of a sandbox that was lost and stands again.
fn told(name: &str, lost: Option<&Loss>, replaced: Option<&Replacement>, now_ms: u64) -> String {
    if lost == Some(&Loss::SetBack) {
        let disk = match replaced {
            Some(Replacement::Snapshot(kept)) => {
                format!("as they were at {}", clock(kept.at_ms, now_ms))
            }
            Some(Replacement::Disk | Replacement::Start) | None => {
                "its starting content".to_owned()
            }
        };
        return format!(
            "The sandbox `{name}` was started anew: its files are {disk}, and no process of before runs in it."
        );
    }
    let why = lost.map_or_else(String::new, |loss| format!(" ({loss})"));
    match replaced {
        Some(Replacement::Disk) => format!(
            "The sandbox `{name}` was lost{why} and was started again over its old disk: files are as they were left, every process in it is gone."
        ),
        Some(Replacement::Snapshot(kept)) => format!(
            "The sandbox `{name}` was lost{why} and was restarted from its snapshot of {}: every change to its files since then is gone, and so is every process in it.",
            clock(kept.at_ms, now_ms)
        ),
        Some(Replacement::Start) => format!(
            "The sandbox `{name}` and its disk were lost{why}: it is back at its starting content, every change to its files is gone, and so is every process in it."
        ),
        None => format!(
            "The sandbox `{name}` was lost{why} and was made again: every process in it is gone. Look at its files before you rely on them."
        ),
    }
}

/// A time as people write it, with the day if it was another one.
fn clock(at_ms: u64, now_ms: u64) -> String {
    let minutes = at_ms / 60_000 % (24 * 60);
    let time = format!("{:02}:{:02} UTC", minutes / 60, minutes % 60);
    if at_ms / limits::DAY_MS == now_ms / limits::DAY_MS {
        return time;
    }
    let (year, month, day) = civil(at_ms / limits::DAY_MS);
    format!("{year:04}-{month:02}-{day:02}, {time}")
}

/// The date of a day counted from 1970-01-01 in the Gregorian calendar, by Howard
/// Hinnant's `civil_from_days`.
fn civil(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_their_day_only_if_it_is_another() {
        const NOON_2024_02_29: u64 = 1_709_208_240_000;
        for (at_ms, now_ms, text) in [
            (NOON_2024_02_29, NOON_2024_02_29 + 60_000, "12:04 UTC"),
            (NOON_2024_02_29, NOON_2024_02_29 + 86_400_000, "2024-02-29, 12:04 UTC"),
            (0, 86_400_000, "1970-01-01, 00:00 UTC"),
            (951_782_400_000, 0, "2000-02-29, 00:00 UTC"),
            (1_735_689_599_000, 0, "2024-12-31, 23:59 UTC"),
            (u64::MAX, u64::MAX, "14:25 UTC"),
        ] {
            assert_eq!(clock(at_ms, now_ms), text);
        }
    }

    #[test]
    fn the_model_is_told_what_was_lost_and_what_is_there() {
        let kept = SnapshotRef { snapshot: "s".to_owned(), at_ms: 43_440_000 };
        let said = |lost: Option<Loss>, replaced: Option<Replacement>| {
            told("work", lost.as_ref(), replaced.as_ref(), 50_000_000)
        };
        expect_test::expect![[r#"
            The sandbox `work` was lost (it is gone) and was restarted from its snapshot of 12:04 UTC: every change to its files since then is gone, and so is every process in it.
            The sandbox `work` was lost and was started again over its old disk: files are as they were left, every process in it is gone.
            The sandbox `work` and its disk were lost (its disk was changed while nothing ran in it, /a differs): it is back at its starting content, every change to its files is gone, and so is every process in it.
            The sandbox `work` was lost (it was started anew meanwhile) and was made again: every process in it is gone. Look at its files before you rely on them."#]]
        .assert_eq(
            &[
                said(Some(Loss::Gone), Some(Replacement::Snapshot(kept))),
                said(None, Some(Replacement::Disk)),
                said(Some(Loss::Altered("/a differs".to_owned())), Some(Replacement::Start)),
                said(Some(Loss::Replaced), None),
            ]
            .join("\n"),
        );
    }
}
