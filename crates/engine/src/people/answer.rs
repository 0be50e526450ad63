//! What people say about effects that the rules ask about.
//!
//! Owns that an answer is one fenced append, so that of two who answer at once one is
//! told that it came too late. It performs nothing: a driver decides everything again.

use outrigger_agent::{
    Answer, ApprovalRequest, Digest, Phase, Seq, SessionId, State, Unanswerable, Work,
};
use outrigger_policy::{Approved, Verdict};
use outrigger_sandbox::{Error as SandboxError, ExecId};
use outrigger_tools::{Invocation, Preview};
use std::collections::BTreeMap;

use crate::memory;
use crate::policy_facts::{parse, with_facts};
use crate::sandbox::attach::AttachError;
use crate::sandbox::handle;
use crate::{Engine, Error};

/// A person's answer about one effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRequest {
    /// The effect.
    pub effect: Seq,
    /// Who answers, for example `person:ada`.
    pub by: String,
    /// Digest of the arguments that they looked at; another effect's are refused.
    pub arguments: Option<Digest>,
    /// What they were asked; if something else is asked by now, nothing is answered.
    pub asked: Option<ApprovalRequest>,
    /// What they say.
    pub answer: Answer,
}

impl Engine {
    /// Takes in what a person says about an effect. A driver elsewhere learns of it by
    /// itself; if none drives the session, it goes on the next time that one does.
    ///
    /// # Errors
    /// [`Error::Unanswerable`], with nothing changed, if it was answered before, is over,
    /// expired, or was asked about other arguments or something else; [`Error::NotEntitled`];
    /// [`Error::Forbidden`] where the rules in force by now forbid it; [`Error::Rules`]; no
    /// such session; or the journal's.
    pub async fn answer(&self, session: &SessionId, given: AnswerRequest) -> Result<(), Error> {
        let AnswerRequest { effect, by, arguments, asked, answer } = given;
        self.command(session, |state| {
            let now_ms = self.parts.clock.now_ms();
            let answerable = state.answerable(effect, arguments.as_ref(), &answer, now_ms);
            let answerable = answerable.and_then(|()| same_question(state, effect, asked.as_ref()));
            answerable.map_err(|source| Error::Unanswerable {
                session: session.clone(),
                effect,
                source,
            })?;
            self.entitled(state, effect, &by, &answer, now_ms)?;
            let (by, arguments, answer) = (by.clone(), arguments.clone(), answer.clone());
            Ok(outrigger_agent::Event::Answered { effect, by, arguments, answer })
        })
        .await
    }

    /// Whether a person may approve what waits although the session is none of theirs: the rules
    /// name whom they ask, and the person is among those.
    #[must_use]
    pub fn asks(&self, state: &State, effect: Seq, person: &str) -> bool {
        let asked = state.effect(effect).and_then(|effect| effect.asked.as_ref());
        let Some(asked) = asked.filter(|asked| asked.budget.is_none()) else { return false };
        let names = !asked.approvers.is_empty() || !asked.escalates.is_empty();
        let yes = Answer::Approved { rule_set: asked.rule_set, seen: None, standing: None };
        let now_ms = self.parts.clock.now_ms();
        names && self.entitled(state, effect, person, &yes, now_ms).is_ok()
    }

    /// Who approves has to be asked by every rule that asks. Refusing, and wishing for
    /// something else that is then asked about, is open to whoever takes part.
    fn entitled(
        &self,
        state: &State,
        id: Seq,
        by: &str,
        answer: &Answer,
        now_ms: u64,
    ) -> Result<(), Error> {
        let Some(effect) = state.effect(id) else { return Ok(()) };
        let rules = self.rules()?;
        let (by, rule_set) = (by.to_owned(), rules.hash());
        let escalated = effect.is_escalated(state.approvals(), rule_set, now_ms);
        let approval = Approved { by, rule_set, escalated };
        if !matches!(answer, Answer::Approved { .. }) {
            return Ok(());
        }
        let (work, looks) = (&effect.work, rules.looks());
        let parsed = parse(state, work);
        let judged = with_facts(state, work, parsed.as_ref(), now_ms, looks, |facts| {
            (rules.judge(facts), rules.may_approve(facts, &approval))
        });
        match judged {
            // A yes that could never be acted on is none.
            (verdict @ Verdict::Forbid { .. }, _) => {
                return Err(Error::Forbidden(verdict.refusal().unwrap_or_default()));
            }
            (Verdict::Permit { .. }, _) | (Verdict::Ask { .. }, true) => return Ok(()),
            (Verdict::Ask { .. }, false) => {}
        }
        let asked = effect.asked.iter();
        let named = asked.flat_map(|asked| {
            asked.approvers.iter().chain(asked.escalates.iter().filter(|_| escalated))
        });
        let approvers = named.map(String::as_str).collect::<Vec<_>>().join(", ");
        Err(Error::NotEntitled { by: approval.by, approvers })
    }

    /// What an effect that waits would make of a file. Nothing for one that changes none,
    /// would fail, or acts in a sandbox that is not made yet. Reaches the sandbox: call
    /// [`suspend`](crate::suspend) afterwards.
    ///
    /// # Errors
    /// [`Error::Sandbox`], [`Error::NoSuchSandbox`].
    pub async fn preview(
        &self,
        session: &SessionId,
        state: &State,
        effect: Seq,
    ) -> Result<Option<Preview>, Error> {
        let Some(work) = state.effect(effect).map(|effect| &effect.work) else { return Ok(None) };
        let (Some(parsed), Work::CallTool(call)) = (parse(state, work), work) else {
            return Ok(None);
        };
        let exec = ExecId::new(session.effect(effect))
            .map_err(|error| Error::Sandbox(SandboxError::Invalid(error.to_string())))?;
        let invocation = Invocation {
            parsed: &parsed,
            exec,
            seen: None,
            command_ms_max: None,
            env: BTreeMap::new(),
        };
        let memory = memory::preview(self, session, state, effect, &parsed);
        let Some(name) = state.sandbox_for(call) else {
            let Some(memory) = memory else { return Ok(None) };
            let preview = outrigger_tools::preview(&invocation, &memory.namespace()).await;
            return preview.map_err(Error::Sandbox);
        };
        let Some(ready) = state.sandbox(name) else { return Ok(None) };
        let handle = handle::of(self, session, state, name)?;
        let sandbox = match handle.attach(&ready.generation).await {
            Ok(sandbox) => sandbox,
            // What becomes of it is for the call to say, when it is performed.
            Err(AttachError::Lost(_)) => return Ok(None),
            Err(AttachError::Unreachable(error)) => return Err(Error::Sandbox(error)),
        };
        let namespace = memory.map(|memory| memory.namespace()).unwrap_or_default();
        let namespace = namespace.with_sandbox(sandbox);
        outrigger_tools::preview(&invocation, &namespace).await.map_err(Error::Sandbox)
    }
}

/// A yes to what the rules ask is none to what a budget asks about the same effect.
fn same_question(
    state: &State,
    id: Seq,
    asked: Option<&ApprovalRequest>,
) -> Result<(), Unanswerable> {
    let open = state.effect(id).filter(|effect| effect.phase == Phase::Asked);
    let now = open.and_then(|effect| effect.asked.as_ref());
    match (asked, now) {
        (Some(asked), Some(now)) if asked != now => Err(Unanswerable::OtherQuestion),
        _ => Ok(()),
    }
}
