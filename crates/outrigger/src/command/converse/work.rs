//! What the commands of a conversation show.

use outrigger_agent::{Measure, State};

use super::context::{Context, short};
use crate::conversation::{Hazards, Input, Slash};
use crate::exit::Failure;
use crate::show::row::Row;
use crate::show::{Tone, Totals, amounts, count, inert};

/// The first lines.
pub(super) fn welcome(context: &Context) -> Vec<Row> {
    let version = env!("CARGO_PKG_VERSION");
    let (dir, name) = (short(&context.dir), context.sessions.name());
    vec![
        Row::note(Tone::Strong, &format!("● outrigger {version} · {name} · {dir}")),
        Row::note(
            Tone::Detail,
            "  It works on a copy; nothing changes here before /apply. /help says more.",
        ),
    ]
}

/// An error, and what to do about it.
pub(super) fn failure(failure: &Failure) -> Vec<Row> {
    let mark = if failure.kind.is_pause() { Tone::Warning } else { Tone::Error };
    let mut rows = vec![Row::note(mark, &format!("! {}", failure.message))];
    rows.extend(failure.hints.iter().map(|hint| Row::note(Tone::Detail, &format!("  {hint}"))));
    rows
}

/// Whether a command is for a session that waits.
pub(super) fn needs_rest(command: &Slash) -> bool {
    matches!(
        command,
        Slash::Apply(_)
            | Slash::Branch
            | Slash::Fork
            | Slash::Model(Some(_))
            | Slash::Net(Some(_))
            | Slash::New
            | Slash::Rewind(_)
            | Slash::Sessions(Some(_))
    )
}

/// Such a command as it is written.
pub(super) fn written(command: &Slash) -> Option<&'static str> {
    Some(match command {
        Slash::Apply(Hazards::Refused) => "/apply",
        Slash::Apply(Hazards::Accepted) => "/apply all",
        Slash::Branch => "/branch",
        Slash::Fork => "/fork",
        Slash::Model(_) => "/model",
        Slash::Net(_) => "/net",
        Slash::Rewind(_) => "/rewind",
        _ => return None,
    })
}

/// What is under way while a command is done.
pub(super) fn what(command: &Slash) -> &'static str {
    match command {
        Slash::Diff => "taking the changes out",
        Slash::Apply(_) => "writing the changes back",
        Slash::Branch => "taking the commits out",
        Slash::Undo => "taking back what was written",
        Slash::Fork => "copying the session's disks",
        Slash::Rewind(_) => "going back",
        Slash::Sessions(_) => "looking for sessions",
        Slash::Cost
        | Slash::Compact
        | Slash::Model(_)
        | Slash::Net(_)
        | Slash::New
        | Slash::Help
        | Slash::Quit => "reading the journal",
    }
}

/// What a session spent.
pub(super) fn cost(state: &State) -> Vec<Row> {
    let (spent, reserved) = (state.spent(), state.reserved());
    let bars = Measure::ALL
        .into_iter()
        .filter_map(|measure| amounts::bar(measure, spent, reserved, state.budget(), state.soft()));
    let mut rows: Vec<Row> = bars.map(|bar| Row::note(Tone::Plain, &bar)).collect();
    let priced = state.spec().is_some_and(|spec| spec.model.price.is_some());
    if !priced {
        rows.push(Row::note(
            Tone::Detail,
            "  what the model costs is not known: see docs/how-to/budgets.md",
        ));
    }
    rows
}

/// How full the context is.
pub(super) fn context(state: &State) -> Vec<Row> {
    let Some(spec) = state.spec() else { return Vec::new() };
    let (holds, room) = (state.input_tokens_estimate(), spec.model.context_tokens);
    let part = u128::from(holds) * 100 / u128::from(room.max(1));
    let text = format!("  the conversation takes about {holds} of {room} tokens, {part} %");
    vec![
        Row::note(Tone::Plain, &text),
        Row::note(Tone::Detail, "  it is summarised by itself when it does not fit any more"),
    ]
}

/// What a turn left behind, in a line.
pub(super) fn changed(files: usize) -> Row {
    let files = count(files as u64, "changed file");
    Row::note(Tone::Detail, &format!("  {files} in the sandbox · /diff shows · /apply writes back"))
}

/// What commands may reach.
pub(super) fn network(words: &str) -> Row {
    Row::note(Tone::Good, &format!("● commands may reach: {}", inert(words)))
}

/// What a conversation hears of a turn that is over.
pub(crate) fn over(state: &State) -> [Input; 3] {
    let totals = format!("  {} in all", Totals::of(state).words());
    [Input::Note(Tone::Detail, totals), Input::Asked(Vec::new()), Input::Idle]
}
