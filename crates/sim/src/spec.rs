//! What a seed's sessions are opened with.

use outrigger_agent::{Approvals, Limit, ModelSpec, Spec, TurnLimits, WhenBusy, Workspace};

use crate::seed::draws;
use crate::{family, limits, outside_tools};

/// Name of the sandbox in the simulated sessions.
pub(crate) const SANDBOX: &str = "work";

/// The tokens that a seed's session may spend, if they are few: a lost attempt
/// stays charged, so such a session may end earlier when it was killed.
fn few_tokens(seed: u64) -> Option<u64> {
    let mut rng = draws(seed, 41);
    (rng.u8(..) < 40).then(|| rng.u64(5_000..40_000))
}

/// The steps that a turn may take, if they are few.
fn few_steps(rng: &mut fastrand::Rng) -> Option<u64> {
    (rng.u8(..) < 40).then(|| rng.u64(1..12))
}

fn spec_draws(seed: u64) -> fastrand::Rng {
    draws(seed, 33)
}

/// Whether what a lost attempt costs can be missing in the end, or a lost call of a tool
/// outside is not made again.
pub(crate) fn is_poor(seed: u64) -> bool {
    let few_steps_below = family::has(seed) && few_steps(&mut spec_draws(seed)).is_some();
    few_tokens(seed).is_some()
        || family::is_tight(seed)
        || few_steps_below
        || outside_tools::has(seed)
}

/// After how long a seed's questions are denied, if ever.
fn expiry(seed: u64) -> Option<u64> {
    let mut rng = draws(seed, 49);
    (rng.u8(..) < 64).then_some(limits::EXPIRE_MS)
}

pub(crate) fn spec(seed: u64, workspace: Workspace) -> Spec {
    let mut rng = spec_draws(seed);
    // Now and then the limits bite.
    let steps_max = few_steps(&mut rng).unwrap_or(1_000);
    let tokens = few_tokens(seed).unwrap_or(10_000_000);
    Spec {
        principal: "person:sim".to_owned(),
        model: ModelSpec {
            name: "simulated".to_owned(),
            provider: "simulated".to_owned(),
            address: None,
            context_tokens: 200_000,
            output_tokens_max: 4_000,
            scripted: true,
            price: None,
        },
        system: "You are simulated.".to_owned(),
        tools: family::tools(seed, SANDBOX),
        budget: Limit { steps: Some(10_000), tokens: Some(tokens), ..Limit::NONE },
        soft: Limit::NONE,
        turn: TurnLimits { steps_max, wall_ms_max: 3_600_000 },
        approvals: Approvals { expire_ms: expiry(seed), escalate_ms: None },
        when_busy: WhenBusy::default(),
        workspace: Some(workspace),
        sandboxes: Vec::new(),
        role: family::role(seed),
    }
}

/// A workspace with one file.
pub(crate) fn archive() -> Vec<u8> {
    let mut builder = outrigger_engine::workspace::Builder::default();
    builder.file("seed", b"a", false);
    builder.finish()
}
