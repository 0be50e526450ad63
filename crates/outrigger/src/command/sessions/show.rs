//! `outrigger sessions show`: one session, as it stands.

use clap::Args;
use outrigger_agent::{Seq, State, Workspace};
use outrigger_store::SessionRow;
use serde_json::{Value, json};
use std::path::Path;

use super::ls::{object, of_home};
use crate::command::drive::catch_up;
use crate::exit::Outcome;
use crate::flags::{Json, Output};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone, Totals, inert};
use crate::{abandoned, compose, network, session, waiting};

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The session, the beginning of its name, or `@last`.
    pub(crate) session: String,
    /// What its tools put out in full, and not only the first lines.
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(super) async fn execute(paths: &Paths, asked: Show) -> Outcome<u8> {
    let output = asked.output;
    let store = compose::store(paths).await?;
    let mut row = session::find(&*store.journal, &asked.session).await?;
    row.status = abandoned::standing(&store, &row).await?;
    let state = session::fold(&*store.journal, &row.session).await?;
    let mut screen = screen(&asked);
    if output.json != Some(Json::Object) {
        catch_up(&*store.journal, &row.session, &mut Seq::default(), &mut screen).await?;
    }
    let patch = Some(paths.patch(row.session.as_str())).filter(|path| path.exists());
    for (number, text) in lines(&row, &state, patch.as_deref()).into_iter().enumerate() {
        screen.note(if number == 0 { Tone::Strong } else { Tone::Detail }, text);
    }
    let answer = outrigger_agent::answer(state.conversation());
    screen.result(&answer, &summary(&row, &state, patch.as_deref()))?;
    Ok(0)
}

/// Where it is shown: what was asked for is on standard output.
pub(crate) fn screen(asked: &Show) -> Screen {
    let is_for_people = asked.output.json.is_none() && !asked.output.quiet;
    let screen = match is_for_people {
        true => Screen::on_stdout(asked.output).with_replies(),
        false => Screen::new(asked.output),
    };
    if asked.full { screen.in_full() } else { screen }
}

/// How it stands, for people. `patch`: what is kept of its changes.
pub(crate) fn lines(row: &SessionRow, state: &State, patch: Option<&Path>) -> Vec<String> {
    let totals = Totals::of(state).words();
    let mut lines = vec![format!("● session {} · {} · {totals}", row.session, row.status)];
    if let Some(spec) = state.spec() {
        let model = &spec.model;
        let scripted = if model.scripted { ", scripted: no model was asked" } else { "" };
        lines.push(format!("  model      {}{scripted}", inert(&model.name)));
        if let Some(workspace) = &spec.workspace {
            lines.push(format!("  directory  {}", inert(&of_home(&workspace.begun_in()))));
        }
    }
    let (begun, last) = (show::when(row.created_at_ms), show::when(row.last_at_ms));
    lines.push(format!("  begun      {begun}, last step {last}"));
    if let Some(spec) = state.spec().filter(|spec| !spec.network().is_empty()) {
        lines.push(format!("  network    {}", inert(&network::shown(spec.network()))));
    }
    if !state.labels().is_empty() {
        let labels: Vec<_> = state.labels().iter().map(|label| inert(label)).collect();
        lines.push(format!("  labels     {}", labels.join(", ")));
    }
    if let Some(patch) = patch {
        lines.push(format!("  patch      {}", patch.display()));
    }
    let ids = waiting::ids(&row.session, state);
    lines.extend(ids.iter().map(|id| format!("  asks       outrigger inbox {id}")));
    lines
}

/// How it stands, for programs.
pub(crate) fn summary(row: &SessionRow, state: &State, patch: Option<&Path>) -> Value {
    let spec = state.spec();
    let dir = spec.and_then(|spec| spec.workspace.as_ref()).map(Workspace::begun_in);
    let mut summary = object(row);
    summary["type"] = json!("session");
    summary["answer"] = json!(outrigger_agent::answer(state.conversation()));
    summary["labels"] = json!(state.labels());
    summary["agent"] = json!(spec.map(|spec| spec.role.acting()));
    summary["parent"] = json!(spec.and_then(|spec| spec.parent()).map(|parent| &parent.session));
    summary["steps"] = json!(state.spent().steps);
    summary["tokens"] = json!(state.spent().tokens);
    summary["spent"] = json!(state.spent());
    summary["cost"] = json!(Totals::of(state).cost());
    summary["model"] = json!(spec.map(|spec| spec.model.name.as_str()));
    summary["scripted"] = json!(spec.is_some_and(|spec| spec.model.scripted));
    summary["network"] = json!(spec.map(|spec| spec.network()));
    summary["dir"] = json!(dir);
    summary["waiting"] = json!(waiting::ids(&row.session, state));
    summary["patch"] = json!(patch.map(|path| path.display().to_string()));
    summary
}
