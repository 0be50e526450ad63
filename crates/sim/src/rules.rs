//! The rules that can be in force in a simulated world, and what each says of an
//! effect, told without asking the rules: the oracle of "no effect without a decision".

use outrigger_agent::Work;
use outrigger_policy::RuleSet;

use crate::family;
use crate::seed::draws;

/// What is permitted as usual, and tools outside.
const PERMITS: &str = r#"
@id("model") permit (principal, action == Action::"ask_model", resource);
@id("inside") permit (principal, action in Action::"inside", resource);
@id("below") permit (principal, action == Action::"start_subagent", resource);
@id("outside") permit (principal, action == Action::"call_outside_tool", resource);
"#;

/// Beside what is permitted, every command is asked about.
const ASKING: &str = r#"
@id("commands-ask") @approvable("anyone")
forbid (principal, action == Action::"execute", resource);
"#;

/// Beside what is permitted, every command of a subagent is asked about.
const ASKING_BELOW: &str = r#"
@id("commands-below-ask") @approvable("anyone")
forbid (principal, action == Action::"execute", resource) when { context.depth > 0 };
"#;

/// Beside what is permitted, no file tool writes: that is said of the agent of
/// the session that people began, and so holds of all that it starts.
const READING: &str = r#"
@id("no-writing")
forbid (principal == Agent::"default", action == Action::"write_files", resource);
"#;

/// Which rules are in force where a harness runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Within the sandbox everything is permitted.
    Usual,
    /// Commands are asked about.
    Asking,
    /// Commands of subagents are asked about.
    AskingBelow,
    /// File tools may not write.
    Reading,
}

/// What the rules should say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    Yes,
    Ask,
    No,
}

impl Kind {
    /// The rules of a seed's session, as long as nobody changes them.
    pub(crate) fn of(seed: u64) -> Self {
        match draws(seed, 9).u8(..8) {
            0..3 if family::has(seed) => Self::AskingBelow,
            0..4 => Self::Usual,
            4..7 => Self::Asking,
            _ => Self::Reading,
        }
    }

    /// Whatever somebody takes into force.
    pub(crate) fn any(rng: &mut fastrand::Rng) -> Self {
        [Self::Usual, Self::Asking, Self::AskingBelow, Self::Reading][rng.usize(..4)]
    }

    /// Of work in a session that people began, or below one.
    pub(crate) fn says(self, work: &Work, is_below: bool) -> Says {
        let Work::CallTool(call) = work else { return Says::Yes };
        match (self, call.tool.as_str()) {
            (Self::Asking, "execute") => Says::Ask,
            (Self::AskingBelow, "execute") if is_below => Says::Ask,
            (Self::Usual, "mcp__outside__send" | "mcp__outside__put") => Says::Ask,
            (Self::Reading, "write_file" | "edit_file") => Says::No,
            _ => Says::Yes,
        }
    }
}

/// All rules, made once: reading them takes long.
#[derive(Debug)]
pub(crate) struct Books {
    usual: RuleSet,
    asking: RuleSet,
    asking_below: RuleSet,
    reading: RuleSet,
}

impl Books {
    pub(crate) fn new() -> Self {
        let read = |text: &str| {
            let text = format!("{PERMITS}{text}");
            RuleSet::from_cedar(&text).expect("the rules above are sound")
        };
        Self {
            usual: RuleSet::local_default(),
            asking: read(ASKING),
            asking_below: read(ASKING_BELOW),
            reading: read(READING),
        }
    }

    pub(crate) fn get(&self, kind: Kind) -> &RuleSet {
        match kind {
            Kind::Usual => &self.usual,
            Kind::Asking => &self.asking,
            Kind::AskingBelow => &self.asking_below,
            Kind::Reading => &self.reading,
        }
    }
}
