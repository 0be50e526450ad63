//! What holds for every journal that a driver writes.

use outrigger_agent::{Limit, Record, Recover, State, shrunk};
use proptest::prelude::*;

use crate::build::session;
use crate::world::World;

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// Whatever can be asked of a state, asked.
pub(crate) fn question(state: &State, now_ms: u64) {
    let _ = state.decide(&session(), now_ms);
    for id in 0..=state.seq().0.min(1 << 12) {
        let id = outrigger_agent::Seq(id);
        let _ = state.reserved_for(id);
        if let Some(Recover::Again(started)) = Recover::of(state, id, now_ms) {
            let _ = shrunk(state, &started, Limit::from(state.spent()), now_ms);
        }
        if let Some(effect) = state.effect(id) {
            let _ = state.request_items(&effect.work);
            if let outrigger_agent::Work::CallTool(call) = &effect.work {
                let _ = state.call(call);
            }
        }
    }
    let _ = state.input_tokens_estimate();
}

/// So many, or more if `PROPTEST_CASES` is set to more.
pub(crate) fn cases(at_least: u32) -> u32 {
    let asked = ProptestConfig::default().cases;
    // 256 is what proptest takes when nobody asks.
    if asked > 256 { asked.max(at_least) } else { at_least }
}

fn tape(length: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..length)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(1_000), failure_persistence: None, ..ProptestConfig::default() })]

    /// The checks are in `ledger.rs`, event by event; that this returns at all says
    /// that the driver came to rest.
    #[test]
    fn every_played_session_keeps_the_ledger_and_comes_to_rest(tape in tape(600)) {
        World::play(tape);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_prefix_folds_to_one_state_and_one_decision(tape in tape(400)) {
        let world = World::play(tape);
        let stored: Vec<Record> = serde_json::from_str(&json(&world.journal)).unwrap();
        prop_assert_eq!(&stored, &world.journal);
        let (mut first, mut second) = (State::default(), State::default());
        for (kept, read) in world.journal.iter().zip(&stored) {
            (first, second) = (first.apply(kept), second.apply(read));
            prop_assert_eq!(&first, &second);
            prop_assert_eq!(
                first.decide(&session(), kept.at_ms),
                second.decide(&session(), kept.at_ms)
            );
            if kept.seq.0 % 8 == 0 {
                question(&first, kept.at_ms);
                prop_assert_eq!(json(&first), json(&second));
                // A snapshot in the middle changes nothing of what follows.
                second = serde_json::from_str(&json(&second)).unwrap();
            }
        }
        prop_assert_eq!(json(&first), json(&world.state));
        prop_assert_eq!(json(&second), json(&world.state));
    }
}

/// The generator reaches what it is there for; otherwise the properties above say little.
#[test]
fn the_tapes_reach_every_corner() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut journals = String::new();
    for _ in 0..400 {
        let tape = tape(600).new_tree(&mut runner).unwrap().current();
        journals += &json(&World::play(tape).journal);
    }
    for corner in [
        "\"malformed\"",
        "\"duplicated\"",
        "\"unknown\":{\"available\"",
        "\"cyclic\"",
        "\"too_many\"",
        "\"compact\"",
        "\"provision\"",
        "\"attempt\":2",
        "\"attempt\":3",
        "\"approved\"",
        "\"amended\"",
        "\"amends\"",
        "\"denied\"",
        "\"interrupted\"",
        "\"cancelled\"",
        "\"sandbox_lost\"",
        "\"steps_exhausted\"",
        "\"time_exhausted\"",
        "\"budget_exhausted\"",
        "\"answered\"",
        "\"output_limit\"",
        "\"failed\":\"budget\"",
        "\"paused\"",
    ] {
        assert!(journals.contains(corner), "no tape led to {corner}");
    }
}
