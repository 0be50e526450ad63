//! People who are asked: who answers late, twice, or against each other.
//!
//! Owns that what is answered depends on the seed and on the call alone, so that a run
//! with crashes can be compared with one without; and, in a concurrent run, people of whom
//! nothing is known.

use futures_util::future::{join, join_all};
use outrigger_agent::{
    Answer, ApprovalRequest, Event, Record, Seq, SessionId, State, ToolCall, Unanswerable, Work,
};
use outrigger_engine::{AnswerRequest, Engine, Error};
use std::time::Duration;

use crate::Violation;
use crate::crash::Death;
use crate::limits;
use crate::rules::Kind;
use crate::tally::Happening;
use crate::world::{Harness, World};

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
    pub(crate) async fn answer(
        &self,
        session: &SessionId,
        effect: Seq,
        state: &State,
    ) -> Result<(), Violation> {
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
        let given = |by: &str, answer: Answer| AnswerRequest {
            effect,
            by: format!("person:{by}"),
            arguments: arguments.clone(),
            asked: Some(asked.clone()),
            answer,
        };
        let yes = Answer::Approved { rule_set: asked.rule_set, seen: None, standing: None };
        let first = match says(seed, &call.call, call.amends.is_some()) {
            Says::Yes | Says::YesAndNo => yes.clone(),
            Says::No => denied(),
            Says::Otherwise => {
                let word = call.call.trim_start_matches("call_").replace('_', ".");
                let command = format!("append /workspace/log w{word}-amended");
                Answer::Amended { arguments: format!(r#"{{"command":"{command}"}}"#) }
            }
        };
        match engine.answer(session, given("ada", first)).await {
            Err(Error::Unanswerable { source: Unanswerable::Expired, .. }) => {
                self.witness.count(Happening::Expired);
                return Ok(());
            }
            given => given.map_err(failed)?,
        }
        if says(seed, &call.call, call.amends.is_some()) == Says::YesAndNo {
            engine.answer(session, given("ben", denied())).await.map_err(failed)?;
        }
        // A double click.
        self.refused(&engine, session, given("ada", yes)).await
    }

    /// Answers about all effects that wait, each at some moment, some by two people.
    pub(crate) async fn answer_somehow(
        &self,
        session: &SessionId,
        state: &State,
        rng: &mut fastrand::Rng,
    ) -> Result<(), Violation> {
        let clicks = state.asked().filter_map(|(effect, waiting, asked)| {
            let Work::CallTool(call) = &waiting.work else { return None };
            let expires_ms = waiting.expires_ms(state.approvals());
            Some(self.click((session, effect), call, asked, expires_ms, rng.fork()))
        });
        join_all(clicks).await.into_iter().collect()
    }

    async fn click(
        &self,
        (session, effect): (&SessionId, Seq),
        call: &ToolCall,
        asked: &ApprovalRequest,
        expires_ms: Option<u64>,
        mut rng: fastrand::Rng,
    ) -> Result<(), Violation> {
        let now_ms = self.now_ms();
        let wait_ms = match (rng.u8(..3), expires_ms) {
            // A race with the expiry.
            (0, Some(at)) => (at + rng.u64(..3)).saturating_sub(now_ms + 1),
            (0 | 1, _) => rng.u64(..limits::MOMENT_MS_MAX),
            _ => limits::ANSWER_MS,
        };
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        let given = |by: &str, answer: Answer| AnswerRequest {
            effect,
            by: format!("person:{by}"),
            arguments: Some(call.arguments.clone()),
            asked: Some(asked.clone()),
            answer,
        };
        let yes = || Answer::Approved { rule_set: asked.rule_set, seen: None, standing: None };
        let any = |rng: &mut fastrand::Rng| if rng.u8(..3) > 0 { yes() } else { denied() };
        let (mine, other) = (any(&mut rng), any(&mut rng));
        if rng.bool() {
            let (a, b) = (rng.fork(), rng.fork());
            let both = join(
                self.say_so(session, given("ada", mine), a),
                self.say_so(session, given("ben", other), b),
            );
            self.witness.count(Happening::AnsweredAtOnce);
            let (first, second) = both.await;
            first.and(second)?;
        } else {
            self.say_so(session, given("ada", mine), rng.fork()).await?;
        }
        // A double click.
        self.say_so(session, given("ada", yes()), rng).await
    }

    /// Whether it is taken in is for the witness to judge.
    async fn say_so(
        &self,
        session: &SessionId,
        given: AnswerRequest,
        mut rng: fastrand::Rng,
    ) -> Result<(), Violation> {
        let kind = Kind::any(&mut rng);
        let Harness { engine, journal } = self.harness(kind, Death::Never, Some(&mut rng));
        match engine.answer(session, given).await {
            Err(Error::Unanswerable { source: Unanswerable::Expired, .. }) => {
                self.witness.count(Happening::Expired);
            }
            Err(Error::Unanswerable { .. } | Error::NotEntitled { .. }) => {
                self.witness.count(Happening::AnsweredTwice);
            }
            Ok(()) => {}
            Err(Error::Journal { .. } | Error::Contended(_)) if journal.was_disturbed() => {}
            Err(error) => {
                return Err(Violation::Engine(outrigger_engine::workspace::explain(&error)));
            }
        }
        Ok(())
    }

    /// Whoever answers about what is over is told so, whatever it was: the first answer
    /// and the last are given again.
    pub(crate) async fn answer_late(
        &self,
        session: &SessionId,
        records: &[Record],
    ) -> Result<(), Violation> {
        let engine = self.bystander();
        let answers =
            || records.iter().filter(|record| matches!(record.event, Event::Answered { .. }));
        for record in answers().next().into_iter().chain(answers().next_back()) {
            if let Event::Answered { effect, by, arguments, answer } = &record.event {
                let (effect, by) = (*effect, by.clone());
                let (arguments, answer, asked) = (arguments.clone(), answer.clone(), None);
                let late = AnswerRequest { effect, by, arguments, asked, answer };
                self.refused(&engine, session, late).await?;
            }
        }
        Ok(())
    }

    async fn refused(
        &self,
        engine: &Engine,
        session: &SessionId,
        given: AnswerRequest,
    ) -> Result<(), Violation> {
        let effect = given.effect;
        match engine.answer(session, given).await {
            Err(Error::Unanswerable { .. } | Error::NotEntitled { .. }) => {
                self.witness.count(Happening::AnsweredTwice);
                Ok(())
            }
            Ok(()) => Err(Violation::AnsweredTwice(effect)),
            Err(error) => Err(Violation::Engine(outrigger_engine::workspace::explain(&error))),
        }
    }
}
