//! A session's sandboxes: how each was asked for, what is kept of its disk, and what
//! the model is told when one is not as it was left.
//!
//! Owns the words of such news: the journal holds values, and only [`told`] makes
//! sentences of them. Must never say more than the journal knows.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::{Seq, limits};

/// A sandbox of a session, as it was asked for when the session was opened. The
/// first one of a session is where its tools act; each further one has tools of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Its name in the session, for example `work`.
    pub name: String,
    /// The backend that it is made in. Another one does not have its disk.
    pub backend: String,
    /// The least isolation that the session accepts, for example `rootless_single`.
    pub isolation_min: String,
    /// Whether it is filled with the session's workspace.
    pub workspace: bool,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "SandboxScope::is_thread")]
    pub scope: SandboxScope,
}

/// Whose a sandbox is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxScope {
    /// The session's alone, and destroyed with it.
    #[default]
    Thread,
    /// Shared by the sessions of an assistant, and not destroyed with one of them.
    Assistant(String),
}

impl SandboxScope {
    /// Whether it is the session's alone.
    #[must_use]
    pub fn is_thread(&self) -> bool {
        *self == Self::Thread
    }
}

/// How a sandbox was lost, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// It was not there any more.
    #[default]
    Gone,
    /// It was started anew by somebody else.
    Replaced,
    /// It ended while something ran in it, with what its backend said.
    Died(String),
    /// Its disk was changed while nothing ran in it, with what differs.
    Altered(String),
    /// The session stands on an earlier moment, to which its disk goes back.
    SetBack,
}

/// In the middle of a sentence.
impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => formatter.write_str("it is gone"),
            Self::Replaced => formatter.write_str("it was started anew meanwhile"),
            Self::SetBack => formatter.write_str("it was set back"),
            Self::Died(detail) => formatter.write_str(detail),
            Self::Altered(detail) => {
                write!(formatter, "its disk was changed while nothing ran in it, {detail}")
            }
        }
    }
}

/// What stands where a sandbox was lost. Processes are gone in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    /// The same disk: files are as they were left, to the last write or not.
    Disk,
    /// A disk as it was when this was kept.
    Snapshot(Kept),
    /// A new disk, with the starting content if the sandbox has one.
    Start,
}

/// A disk that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The snapshot's name at its backend.
    pub snapshot: String,
    /// When it was taken, milliseconds since 1970.
    pub at_ms: u64,
}

/// A sandbox that is ready for use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReady {
    /// Its id at its backend.
    pub id: String,
    /// Which life of it.
    pub generation: String,
    /// Name of the backend.
    pub backend: String,
    /// How it is isolated, for example `root_range`.
    pub isolation: String,
    /// Which disk it has, by when that was made, in milliseconds since 1970 by its
    /// backend's clock. Nothing where the backend does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_made_at_ms: Option<u64>,
    /// What of the life before it has, if there was one in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Replacement>,
}

/// What the fold knows of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// As it was ready last.
    pub(crate) ready: SandboxReady,
    /// How that life was lost, if it was.
    pub(crate) lost: Option<Loss>,
    /// What is kept of it, the oldest first.
    pub(crate) kept: Vec<Kept>,
    /// The last event that let something change it after it was kept.
    pub(crate) changed: Option<Seq>,
}

impl Known {
    /// A sandbox is ready at `seq`, in the place of what was known of it. With what
    /// the model is to be told of it.
    pub(crate) fn ready(
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
    pub(crate) fn set_back(&mut self, kept: Option<&Kept>) {
        let known = self.kept.iter().position(|old| Some(old) == kept);
        match known {
            Some(place) => self.kept.truncate(place + 1),
            None => self.kept = kept.into_iter().cloned().collect(),
        }
        (self.lost, self.changed) = (Some(Loss::SetBack), None);
    }

    /// Its disk was kept, and some that were kept before are not any more.
    pub(crate) fn keep(&mut self, kept: &Kept, dropped: &[String]) {
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
        let kept = Kept { snapshot: "s".to_owned(), at_ms: 43_440_000 };
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
