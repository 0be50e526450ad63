//! People who are asked: who answers late, twice, or against each other.
//!
//! Owns which seeds have rules that ask, and that what is answered depends on the seed
//! and on the call alone, so that a run with crashes can be compared with one without.

use outrigger_agent::{Answer, Record, Seq, State, Work};
use outrigger_engine::{Answering, Engine, Error};
use outrigger_policy::RuleSet;
use std::time::Duration;

use crate::Violation;
use crate::limits;
use crate::world::World;

/// Beside the usual rules of some seeds.
const ASKING: &str = r#"
@id("model") permit (principal, action == Action::"ask_model", resource);
@id("inside") permit (principal, action in Action::"inside", resource);
@id("commands-ask") @approvable("anyone")
forbid (principal, action == Action::"execute", resource);
"#;

/// The rules of a seed: of one in four they ask about commands.
pub(crate) fn rules(seed: u64) -> RuleSet {
    if seed.rotate_left(9) % 4 != 1 {
        return RuleSet::local_default();
    }
    RuleSet::from_cedar(ASKING).expect("the rules above are sound")
}

/// What is said about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Yes,
    No,
    Otherwise,
    /// Yes, and another one says no before anything has begun.
    YesAndNo,
}

/// A call's words, that no crash changes.
fn says(seed: u64, call: &str, was_amended: bool) -> Says {
    let number = call.bytes().fold(seed, |sum, byte| sum.wrapping_mul(131) ^ u64::from(byte));
    match fastrand::Rng::with_seed(number).u8(..8) {
        0..4 => Says::Yes,
        4 | 5 => Says::No,
        6 if !was_amended => Says::Otherwise,
        6 => Says::Yes,
        _ => Says::YesAndNo,
    }
}

fn denied() -> Answer {
    Answer::Denied { reason: "simulated".to_owned() }
}

impl World {
    /// Answers about the first of the effects that wait, after some time.
    pub(crate) async fn answer(&self, effect: Seq, state: &State) -> Result<(), Violation> {
        let failed = |error: Error| Violation::Engine(outrigger_engine::workspace::explain(&error));
        let Some(waiting) = state.effect(effect) else { return Ok(()) };
        let (Work::CallTool(call), Some(asked)) = (&waiting.work, &waiting.asked) else {
            return Err(Violation::Unsettled(effect));
        };
        let seed = self.seed;
        // Days, without anything that is held.
        tokio::time::sleep(Duration::from_millis(limits::ANSWER_MS)).await;
        let engine = self.bystander();
        let arguments = Some(call.arguments.clone());
        let given = |by: &str, answer: Answer| Answering {
            effect,
            by: format!("person:{by}"),
            arguments: arguments.clone(),
            answer,
        };
        let yes = Answer::Approved { rule_set: asked.rule_set, seen: None };
        let first = match says(seed, &call.call, call.amends.is_some()) {
            Says::Yes | Says::YesAndNo => yes.clone(),
            Says::No => denied(),
            Says::Otherwise => {
                let word = call.call.trim_start_matches("call_").replace('_', ".");
                let command = format!("append /workspace/log w{word}-amended");
                Answer::Amended { arguments: format!(r#"{{"command":"{command}"}}"#) }
            }
        };
        engine.answer(&self.session, given("ada", first)).await.map_err(failed)?;
        if says(seed, &call.call, call.amends.is_some()) == Says::YesAndNo {
            engine.answer(&self.session, given("ben", denied())).await.map_err(failed)?;
        }
        // A double click.
        self.refused(&engine, given("ada", yes)).await
    }

    /// Whoever answers about what is over is told so, whatever it was.
    pub(crate) async fn answer_late(&self, records: &[Record]) -> Result<(), Violation> {
        let engine = self.bystander();
        for record in records {
            if let outrigger_agent::Event::Answered { effect, by, arguments, answer } =
                &record.event
            {
                let (effect, by) = (*effect, by.clone());
                let (arguments, answer) = (arguments.clone(), answer.clone());
                self.refused(&engine, Answering { effect, by, arguments, answer }).await?;
            }
        }
        Ok(())
    }

    async fn refused(&self, engine: &Engine, given: Answering) -> Result<(), Violation> {
        let effect = given.effect;
        match engine.answer(&self.session, given).await {
            Err(Error::Unanswerable { .. } | Error::NotEntitled { .. }) => Ok(()),
            Ok(()) => Err(Violation::AnsweredTwice(effect)),
            Err(error) => Err(Violation::Engine(outrigger_engine::workspace::explain(&error))),
        }
    }
}
