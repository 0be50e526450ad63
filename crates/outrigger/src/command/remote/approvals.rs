//! `outrigger inbox`, `approve` and `deny` at a server.

use outrigger_api::{AnswerApproval, ApprovalAnswer, ApprovalInfo, ApprovalList, ApprovalPreview};
use serde_json::json;

use super::changes::drive;
use super::connection::{Remote, named, not_there};
use crate::command::approvals::{Approve, Deny, Inbox, looked_at, show_all, show_one};
use crate::exit::Outcome;
use crate::flags::{Apply, Output};
use crate::show::{self, Screen, Tone};
use crate::{session, waiting};

pub(super) async fn inbox(remote: &Remote, asked: Inbox) -> Outcome<u8> {
    if asked.remind {
        return Err(not_there("--remind"));
    }
    if let Some(id) = asked.id {
        let info = find(remote, &id).await?;
        let preview = info.preview.as_ref().map(|it| (it.diff.as_str(), it.seen.clone()));
        return show_one(&info, preview, asked.output);
    }
    let list: ApprovalList = remote.client.get("/v1/approvals").await?;
    show_all(&list.data, asked.output)
}

pub(super) async fn approve(remote: &Remote, asked: Approve) -> Outcome<u8> {
    let info = find(remote, &asked.id).await?;
    let answer = AnswerApproval {
        answer: ApprovalAnswer::Approve,
        seen: None,
        arguments: asked.arguments,
        reason: None,
    };
    if answer.arguments.is_some() {
        return answered(remote, &info, answer, "changed", (asked.later, asked.output)).await;
    }
    let screen = Screen::new(asked.output);
    waiting::lines(&info).into_iter().for_each(|line| screen.note(Tone::Plain, line));
    let mut seen = None;
    if let Some(ApprovalPreview { diff, seen: name }) = &info.preview {
        looked_at((diff, name), asked.seen.as_deref(), &info.id, &screen).await?;
        seen = Some(name.clone());
    }
    let answer = AnswerApproval { seen, ..answer };
    answered(remote, &info, answer, "approved", (asked.later, asked.output)).await
}

pub(super) async fn deny(remote: &Remote, asked: Deny) -> Outcome<u8> {
    let info = find(remote, &asked.id).await?;
    let (seen, arguments, reason) = (None, None, Some(asked.reason));
    let answer = AnswerApproval { answer: ApprovalAnswer::Deny, seen, arguments, reason };
    answered(remote, &info, answer, "denied", (asked.later, asked.output)).await
}

/// The question of that name; its session may be named by its beginning. Whoever is asked need not
/// be somebody who may look into the session.
async fn find(remote: &Remote, id: &str) -> Outcome<ApprovalInfo> {
    let list: ApprovalList = remote.client.get("/v1/approvals").await?;
    let (name, rest) = id.split_once('.').unwrap_or((id, ""));
    let begins = |one: &&ApprovalInfo| {
        one.session.starts_with(name)
            && one.id.strip_prefix(&one.session) == Some(&id[name.len()..])
    };
    let all: Vec<_> = list.data.iter().filter(begins).collect();
    let id = match &all[..] {
        _ if rest.is_empty() || list.data.iter().any(|one| one.id == id) => id,
        [one] => &one.id,
        [] => id,
        [_, _, ..] => return Err(session::several(name)),
    };
    Ok(remote.client.get(&format!("/v1/approvals/{id}")).await?)
}

/// Sends the answer, and follows the session, which goes on by itself.
async fn answered(
    remote: &Remote,
    info: &ApprovalInfo,
    answer: AnswerApproval,
    said: &str,
    (later, output): (bool, Output),
) -> Outcome<u8> {
    let id = &info.id;
    let session = named(&info.session)?.root();
    remote.client.command(&format!("/v1/approvals/{id}"), &answer).await?;
    let mut screen = Screen::new(output);
    screen.note(Tone::Good, format!("● {said}: {id}"));
    // Whoever is asked need not be somebody who may look into the session.
    let may_follow = !later && remote.info(&session).await.is_ok();
    if !may_follow {
        if output.json.is_some() {
            show::line(&json!({ "type": "answered", "id": id, "answer": said }))?;
        }
        screen.note(Tone::Detail, "the server goes on with the session");
        return Ok(0);
    }
    let shown = remote.state(&session).await?.seq();
    Box::pin(drive(remote, &session, shown, Apply::default(), &mut screen)).await
}
