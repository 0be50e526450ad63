//! The questions of a server's session, and the answers to them.

use async_trait::async_trait;
use outrigger_agent::{Seq, SessionId};
use outrigger_api::{AnswerApproval, ApprovalAnswer, ApprovalInfo, ProblemCode};
use outrigger_client::Error;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::connection::Remote;
use crate::command::ask::{AnswerReceipt, QuestionSource};
use crate::exit::Outcome;
use crate::question::{Decision, Question};
use crate::waiting::PendingApproval;

/// The questions of a server's session.
pub(super) struct RemoteQuestions<'a> {
    remote: &'a Remote,
    session: &'a SessionId,
    /// What was looked at of each file that would change.
    seen: RefCell<BTreeMap<String, String>>,
}

impl<'a> RemoteQuestions<'a> {
    pub(super) fn new(remote: &'a Remote, session: &'a SessionId) -> Self {
        Self { remote, session, seen: RefCell::default() }
    }
}

#[async_trait(?Send)]
impl QuestionSource for RemoteQuestions<'_> {
    async fn first(&self, left: &BTreeSet<String>) -> Outcome<Option<Question>> {
        let waiting = PendingApproval::below(&self.remote.journal, self.session).await?;
        for one in waiting.iter().filter(|one| !left.contains(&one.id())) {
            let info: ApprovalInfo = match self.remote.client.get(&self.remote.approval(one)).await
            {
                Ok(info) => info,
                // Others have to answer it, or did.
                Err(Error::Problem(problem))
                    if matches!(problem.code, ProblemCode::NotFound | ProblemCode::Conflict) =>
                {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let (diff, seen) = info.preview.map(|it| (it.diff, it.seen)).unzip();
            if let Some(seen) = seen {
                self.seen.borrow_mut().insert(one.id(), seen);
            }
            if let Some(question) = Question::with(None, one, (diff, None)) {
                return Ok(Some(question));
            }
        }
        Ok(None)
    }

    async fn answer(
        &self,
        question: &Question,
        decision: &Decision,
        _standing: Option<Seq>,
    ) -> Outcome<AnswerReceipt> {
        let seen = self.seen.borrow().get(&question.id).cloned();
        let yes =
            AnswerApproval { answer: ApprovalAnswer::Approve, seen, arguments: None, reason: None };
        let answer = match decision {
            Decision::Yes | Decision::Always => yes,
            Decision::Instead(draft) => {
                AnswerApproval { seen: None, arguments: Some(question.amended(draft)), ..yes }
            }
            Decision::No(reason) => AnswerApproval {
                answer: ApprovalAnswer::Deny,
                seen: None,
                reason: Some(reason.clone()).filter(|reason| !reason.trim().is_empty()),
                ..yes
            },
        };
        let path = format!("/v1/approvals/{}", question.id);
        match self.remote.client.command(&path, &answer).await {
            Ok(()) => Ok(AnswerReceipt::Taken),
            Err(Error::Problem(problem)) if problem.code == ProblemCode::Conflict => {
                Ok(AnswerReceipt::Over(problem.detail))
            }
            Err(Error::Problem(problem)) if problem.code == ProblemCode::Denied => {
                Ok(AnswerReceipt::NotEntitled(problem.detail))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn head(&self, session: &SessionId) -> Outcome<Seq> {
        self.remote.head(session).await
    }

    async fn is_asked(&self, id: &str) -> Outcome<bool> {
        Ok(PendingApproval::find(&self.remote.journal, id).await?.asked().is_some())
    }
}
