//! What waits for a person, as the journals have it.
//!
//! Owns the name by which people write an effect that waits, and what is told of it.

use outrigger_agent::{
    ApprovalRequest, Digest, Effect, Seq, SessionId, State, ToolKind, ToolSpec, Work,
};
use outrigger_api::ApprovalInfo;
use outrigger_server::{OF_BUDGET, approval, approval_id};
use outrigger_store::{Journal, SessionRow};
use outrigger_tools::ParsedCall;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::exit::{Failure, Kind, Outcome};
use crate::session;
use crate::show::{self, inert, word};

/// An effect that waits, or waited, for an answer.
#[derive(Debug)]
pub(crate) struct PendingApproval {
    pub(crate) session: SessionId,
    pub(crate) effect: Seq,
    pub(crate) state: Arc<State>,
    /// It is what may be spent that is asked about, and not the effect.
    of_budget: bool,
    title: String,
}

impl PendingApproval {
    /// All of a session.
    pub(crate) fn of_session(row: &SessionRow, state: &Arc<State>) -> Vec<Self> {
        let one = |effect, asked: &ApprovalRequest| Self {
            session: row.session.clone(),
            effect,
            state: Arc::clone(state),
            of_budget: asked.budget.is_some(),
            title: row.title.clone(),
        };
        state.asked().map(|(effect, _, asked)| one(effect, asked)).collect()
    }

    /// All of a session and of its subagents.
    pub(crate) async fn below(journal: &dyn Journal, session: &SessionId) -> Outcome<Vec<Self>> {
        let mut all = Vec::new();
        for (session, state) in session::tree(journal, session).await? {
            if state.asked().next().is_some() {
                let row = session::find(journal, session.as_str()).await?;
                all.extend(Self::of_session(&row, &Arc::new(state)));
            }
        }
        Ok(all)
    }

    /// All that there are, those of the newest sessions first.
    pub(crate) async fn all(journal: &dyn Journal) -> Outcome<Vec<Self>> {
        let mut rows = Vec::new();
        session::walk(journal, |row| {
            if row.status == State::WAITS {
                rows.push(row);
            }
            ControlFlow::Continue(())
        })
        .await?;
        let mut all = Vec::new();
        for row in rows {
            let state = Arc::new(session::fold(journal, &row.session).await?);
            all.extend(Self::of_session(&row, &state));
        }
        Ok(all)
    }

    /// The one of that name; its session may be named by its beginning.
    pub(crate) async fn find(journal: &dyn Journal, id: &str) -> Outcome<Self> {
        let unknown = || {
            Failure::new(Kind::NotFound, format!("nothing that waits is called `{id}`"))
                .hint("`outrigger inbox` lists what waits for an answer.")
        };
        let of_budget = id.ends_with(OF_BUDGET);
        let plain = id.strip_suffix(OF_BUDGET).unwrap_or(id);
        let Some((name, effect)) = plain.rsplit_once('.') else {
            let SessionRow { session, .. } =
                session::find(journal, id).await.map_err(|_| unknown())?;
            let ids = ids(&session, &session::fold(journal, &session).await?);
            return Err(match ids.is_empty() {
                true => Failure::new(Kind::NotFound, format!("nothing waits in session {session}")),
                false => unknown().hint(format!("In session {session}: {}.", ids.join(", "))),
            });
        };
        let effect = Seq(effect.parse().map_err(|_| unknown())?);
        let SessionRow { session, title, .. } = session::find(journal, name).await?;
        let state = Arc::new(session::fold(journal, &session).await?);
        Ok(Self { session, effect, state, of_budget, title })
    }

    /// By which people write it.
    pub(crate) fn id(&self) -> String {
        let end = if self.of_budget { OF_BUDGET } else { "" };
        self.session.effect(self.effect) + end
    }

    fn work(&self) -> Option<&Work> {
        self.state.effect(self.effect).map(|effect| &effect.work)
    }

    /// What is asked about it, if anything still is.
    pub(crate) fn asked(&self) -> Option<(&Effect, &ApprovalRequest)> {
        self.state
            .asked()
            .find(|(id, _, asked)| *id == self.effect && asked.budget.is_some() == self.of_budget)
            .map(|(_, effect, asked)| (effect, asked))
    }

    /// The tool that it calls.
    pub(crate) fn tool(&self) -> Option<&ToolSpec> {
        match self.work()? {
            Work::CallTool(call) => self.state.tool(&call.tool),
            Work::AskModel | Work::Compact | Work::Provision { .. } => None,
        }
    }

    /// Whether it is a call that changes a file, so that it can be shown as a diff.
    pub(crate) fn changes_file(&self) -> bool {
        self.tool().is_some_and(|tool| tool.kind == ToolKind::WriteFiles)
    }

    /// Digest of its arguments.
    pub(crate) fn arguments(&self) -> Option<Digest> {
        match self.work()? {
            Work::CallTool(call) => Some(call.arguments.clone()),
            Work::AskModel | Work::Compact | Work::Provision { .. } => None,
        }
    }

    /// Whether somebody is to be reminded of it: an answer still counts, and it is not
    /// left to those who were asked first.
    pub(crate) fn is_pressing(&self, now_ms: u64) -> bool {
        self.info().is_some_and(|info| {
            info.escalates_ms.is_none_or(|at| at <= now_ms)
                && info.expires_ms.is_none_or(|at| now_ms < at)
        })
    }

    /// What is asked, if anything still is.
    pub(crate) fn info(&self) -> Option<ApprovalInfo> {
        let (_, asked) = self.asked()?;
        Some(approval(&self.session, &self.title, &self.state, (self.effect, asked)))
    }
}

/// By what people write all that waits in a session, without its subagents.
pub(crate) fn ids(session: &SessionId, state: &State) -> Vec<String> {
    state.asked().map(|(effect, _, asked)| approval_id(session, effect, asked)).collect()
}

/// A question, for programs.
pub(crate) fn object(info: &ApprovalInfo) -> Value {
    let call = call(info);
    json!({
        "id": info.id,
        "session": info.session,
        "title": info.title,
        "effect": info.effect,
        "tool": info.tool,
        "arguments": info.arguments,
        "arguments_sha256": info.arguments_sha256,
        "outside": info.outside,
        "shell": call.as_ref().and_then(ParsedCall::command).map(|label| json!({
            "programs": label.programs,
            "touches": label.touches,
            "opaque": label.opaque,
        })),
        "rules": info.rules,
        "approvers": info.approvers,
        "budget": info.budget,
        "since_ms": info.since_ms,
        "escalates_to": info.escalates_to,
        "escalates_ms": info.escalates_ms,
        "expires_ms": info.expires_ms,
    })
}

/// A question, for people: what is asked, then the arguments, a line each.
pub(crate) fn lines(info: &ApprovalInfo) -> Vec<String> {
    let mut first = format!("{}  {}  asked by {}", info.id, info.tool, info.rules.join(", "));
    if !info.approvers.is_empty() {
        first.push_str(&format!("  for {}", info.approvers.join(", ")));
    }
    first.push_str(&format!("  since {}", show::when(info.since_ms)));
    if let Some(at) = info.escalates_ms {
        let (to, at) = (info.escalates_to.join(", "), show::when(at));
        first.push_str(&format!("  escalates to {to} {at}"));
    }
    if let Some(at) = info.expires_ms {
        first.push_str(&format!("  until {}", show::when(at)));
    }
    let title = inert(&info.title).replace(['\n', '\t'], " ");
    let mut lines = vec![inert(&first), format!("    of: {title}")];
    lines.extend(info.budget.as_ref().map(|budget| format!("    {}", inert(budget))));
    lines.extend(details(info).into_iter().map(|line| format!("    {line}")));
    lines
}

/// For who is asked now: what would be done, a line each.
pub(crate) fn act(info: &ApprovalInfo) -> Vec<String> {
    let is_below = SessionId::new(info.session.as_str()).is_some_and(|it| session::is_below(&it));
    let whose = if is_below { " in a subagent" } else { "" };
    let mut lines = vec![inert(&format!("{}{whose}", info.tool))];
    lines.extend(details(info));
    lines
}

/// What the tool, its command and its arguments say, a line each.
fn details(info: &ApprovalInfo) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(outside) = &info.outside {
        let (server, tool) = (word(&outside.server), word(&outside.tool));
        lines.push(format!("by the server {server}: see outrigger tools show {server} {tool}"));
    }
    let call = call(info);
    let command = call.as_ref().and_then(ParsedCall::command);
    if let Some(label) = command.filter(|label| !label.is_clean()) {
        let touches = label.touches.iter().map(|path| format!("names {path}"));
        let opaque = label.opaque.then(|| "does what its text does not say".to_owned());
        let said: Vec<_> = touches.chain(opaque).collect();
        lines.push(format!("the command {}", inert(&said.join(", and "))));
    }
    match info.arguments_sha256 {
        Some(_) => lines.extend(show::arguments(&info.arguments)),
        None if info.arguments.is_empty() => {}
        None => lines.push(inert(&info.arguments)),
    }
    lines
}

/// Its arguments, read, if it calls a tool of ours.
fn call(info: &ApprovalInfo) -> Option<ParsedCall> {
    let is_ours = info.arguments_sha256.is_some() && info.outside.is_none();
    is_ours.then(|| ParsedCall::new(&info.tool, &info.arguments, None))
}

/// What waits, for programs.
pub(crate) fn list(waiting: &[ApprovalInfo]) -> Value {
    let waiting: Vec<_> = waiting.iter().map(object).collect();
    json!({ "type": "inbox", "waiting": waiting })
}

/// What waits, for whom `[notify]` names: what [`list`] has, and a text that chat services show
/// as it is. `page` is what links of a server begin with.
pub(crate) fn notice(waiting: &[PendingApproval], page: Option<&str>) -> Value {
    let mut text = String::from("Outrigger waits for an answer:");
    let told = waiting.iter().filter_map(PendingApproval::info).map(|one| {
        let (id, mut object) = (&one.id, object(&one));
        let how = match page {
            Some(page) => {
                let url = format!("{page}/approvals/{id}");
                object["url"] = url.as_str().into();
                url
            }
            None => format!("`outrigger approve {id}`"),
        };
        // Nothing that a model wrote: chat services have markup, and call people by it.
        text.push_str(&format!("\n{}: {how}", one.tool));
        object
    });
    let told: Vec<_> = told.collect();
    json!({ "type": "inbox", "text": text, "waiting": told })
}
