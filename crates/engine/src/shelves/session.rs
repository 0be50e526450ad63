//! Memory and skills in the steps of a session.

use outrigger_agent::{
    Event, Outcome, Product, Seq, SessionId, State, Status, ToolKind, ToolOutput, Touched, Work,
};
use outrigger_policy::Situation;
use outrigger_sandbox::Sandbox;
use outrigger_tools::Invocation;
use outrigger_tools::namespace::{Namespace, Trees};
use std::sync::Arc;

use super::labels::SessionLabels;
use super::rights::Judgement;
use super::{Hand, Handled, SessionTree};
use crate::policy_facts::with_facts;
use crate::sandbox::SandboxHandle;
use crate::session::SessionRun;
use crate::{Engine, Notice, Warning, limits};

/// The tree of a session in the hand of one effect.
#[derive(Debug, Clone)]
pub(crate) struct Shelved {
    handled: Arc<Handled>,
    effect: Seq,
    /// The last version that the journal names.
    noted: u64,
}

impl Shelved {
    /// A sandbox with the tree over it.
    pub(crate) fn over(&self, sandbox: &Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
        Arc::new(Namespace::new(Arc::clone(sandbox), self.alone()))
    }

    /// The tree alone, for a call that needs no sandbox.
    pub(crate) fn alone(&self) -> Trees {
        let handled = Arc::clone(&self.handled);
        let seen = Arc::clone(&handled.tree.seen);
        Trees::new(handled, seen)
    }

    /// What to say of a change of an entry by an attempt of which a crash hid the outcome:
    /// it is made once. Nothing if no such attempt made it.
    pub(crate) async fn done_before(&self, call: &Invocation<'_>) -> Option<ToolOutput> {
        let path = outrigger_tools::target(call.tool, call.arguments)?;
        if !self.handled.tree.wrote(&path, self.effect).await {
            return None;
        }
        let text = format!("Done: {path} was changed by this call. What it said was lost.");
        Some(ToolOutput::new(Status::Ok, text))
    }

    /// What was done to entries meanwhile, to be journalled beside an outcome; what was read
    /// labels it, and what was refused is told to the model.
    pub(crate) async fn told(&self, outcome: &mut Outcome) -> Touched {
        let tree = &self.handled.tree;
        let told = tree.take();
        if let Outcome::Done(Product::Output(output)) = outcome {
            output.labels.extend(told.labels);
            let by_program = told.refused.iter().filter(|_| output.exit_code.is_some());
            for refused in by_program {
                output.text.push_str(&format!("\n[{}: {}]", refused.path, refused.reason));
            }
        }
        let refused = [told.refused, told.unseen].concat();
        let mut touched = Touched { refused, refused_more: told.more, ..Touched::default() };
        // The store knows all of them in their order; what is not read now is read later.
        if told.changed {
            match tree.untold(self.noted).await {
                Ok((changes, all)) => {
                    touched.changes = changes;
                    if !all {
                        tree.changed();
                    }
                }
                Err(_) => tree.changed(),
            }
        }
        touched
    }
}

impl Engine {
    /// Memory and skills as a session sees them; nothing if nobody configured them, or its
    /// principal is no person.
    pub(crate) fn session_tree(&self, session: &SessionId, state: &State) -> Option<SessionTree> {
        let (shelves, clock) = (self.parts.shelves.as_ref()?, &self.parts.clock);
        let journal = (Arc::clone(&self.parts.journal), self.feed().clone());
        let labels = SessionLabels::new(clock, session, Some(journal));
        labels.add(state.labels());
        SessionTree::new(shelves, clock, session, &state.spec()?.principal, labels)
    }

    /// How the paths are judged that an effect comes to.
    fn judgement(&self, state: &State, effect: Seq, hand: Hand) -> Option<Judgement> {
        let (rules, effect) = (self.rules().ok()?, state.effect(effect)?);
        let at_ms = self.parts.clock.now_ms();
        let facts = with_facts(state, &effect.work, at_ms, rules.looks(), |it| Situation::from(it));
        // Nobody was asked about what a program might do.
        let approved = if hand == Hand::Sandbox { Vec::new() } else { effect.approved.clone() };
        Some(Judgement::new(rules, facts, approved))
    }

    /// The tree in the hand of an effect that is about to be performed.
    pub(crate) fn shelved(&self, run: &SessionRun, effect: Seq) -> Option<Shelved> {
        let tree = run.tree.as_ref()?;
        tree.labels.add(run.state.labels());
        self.in_hand(tree, &run.state, effect, Hand::Tool(effect))
    }

    /// The tree for a person who looks at what an effect would change.
    pub(crate) fn shown(&self, session: &SessionId, state: &State, effect: Seq) -> Option<Shelved> {
        let tree = Arc::new(self.session_tree(session, state)?);
        self.in_hand(&tree, state, effect, Hand::Preview)
    }

    fn in_hand(
        &self,
        tree: &Arc<SessionTree>,
        state: &State,
        effect: Seq,
        hand: Hand,
    ) -> Option<Shelved> {
        let handled = Arc::new(tree.handled(hand, self.judgement(state, effect, hand)?));
        Some(Shelved { handled, effect, noted: state.noted() })
    }

    /// From now on programs in a sandbox see what their session sees. What sessions share is
    /// served to none of them.
    pub(crate) fn serve(&self, run: &SessionRun, handle: Option<&SandboxHandle>, effect: Seq) {
        let own = handle.filter(|handle| !handle.shared);
        let (Some(shelves), Some(tree), Some(handle)) = (&self.parts.shelves, &run.tree, own)
        else {
            return;
        };
        tree.labels.add(run.state.labels());
        let Some(judgement) = self.judgement(&run.state, effect, Hand::Sandbox) else { return };
        let command = is_command(&run.state, effect);
        // Of what runs there already, the command is not known any more.
        let judgement = if command { judgement } else { judgement.without_tool() };
        shelves.served.serve(handle.id.clone(), tree.handled(Hand::Sandbox, judgement), command);
    }

    /// What was done to entries becomes part of the journal, each version once.
    pub(crate) fn note(&self, run: &mut SessionRun, mut touched: Touched, at_ms: u64) {
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
    pub(crate) async fn note_untold(&self, run: &mut SessionRun) {
        let Some(tree) = run.tree.clone() else { return };
        match tree.untold(run.state.noted()).await {
            Ok((changes, all)) => {
                if !all {
                    tree.changed();
                }
                let touched = Touched { changes, ..Touched::default() };
                self.note(run, touched, self.parts.clock.now_ms());
            }
            Err(source) => {
                let warning = Warning::NotNoted { reason: source.to_string() };
                self.feed().tell(&run.session, || Notice::Warning(warning));
            }
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
