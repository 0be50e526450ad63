//! `outrigger inbox`, `approve` and `deny` at a server.

use outrigger_api::{AnswerApproval, ApprovalAnswer, ApprovalInfo, ApprovalList, ApprovalPreview};
use serde_json::json;

use super::changes::drive;
use super::connection::{Remote, not_there};
use crate::command::approvals::{Approve, Deny, Inbox, looked_at, over, show_all, show_one};
use crate::exit::Outcome;
use crate::flags::{Apply, Output};
use crate::session;
use crate::show::{self, Screen, Tone};
use crate::waiting::PendingApproval;

pub(super) async fn inbox(remote: &Remote, asked: Inbox) -> Outcome<u8> {
    if asked.remind {
        return Err(not_there("--remind"));
    }
    if let Some(id) = asked.id {
        let waiting = PendingApproval::find(&remote.journal, &id).await?;
        let preview = preview(remote, &waiting).await?;
        let preview = preview.as_ref().map(|it| (it.diff.as_str(), it.seen.clone()));
        return show_one(&waiting, preview, asked.output);
    }
    let list: ApprovalList = remote.client.get("/v1/approvals").await?;
    let mut waiting = Vec::new();
    for one in list.data {
        waiting.push(PendingApproval::find(&remote.journal, &one.id).await?);
    }
    show_all(&waiting, asked.output)
}

pub(super) async fn approve(remote: &Remote, asked: Approve) -> Outcome<u8> {
    let waiting = PendingApproval::find(&remote.journal, &asked.id).await?;
    let answer = AnswerApproval {
        answer: ApprovalAnswer::Approve,
        seen: None,
        arguments: asked.arguments,
        reason: None,
    };
    if answer.arguments.is_some() {
        return answered(remote, &waiting, answer, "changed", (asked.later, asked.output)).await;
    }
    let preview = preview(remote, &waiting).await?;
    let screen = Screen::new(asked.output);
    waiting.lines().into_iter().for_each(|line| screen.note(Tone::Plain, line));
    let mut seen = None;
    if let Some(ApprovalPreview { diff, seen: name }) = preview {
        looked_at((&diff, &name), asked.seen.as_deref(), &waiting, &screen).await?;
        seen = Some(name);
    }
    let answer = AnswerApproval { seen, ..answer };
    answered(remote, &waiting, answer, "approved", (asked.later, asked.output)).await
}

pub(super) async fn deny(remote: &Remote, asked: Deny) -> Outcome<u8> {
    let waiting = PendingApproval::find(&remote.journal, &asked.id).await?;
    let (seen, arguments, reason) = (None, None, Some(asked.reason));
    let answer = AnswerApproval { answer: ApprovalAnswer::Deny, seen, arguments, reason };
    answered(remote, &waiting, answer, "denied", (asked.later, asked.output)).await
}

/// Sends the answer, and follows the session, which goes on by itself.
async fn answered(
    remote: &Remote,
    waiting: &PendingApproval,
    answer: AnswerApproval,
    said: &str,
    (later, output): (bool, Output),
) -> Outcome<u8> {
    remote.client.command(&remote.approval(waiting), &answer).await?;
    let id = waiting.id();
    let mut screen = Screen::new(output);
    screen.note(Tone::Good, format!("● {said}: {id}"));
    if later {
        if output.json.is_some() {
            show::line(&json!({ "type": "answered", "id": id, "answer": said }))?;
        }
        screen.note(Tone::Detail, "the server goes on with the session");
        return Ok(0);
    }
    let session = session::root(&remote.journal, &waiting.session).await?;
    let shown = remote.state(&session).await?.seq();
    Box::pin(drive(remote, &session, shown, Apply::default(), &mut screen)).await
}

/// What an effect that waits would make of a file.
async fn preview(remote: &Remote, waiting: &PendingApproval) -> Outcome<Option<ApprovalPreview>> {
    if waiting.asked().is_none() {
        return Err(over(waiting));
    }
    let info: ApprovalInfo = remote.client.get(&remote.approval(waiting)).await?;
    Ok(info.preview)
}
