//! `outrigger inbox`, `approve` and `deny`: what waits for a person, exactly as it would
//! be done, and the person's answer.

use outrigger_agent::{
    Answer, Asked, Author, Digest, Effect, Item, Seen, Seq, SessionId, State, ToolKind, Work,
};
use outrigger_engine::Answering;
use outrigger_store::{Before, Journal};
use serde_json::{Value, json};
use std::io::IsTerminal;

use super::run::Back;
use super::sessions;
use crate::cli::{self, Output};
use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::repository;
use crate::show::{self, Screen, Tone, inert};
use crate::{limits, models, session};

/// Who answers on this machine, as long as there is one person.
const WHO: &str = "person:local";

/// An effect that waits, by the name that people write.
#[derive(Debug)]
struct Waiting {
    session: SessionId,
    effect: Seq,
    state: State,
}

impl Waiting {
    fn id(&self) -> String {
        format!("{}.{}", self.session, self.effect)
    }

    fn asked(&self) -> Option<(&Effect, &Asked)> {
        let effect = self.state.effect(self.effect)?;
        Some((effect, effect.asked.as_ref()?))
    }

    /// What would be done, and its arguments as they are.
    fn work(&self) -> (&str, &str) {
        match self.state.effect(self.effect).map(|effect| &effect.work) {
            Some(Work::CallTool(call)) => {
                let arguments = self.state.call(call).map_or("", |call| call.arguments.as_str());
                (&call.tool, arguments)
            }
            Some(Work::AskModel | Work::Compact) => ("ask the model", ""),
            Some(Work::Provision { sandbox }) => ("make a sandbox", sandbox),
            None => ("", ""),
        }
    }

    fn arguments(&self) -> Option<Digest> {
        match self.state.effect(self.effect).map(|effect| &effect.work) {
            Some(Work::CallTool(call)) => Some(call.arguments.clone()),
            _ => None,
        }
    }

    fn object(&self, title: &str) -> Value {
        let (tool, arguments) = self.work();
        let asked = self.asked();
        let expires = asked.and_then(|(effect, _)| effect.expires_ms(self.state.approvals()));
        json!({
            "id": self.id(),
            "session": self.session.as_str(),
            "title": title,
            "effect": self.effect.0,
            "tool": tool,
            "arguments": arguments,
            "arguments_sha256": self.arguments().map(|digest| digest.to_string()),
            "rules": asked.map(|(_, asked)| &asked.rules),
            "approvers": asked.map(|(_, asked)| &asked.approvers),
            "since_ms": asked.map(|(_, asked)| asked.since_ms),
            "expires_ms": expires,
        })
    }

    /// For people: what is asked, then the arguments, a line each.
    fn lines(&self, title: &str) -> Vec<String> {
        let (tool, arguments) = self.work();
        let Some((effect, asked)) = self.asked() else { return Vec::new() };
        let rules = asked.rules.join(", ");
        let mut first = format!("{}  {tool}  asked by {rules}", self.id());
        if !asked.approvers.is_empty() {
            first.push_str(&format!("  for {}", asked.approvers.join(", ")));
        }
        first.push_str(&format!("  since {}", show::when(asked.since_ms)));
        if let Some(at) = effect.expires_ms(self.state.approvals()) {
            first.push_str(&format!("  until {}", show::when(at)));
        }
        let mut lines = vec![inert(&first).to_string()];
        let title = inert(title).replace(['\n', '\t'], " ");
        lines.push(format!("    of: {title}"));
        lines.extend(arguments.lines().map(|line| format!("    {}", inert(line))));
        lines
    }
}

/// What waits in a session, as `inbox --json` tells it.
pub(crate) fn objects(session: &SessionId, state: &State) -> Vec<Value> {
    let one = |effect| Waiting { session: session.clone(), effect, state: state.clone() };
    let title = state.conversation().iter().find_map(|item| match item {
        Item::Message(message) if matches!(message.author, Author::Person(_)) => {
            Some(message.text.lines().next().unwrap_or_default().to_owned())
        }
        _ => None,
    });
    let title = title.unwrap_or_default();
    state.asked().map(|(effect, ..)| one(effect).object(&title)).collect()
}

/// All that waits, the newest sessions first.
async fn waiting(journal: &dyn Journal) -> Outcome<Vec<(Waiting, String)>> {
    let mut found = Vec::new();
    let mut before: Option<Before> = None;
    let mut searched = 0;
    loop {
        let page = journal.sessions(before.take(), 1_000).await?;
        let last = page.last().map(Before::from);
        searched += page.len();
        for row in page.into_iter().filter(|row| row.status == "waits for approval") {
            let state = sessions::fold(journal, &row.session).await?;
            let asked: Vec<Seq> = state.asked().map(|(id, ..)| id).collect();
            for effect in asked {
                let (session, state) = (row.session.clone(), state.clone());
                found.push((Waiting { session, effect, state }, row.title.clone()));
            }
        }
        before = last;
        if before.is_none() || searched >= limits::SESSIONS_SEARCHED_MAX {
            return Ok(found);
        }
    }
}

/// The one of that name; its session may be named by its beginning.
async fn find(journal: &dyn Journal, id: &str) -> Outcome<(Waiting, String)> {
    let unknown = || {
        Failure::new(Kind::NotFound, format!("nothing that waits is called `{id}`"))
            .hint("`outrigger inbox` lists what waits for an answer.")
    };
    let (name, effect) = id.rsplit_once('.').ok_or_else(unknown)?;
    let effect = Seq(effect.parse().map_err(|_| unknown())?);
    let row = session::find(journal, name).await?;
    let state = sessions::fold(journal, &row.session).await?;
    Ok((Waiting { session: row.session, effect, state }, row.title))
}

pub(crate) async fn inbox(paths: &Paths, id: Option<&str>, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    match id {
        Some(id) => one(paths, &store, id, output).await,
        None => all(&store, output).await,
    }
}

async fn all(store: &Store, output: Output) -> Outcome<u8> {
    let waiting = waiting(&*store.journal).await?;
    if output.json.is_some() {
        let waiting: Vec<_> = waiting.iter().map(|(one, title)| one.object(title)).collect();
        show::line(&json!({ "type": "inbox", "waiting": waiting }))?;
        return Ok(0);
    }
    for (one, title) in &waiting {
        one.lines(title).iter().try_for_each(|line| show::row(line))?;
    }
    let screen = Screen::new(output);
    match waiting.first() {
        None => screen.note(Tone::Detail, "nothing waits for an answer"),
        Some((one, _)) => {
            let id = one.id();
            screen.note(Tone::Detail, format!("look closer: outrigger inbox {id}"));
            screen.note(Tone::Detail, format!("answer: outrigger approve {id}, or deny"));
        }
    }
    Ok(0)
}

/// One, with what it would make of a file.
async fn one(paths: &Paths, store: &Store, id: &str, output: Output) -> Outcome<u8> {
    let (waiting, title) = find(&*store.journal, id).await?;
    if waiting.asked().is_none() {
        return Err(over(&waiting));
    }
    let change = Change::of(paths, store, &waiting).await?;
    if output.json.is_some() {
        let mut object = waiting.object(&title);
        object["type"] = json!("waiting");
        object["diff"] = json!(change.as_ref().map(|change| &change.diff));
        object["seen"] = json!(change.as_ref().map(Change::name));
        show::line(&object)?;
        return Ok(0);
    }
    waiting.lines(&title).iter().try_for_each(|line| show::row(line))?;
    let screen = Screen::new(output);
    let mut answer = format!("outrigger approve {}", waiting.id());
    if let Some(change) = &change {
        screen.diff(&change.diff);
        answer.push_str(&format!(" --seen {}", change.name()));
    }
    screen.note(Tone::Detail, format!("answer: {answer}"));
    Ok(0)
}

/// What an effect would make of a file.
struct Change {
    diff: String,
    seen: Seen,
}

impl Change {
    async fn of(paths: &Paths, store: &Store, waiting: &Waiting) -> Outcome<Option<Self>> {
        let tool = match waiting.state.effect(waiting.effect).map(|effect| &effect.work) {
            Some(Work::CallTool(call)) => waiting.state.tool(&call.tool),
            _ => None,
        };
        if tool.is_none_or(|tool| tool.kind != ToolKind::WriteFiles) {
            return Ok(None);
        }
        let config = Config::of_files(paths.configs())?;
        let backends = compose::backends(paths, &config).await?;
        let engine = compose::engine(&config, store, &models::unasked()?, &backends)?;
        let preview = engine.preview(&waiting.session, &waiting.state, waiting.effect).await;
        // It may have been cold, and goes on waiting.
        drop(engine.rest(&waiting.session).await);
        let preview = preview?;
        Ok(preview.map(|preview| {
            let seen = preview.seen();
            let (path, before) = (preview.path, preview.before.as_deref());
            let diff = repository::one_file(&path, before, &preview.after);
            Self { diff: String::from_utf8_lossy(&diff).into_owned(), seen }
        }))
    }

    /// By which a person says that this is what they looked at.
    fn name(&self) -> String {
        match &self.seen {
            Seen::Absent => "absent".to_owned(),
            Seen::File(digest) => digest.as_str().chars().take(limits::SEEN_CHARS).collect(),
        }
    }
}

fn over(waiting: &Waiting) -> Failure {
    Failure::new(Kind::Conflict, format!("nobody is asked about {} any more", waiting.id()))
        .hint(format!("`outrigger sessions show {}` says what became of it.", waiting.session))
}

pub(crate) async fn approve(paths: &Paths, asked: cli::Approve) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let (waiting, title) = find(&*store.journal, &asked.id).await?;
    let Some((_, question)) = waiting.asked() else { return Err(over(&waiting)) };
    let answer = match asked.arguments {
        Some(arguments) => Answer::Amended { arguments },
        None => {
            let rule_set = question.rule_set;
            let change = Change::of(paths, &store, &waiting).await?;
            let screen = Screen::new(asked.output);
            let seen = match change {
                None => None,
                Some(change) => Some(looked_at(change, asked.seen.as_deref(), &waiting, screen)?),
            };
            Answer::Approved { rule_set, seen }
        }
    };
    let said = if matches!(answer, Answer::Approved { .. }) { "approved" } else { "changed" };
    answered(paths, &store, (waiting, title), (answer, said), (asked.later, asked.output)).await
}

/// What the person approves is what they saw: they say so, or are shown it now.
fn looked_at(
    change: Change,
    seen: Option<&str>,
    waiting: &Waiting,
    screen: Screen,
) -> Outcome<Seen> {
    let look = format!("`outrigger inbox {}` shows what it would change.", waiting.id());
    match seen {
        Some(seen) if seen == change.name() => Ok(change.seen),
        Some(_) => Err(Failure::new(
            Kind::Conflict,
            "the file is not the one that was looked at: it changed since",
        )
        .hint(look)),
        None if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
            screen.diff(&change.diff);
            screen.note(Tone::Strong, "Approve this change? [y/N]");
            let mut line = String::new();
            let read = std::io::stdin().read_line(&mut line);
            read.map_err(|error| Failure::from_error(Kind::Usage, &error))?;
            match line.trim() {
                "y" | "Y" | "yes" => Ok(change.seen),
                _ => Err(Failure::new(Kind::Denied, "not approved; it still waits")),
            }
        }
        None => Err(Failure::new(
            Kind::Usage,
            "this changes a file, and nobody said that they looked at it",
        )
        .hint(look)),
    }
}

pub(crate) async fn deny(paths: &Paths, asked: cli::Deny) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let found = find(&*store.journal, &asked.id).await?;
    let answer = Answer::Denied { reason: asked.reason };
    answered(paths, &store, found, (answer, "denied"), (asked.later, asked.output)).await
}

/// Takes the answer in, and goes on with the session unless somebody else does.
async fn answered(
    paths: &Paths,
    store: &Store,
    (waiting, _): (Waiting, String),
    (answer, said): (Answer, &str),
    (later, output): (bool, Output),
) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let engine = compose::engine(&config, store, &models::unasked()?, &compose::Backends::new())?;
    let given = Answering {
        effect: waiting.effect,
        by: WHO.to_owned(),
        arguments: waiting.arguments(),
        answer,
    };
    engine.answer(&waiting.session, given).await?;
    let (id, session) = (waiting.id(), &waiting.session);
    let screen = Screen::new(output);
    screen.note(Tone::Good, format!("● {said}: {id}"));
    let driven = session::lock(&paths.lock(session.as_str()))?.is_none();
    if later || driven {
        if output.json.is_some() {
            show::line(&json!({ "type": "answered", "id": id, "answer": said }))?;
        }
        let hint = format!("`outrigger sessions resume {session}` goes on.");
        let text =
            if driven { "the process that drives the session goes on".to_owned() } else { hint };
        screen.note(Tone::Detail, text);
        return Ok(0);
    }
    sessions::resume(paths, session.as_str(), Back::Patch, cli::Limits::default(), output).await
}
