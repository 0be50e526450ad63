//! Memory and skills in the steps of a session.

use outrigger_agent::{
    Event, Outcome, Product, Seq, SessionId, State, Status, ToolKind, ToolOutput, Touched, Work,
};
use outrigger_policy::Situation;
use outrigger_tools::namespace::Namespace;
use outrigger_tools::{Invocation, ParsedCall};
use std::sync::Arc;

use super::labels::SessionLabels;
use super::rights::Judgement;
use super::tree::{MemoryTree, MemoryView, Origin};
use crate::driver::session::SessionRun;
use crate::policy_facts::with_facts;
use crate::sandbox::handle::SandboxHandle;
use crate::{Engine, Notice, Warning, limits};

/// Memory and skills of a session, as one effect comes to them.
#[derive(Debug, Clone)]
pub(crate) struct SessionMemory {
    view: Arc<MemoryView>,
    effect: Seq,
    /// The last version that the journal names.
    noted: u64,
}

impl SessionMemory {
    /// Where its file operations lead: to its tree, and to no sandbox yet.
    pub(crate) fn namespace(&self) -> Namespace {
        let view = Arc::clone(&self.view);
        let seen = Arc::clone(&view.tree.seen);
        Namespace::default().with_tree(view, seen)
    }

    /// What to say of a change of an entry by an attempt of which a crash hid the outcome:
    /// it is made once. Nothing if no such attempt made it.
    pub(crate) async fn done_before(&self, call: &Invocation<'_>) -> Option<ToolOutput> {
        let path = call.parsed.target()?;
        if !self.view.tree.wrote(&path, self.effect).await {
            return None;
        }
        let text = format!("Done: {path} was changed by this call. What it said was lost.");
        Some(ToolOutput::new(Status::Ok, text))
    }

    /// What was done to entries meanwhile, to be journalled beside an outcome; what was read
    /// labels it, and what was refused is told to the model.
    pub(crate) async fn record(&self, outcome: &mut Outcome) -> Touched {
        let tree = &self.view.tree;
        let recorder = tree.take();
        if let Outcome::Done(Product::Output(output)) = outcome {
            output.labels.extend(recorder.labels);
            let by_program = recorder.refused.iter().filter(|_| output.exit_code.is_some());
            for refused in by_program {
                output.text.push_str(&format!("\n[{}: {}]", refused.path, refused.reason));
            }
        }
        let refused = [recorder.refused, recorder.unseen].concat();
        let mut touched = Touched { refused, refused_more: recorder.more, ..Touched::default() };
        // The store knows all of them in their order; what is not read now is read later.
        if recorder.changed {
            match tree.unnoted(self.noted).await {
                Ok(changes) => touched.changes = changes,
                Err(_) => tree.changed(),
            }
        }
        touched
    }
}

/// Memory and skills as a session sees them; nothing if nobody configured them, or its
/// principal is no person.
pub(crate) fn tree_of(engine: &Engine, session: &SessionId, state: &State) -> Option<MemoryTree> {
    let (service, clock) = (engine.parts.memory.as_ref()?, &engine.parts.clock);
    let journal = (Arc::clone(&engine.parts.journal), engine.feed().clone());
    let labels = SessionLabels::new(clock, session, Some(journal));
    labels.add(state.labels());
    service.session_tree(&state.spec()?.principal, labels)
}

/// How the paths are judged that an effect comes to.
fn judgement(
    engine: &Engine,
    state: &State,
    effect: Seq,
    parsed: Option<&ParsedCall>,
    origin: Origin,
) -> Option<Judgement> {
    let (rules, effect) = (engine.rules().ok()?, state.effect(effect)?);
    let (at_ms, looks) = (engine.parts.clock.now_ms(), rules.looks());
    let facts = with_facts(state, &effect.work, parsed, at_ms, looks, |it| Situation::from(it));
    // Nobody was asked about what a program might do.
    let approved = if origin == Origin::Sandbox { Vec::new() } else { effect.approved.clone() };
    Some(Judgement::new(rules, facts, approved))
}

/// The memory of an effect that is about to be performed.
pub(crate) fn of_effect(
    engine: &Engine,
    run: &SessionRun,
    effect: Seq,
    parsed: &ParsedCall,
) -> Option<SessionMemory> {
    let tree = run.tree.as_ref()?;
    tree.labels.add(run.state.labels());
    memory_of(engine, tree, &run.state, effect, parsed, Origin::Tool(effect))
}

/// The memory of a person who looks at what an effect would change.
pub(crate) fn preview(
    engine: &Engine,
    session: &SessionId,
    state: &State,
    effect: Seq,
    parsed: &ParsedCall,
) -> Option<SessionMemory> {
    let tree = Arc::new(tree_of(engine, session, state)?);
    memory_of(engine, &tree, state, effect, parsed, Origin::Preview)
}

fn memory_of(
    engine: &Engine,
    tree: &Arc<MemoryTree>,
    state: &State,
    effect: Seq,
    parsed: &ParsedCall,
    origin: Origin,
) -> Option<SessionMemory> {
    let judgement = judgement(engine, state, effect, Some(parsed), origin)?;
    let view = Arc::new(tree.view(origin, judgement));
    Some(SessionMemory { view, effect, noted: state.noted() })
}

/// From now on programs in a sandbox see what their session sees. What sessions share is
/// served to none of them.
pub(crate) fn serve(
    engine: &Engine,
    run: &SessionRun,
    handle: Option<&SandboxHandle>,
    effect: Seq,
    parsed: Option<&ParsedCall>,
) {
    let own = handle.filter(|handle| !handle.shared);
    let (Some(service), Some(tree), Some(handle)) = (&engine.parts.memory, &run.tree, own) else {
        return;
    };
    tree.labels.add(run.state.labels());
    let judgement = judgement(engine, &run.state, effect, parsed, Origin::Sandbox);
    let Some(judgement) = judgement else { return };
    let command = is_command(&run.state, effect);
    // Of what runs there already, the command is not known any more.
    let judgement = if command { judgement } else { judgement.without_tool() };
    service.served.serve(handle.id.clone(), tree.view(Origin::Sandbox, judgement), command);
}

/// What was done to entries becomes part of the journal, each version once.
pub(crate) fn note(run: &mut SessionRun, mut touched: Touched, at_ms: u64) {
    let noted = run.state.noted();
    touched.changes.retain(|change| change.number > noted);
    let first = touched.changes.len().min(limits::TOUCHED_CHANGES_PER_EVENT);
    let rest = touched.changes.split_off(first);
    if !touched.is_empty() {
        run.push(at_ms, Event::Touched(Arc::new(touched)));
    }
    for changes in rest.chunks(limits::TOUCHED_CHANGES_PER_EVENT) {
        let touched = Touched { changes: changes.to_vec(), ..Touched::default() };
        run.push(at_ms, Event::Touched(Arc::new(touched)));
    }
}

/// What an earlier driver did not come to note.
pub(crate) async fn note_left_over(engine: &Engine, run: &mut SessionRun) {
    let Some(tree) = run.tree.clone() else { return };
    match tree.unnoted(run.state.noted()).await {
        Ok(changes) => {
            let touched = Touched { changes, ..Touched::default() };
            note(run, touched, engine.parts.clock.now_ms());
        }
        Err(source) => {
            let warning = Warning::NotNoted { reason: source.to_string() };
            engine.feed().tell(&run.session, || Notice::Warning(warning));
        }
    }
}

/// Whether an effect runs programs.
fn is_command(state: &State, effect: Seq) -> bool {
    match state.effect(effect).map(|effect| &effect.work) {
        Some(Work::CallTool(call)) => {
            state.tool(&call.tool).is_some_and(|tool| tool.kind == ToolKind::Execute)
        }
        Some(Work::AskModel | Work::Compact | Work::Provision { .. }) | None => false,
    }
}
