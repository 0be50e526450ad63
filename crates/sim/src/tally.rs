//! What happened in the simulated worlds, counted: a world in which something never
//! happens proves nothing about it.

use std::fmt;

macro_rules! happenings {
    ($($(#[doc = $doc:literal])+ $name:ident => $shown:literal,)+) => {
        /// Something that befalls a session, its harness, its store or its sandbox.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Happening {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Happening {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];
        }

        impl fmt::Display for Happening {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $shown,)+
                })
            }
        }
    };
}

happenings! {
    /// A person approved an effect.
    Approved => "approvals",
    /// A person denied one.
    Denied => "denials",
    /// A person denied one that another had approved.
    Overruled => "approvals overruled by a denial",
    /// A person put other arguments in the place of the model's.
    Amended => "amendments",
    /// A person answered after it had expired.
    Expired => "answers after the expiry",
    /// A person answered about what was over or answered before.
    AnsweredTwice => "answers given twice",
    /// Two people answered at the same moment through two hosts.
    AnsweredAtOnce => "answers given at the same moment",
    /// What was permitted was asked about again because the rules had changed.
    AskedAgain => "permissions withdrawn by other rules",
    /// The rules forbade an effect.
    Forbidden => "effects forbidden",
    /// A harness died before a write.
    KilledBefore => "kills before a write",
    /// A harness died after a write, and nobody was told.
    KilledAfter => "kills after a write",
    /// A harness died between writes.
    KilledBetween => "kills between writes",
    /// A harness died, and a part of its last batch was stored.
    Torn => "batches torn by a kill",
    /// An append failed and stored nothing.
    AppendFailed => "appends failed",
    /// An append failed that said what became of an effect.
    OutcomeRefused => "outcomes that the store refused",
    /// An append was stored, and its caller told that this is not known.
    UncertainStored => "appends uncertain and stored",
    /// An append was not stored, and its caller told that this is not known.
    UncertainLost => "appends uncertain and not stored",
    /// An append came about, or not, after its process had died.
    LandedLate => "appends that outlived their process",
    /// An append lost against another writer.
    Fenced => "appends refused by the fence",
    /// Several hosts drove one session at the same moment.
    Hosts => "moments with several hosts",
    /// A command was found again by its id.
    Reattached => "commands re-attached",
    /// A model call was made again.
    Repeated => "effects begun again after a crash",
    /// The sandbox was lost and its disk stayed.
    LostLife => "sandboxes lost, disk kept",
    /// The sandbox was lost with its disk.
    LostDisk => "sandboxes lost with their disk",
    /// Snapshots were lost.
    LostSnapshots => "snapshots lost",
    /// A lost sandbox began again from what was kept.
    Restored => "sandboxes restored from a snapshot",
    /// The sandbox was suspended by somebody else.
    Suspended => "sandboxes suspended by others",
    /// The backend failed a request.
    BackendFailed => "requests that a backend failed",
    /// The backend did a request, and its answer was lost.
    AnswerLost => "answers of a backend lost",
    /// The backend did not answer for a long time.
    BackendHung => "requests that hung",
    /// A command ran until its deadline.
    CommandHung => "commands that hung until their deadline",
    /// The model could not be asked.
    ModelFailed => "model calls failed",
    /// A person steered a turn.
    Steered => "turns steered",
    /// A person stopped a turn.
    Interrupted => "turns interrupted",
    /// A person ended the session.
    Cancelled => "sessions cancelled",
    /// A person let a turn go on.
    Resumed => "turns resumed",
    /// What became of an effect is unknown.
    Unknown => "outcomes unknown",
    /// A subagent was started by a session that people began.
    Child => "subagents started",
    /// A subagent was started by a subagent.
    Grandchild => "subagents started by subagents",
    /// A subagent began with a copy of the files above.
    ChildCopied => "subagents begun on a copy of the files",
    /// What was reserved for a subagent was not enough for one question.
    ChildStarved => "subagents not started for want of budget",
    /// A session waited because a subagent waited for a person.
    ChildWaited => "sessions that waited for their subagents' people",
    /// A call that ran a subagent was stopped.
    ChildStopped => "subagents stopped with the session above",
    /// A person stopped or ended a subagent, or said something in it.
    ChildMeddled => "subagents meddled with",
    /// A harness died while a subagent could go on.
    KilledAboveChild => "kills while a subagent was under way",
    /// Another process went on with a subagent.
    ChildFoundAgain => "subagents found again by another process",
    /// A host drove a subagent beside those that drive the session above.
    ChildDriven => "subagents driven by a host of their own",
    /// A subagent's sandbox was lost or suspended.
    ChildUnhoused => "sandboxes of subagents lost or suspended",
    /// What a subagent was told by others labelled the session above.
    ChildLabelled => "labels that came up with an answer",
    /// A server outside did what it was asked and did not answer.
    DeskDied => "tools outside that acted and died",
    /// A server outside did not answer in time.
    DeskHung => "tools outside that hung",
    /// A call of a tool outside was made again, under the same key.
    DeskRepeated => "calls of tools outside made again",
    /// What became of a call that may not be made again is not known.
    DeskUnknown => "calls of tools outside left unknown",
    /// An account had no room for what was about to start.
    Withheld => "starts that an account refused",
    /// Less was reserved for a start, because an account had no room for more.
    Shrunk => "starts that an account made smaller",
    /// Everything of an account was stopped.
    Switched => "accounts stopped",
    /// What a stopped account would have started did not start.
    WithheldStopped => "starts refused because the account was stopped",
    /// A turn had no steps left.
    OutOfSteps => "turns out of steps",
    /// A turn did not fit the budget.
    OutOfBudget => "turns out of budget",
}

/// How often each happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally([u64; Happening::ALL.len()]);

impl Default for Tally {
    fn default() -> Self {
        Self([0; Happening::ALL.len()])
    }
}

impl Tally {
    /// One more.
    pub(crate) fn count(&mut self, what: Happening) {
        self.0[what as usize] += 1;
    }

    /// Adds what another counted.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// How often something happened.
    #[must_use]
    pub fn of(&self, what: Happening) -> u64 {
        self.0[what as usize]
    }

    /// What never happened.
    pub fn never(&self) -> impl Iterator<Item = Happening> + '_ {
        Happening::ALL.iter().copied().filter(|what| self.of(*what) == 0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Happening::ALL.iter().try_for_each(|what| writeln!(f, "{:>9} {what}", self.of(*what)))
    }
}
