//! What waits for a person, as the journals have it.
//!
//! Owns the name by which people write an effect that waits, and what is told of it.

use outrigger_agent::{
    ApprovalRequest, Digest, Effect, Seq, SessionId, State, ToolKind, ToolSpec, Work,
};
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

/// What the name of a question about a budget ends in: a yes to what the rules asked
/// about the same effect is none to it.
const BUDGET: &str = ".budget";

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
        let of_budget = id.ends_with(BUDGET);
        let plain = id.strip_suffix(BUDGET).unwrap_or(id);
        let (name, effect) = plain.rsplit_once('.').ok_or_else(unknown)?;
        let effect = Seq(effect.parse().map_err(|_| unknown())?);
        let SessionRow { session, title, .. } = session::find(journal, name).await?;
        let state = Arc::new(session::fold(journal, &session).await?);
        Ok(Self { session, effect, state, of_budget, title })
    }

    /// By which people write it.
    pub(crate) fn id(&self) -> String {
        let end = if self.of_budget { BUDGET } else { "" };
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

    /// What it is, and its arguments as they are.
    pub(crate) fn words(&self) -> (&str, &str) {
        match self.work() {
            Some(Work::CallTool(call)) => {
                let arguments = self.state.call(call).map_or("", |call| call.arguments.as_str());
                (&call.tool, arguments)
            }
            Some(Work::AskModel | Work::Compact) => ("ask the model", ""),
            Some(Work::Provision { sandbox }) => ("make a sandbox", sandbox),
            None => ("", ""),
        }
    }

    /// Its arguments, read, if it calls a tool.
    fn parsed(&self) -> Option<ParsedCall> {
        Some(ParsedCall::new(self.tool()?.built_in(), self.words().1, None))
    }

    /// Digest of its arguments.
    pub(crate) fn arguments(&self) -> Option<Digest> {
        match self.work()? {
            Work::CallTool(call) => Some(call.arguments.clone()),
            Work::AskModel | Work::Compact | Work::Provision { .. } => None,
        }
    }

    fn expires_ms(&self) -> Option<u64> {
        self.state.effect(self.effect)?.expires_ms(self.state.approvals())
    }

    fn escalates_ms(&self) -> Option<u64> {
        self.state.effect(self.effect)?.escalates_ms(self.state.approvals())
    }

    /// Whether somebody is to be reminded of it: an answer still counts, and it is not
    /// left to those who were asked first.
    pub(crate) fn is_pressing(&self, now_ms: u64) -> bool {
        self.escalates_ms().is_none_or(|at| at <= now_ms)
            && self.expires_ms().is_none_or(|at| now_ms < at)
    }

    /// For programs.
    pub(crate) fn object(&self) -> Value {
        let (tool, arguments) = self.words();
        let asked = self.asked().map(|(_, asked)| asked);
        json!({
            "id": self.id(),
            "session": self.session.as_str(),
            "title": self.title,
            "effect": self.effect.0,
            "tool": tool,
            "arguments": arguments,
            "arguments_sha256": self.arguments().map(|digest| digest.to_string()),
            "outside": self.tool().and_then(|tool| tool.outside.as_ref()).map(|outside| json!({
                "server": outside.server,
                "tool": outside.tool,
                "changed": outside.changed.is_some(),
            })),
            "shell": self.parsed().as_ref().and_then(ParsedCall::command).map(|label| json!({
                "programs": label.programs,
                "touches": label.touches,
                "opaque": label.opaque,
            })),
            "rules": asked.map(|asked| &asked.rules),
            "approvers": asked.map(|asked| &asked.approvers),
            "budget": asked.and_then(|asked| asked.budget.as_ref()).map(ToString::to_string),
            "since_ms": asked.map(|asked| asked.since_ms),
            "escalates_to": asked.map(|asked| &asked.escalates),
            "escalates_ms": self.escalates_ms(),
            "expires_ms": self.expires_ms(),
        })
    }

    /// For people: what is asked, then the arguments, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let tool = self.words().0;
        let Some((_, asked)) = self.asked() else { return Vec::new() };
        let mut first = format!("{}  {tool}  asked by {}", self.id(), asked.rules.join(", "));
        if !asked.approvers.is_empty() {
            first.push_str(&format!("  for {}", asked.approvers.join(", ")));
        }
        first.push_str(&format!("  since {}", show::when(asked.since_ms)));
        if let Some(at) = self.escalates_ms() {
            let (to, at) = (asked.escalates.join(", "), show::when(at));
            first.push_str(&format!("  escalates to {to} {at}"));
        }
        if let Some(at) = self.expires_ms() {
            first.push_str(&format!("  until {}", show::when(at)));
        }
        let budget = asked.budget.as_ref().map(|budget| format!("    {budget}"));
        let title = inert(&self.title).replace(['\n', '\t'], " ");
        let mut lines = vec![inert(&first).to_string(), format!("    of: {title}")];
        lines.extend(budget);
        lines.extend(self.details().into_iter().map(|line| format!("    {line}")));
        lines
    }

    /// For who is asked now: what would be done, a line each.
    pub(crate) fn act(&self) -> Vec<String> {
        let whose = if session::is_below(&self.session) { " in a subagent" } else { "" };
        let mut lines = vec![inert(&format!("{}{whose}", self.words().0))];
        lines.extend(self.details());
        lines
    }

    /// What the tool, its command and its arguments say, a line each.
    fn details(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(outside) = self.tool().and_then(|tool| tool.outside.as_ref()) {
            let (server, tool) = (&outside.server, word(&outside.tool));
            lines.push(format!("by the server {server}: see outrigger tools show {server} {tool}"));
        }
        let parsed = self.parsed();
        let command = parsed.as_ref().and_then(ParsedCall::command);
        if let Some(label) = command.filter(|label| !label.is_clean()) {
            let touches = label.touches.iter().map(|path| format!("names {path}"));
            let opaque = label.opaque.then(|| "does what its text does not say".to_owned());
            let said: Vec<_> = touches.chain(opaque).collect();
            lines.push(format!("the command {}", inert(&said.join(", and "))));
        }
        let arguments = self.words().1;
        if !arguments.is_empty() {
            lines.extend(match self.work() {
                Some(Work::CallTool(_)) => show::arguments(arguments),
                _ => vec![inert(arguments)],
            });
        }
        lines
    }
}

/// What waits, for programs.
pub(crate) fn list(waiting: &[PendingApproval]) -> Value {
    let waiting: Vec<_> = waiting.iter().map(PendingApproval::object).collect();
    json!({ "type": "inbox", "waiting": waiting })
}

/// What waits, for whom `[notify]` names: what [`list`] has, and a text that chat services show
/// as it is. `page` is what links of a server begin with.
pub(crate) fn notice(waiting: &[PendingApproval], page: Option<&str>) -> Value {
    let mut text = String::from("Outrigger waits for an answer:");
    let told = waiting.iter().map(|one| {
        let (id, mut object) = (one.id(), one.object());
        let how = match page {
            Some(page) => {
                let url = format!("{page}/approvals/{id}");
                object["url"] = url.as_str().into();
                url
            }
            None => format!("`outrigger approve {id}`"),
        };
        // Nothing that a model wrote: chat services have markup, and call people by it.
        text.push_str(&format!("\n{}: {how}", one.words().0));
        object
    });
    let told: Vec<_> = told.collect();
    json!({ "type": "inbox", "text": text, "waiting": told })
}
