//! Memory and skills in the steps of a session.

use outrigger_agent::{
    Event, Outcome, Product, Role, Seq, SessionId, State, Status, ToolOutput, Touched,
};
use outrigger_sandbox::Sandbox;
use outrigger_tools::Invocation;
use outrigger_tools::namespace::{Namespace, Trees};
use std::sync::Arc;

use super::rights::Who;
use super::{Hand, Handled, SessionTree};
use crate::live::Live;
use crate::sandboxes::Berth;
use crate::{Engine, Notice, Trouble};

/// The tree of a session in the hand of one effect.
#[derive(Debug, Clone)]
pub(crate) struct Shelved {
    tree: Arc<SessionTree>,
    effect: Seq,
    /// The last version that the journal names.
    noted: u64,
}

impl Shelved {
    pub(crate) fn new(tree: &Arc<SessionTree>, effect: Seq) -> Self {
        Self { tree: Arc::clone(tree), effect, noted: 0 }
    }

    /// A sandbox with the tree over it.
    pub(crate) fn over(&self, sandbox: &Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
        Arc::new(Namespace::new(Arc::clone(sandbox), self.alone()))
    }

    /// The tree alone, for a call that needs no sandbox.
    pub(crate) fn alone(&self) -> Trees {
        let hand = Hand::Tool(self.effect);
        let tree = Arc::new(Handled { tree: Arc::clone(&self.tree), hand });
        Trees::new(tree, Arc::clone(&self.tree.seen))
    }

    /// What to say of a change of an entry by an attempt of which a crash hid the outcome:
    /// it is made once. Nothing if no such attempt made it.
    pub(crate) async fn done_before(&self, call: &Invocation<'_>) -> Option<ToolOutput> {
        let path = outrigger_tools::target(call.tool, call.arguments)?;
        if !self.tree.wrote(&path, self.effect).await {
            return None;
        }
        let text = format!("Done: {path} was changed by this call. What it said was lost.");
        Some(ToolOutput::new(Status::Ok, text))
    }

    /// What was done to entries meanwhile, to be journalled beside an outcome; what was read
    /// labels it, and what was refused is told to the model.
    pub(crate) async fn told(&self, outcome: &mut Outcome) -> Touched {
        let (mut touched, labels, changed) = self.tree.take();
        if let Outcome::Done(Product::Output(output)) = outcome {
            output.labels.extend(labels);
            let by_program = touched.refused.iter().filter(|_| output.exit_code.is_some());
            for refused in by_program {
                output.text.push_str(&format!("\n[{}: {}]", refused.path, refused.reason));
            }
        }
        // The store knows all of them in their order; what is not read now is read later.
        if changed && let Ok(changes) = self.tree.untold(self.noted).await {
            touched.changes = changes;
        }
        touched
    }
}

impl Engine {
    /// Memory and skills as a session sees them; nothing if nobody configured them, or its
    /// principal is no person.
    pub(crate) fn session_tree(&self, session: &SessionId, state: &State) -> Option<SessionTree> {
        let shelves = self.parts.shelves.as_ref()?;
        let spec = state.spec()?;
        let sandbox = spec.sandboxes.first().map(|sandbox| sandbox.name.as_str());
        let (rules, clock) = (Arc::new(self.parts.rules.current().ok()?), &self.parts.clock);
        let sandbox = sandbox.unwrap_or_default();
        let tree = SessionTree::new(shelves, &rules, clock, session, &spec.principal, sandbox)?;
        tree.set(who(state));
        Some(tree)
    }

    /// The tree in the hand of an effect that is about to be performed.
    pub(crate) fn shelved(&self, live: &Live, effect: Seq) -> Option<Shelved> {
        let tree = live.tree.as_ref()?;
        tree.set(who(&live.state));
        Some(Shelved { noted: live.state.noted(), ..Shelved::new(tree, effect) })
    }

    /// From now on programs in a sandbox see what their session sees. What sessions share is
    /// served to none of them.
    pub(crate) fn serve(&self, live: &Live, berth: Option<&Berth>) {
        let own = berth.filter(|berth| !berth.shared);
        if let (Some(shelves), Some(tree), Some(berth)) = (&self.parts.shelves, &live.tree, own) {
            shelves.served.serve(berth.id.clone(), Arc::clone(tree));
        }
    }

    /// What was done to entries becomes part of the journal, each version once.
    pub(crate) fn note(&self, live: &mut Live, mut touched: Touched, at_ms: u64) {
        let noted = live.state.noted();
        touched.changes.retain(|change| change.number > noted);
        if !touched.is_empty() {
            live.push(at_ms, Event::Touched(Arc::new(touched)));
        }
    }

    /// What an earlier driver did not come to note.
    pub(crate) async fn note_untold(&self, live: &mut Live) {
        let Some(tree) = live.tree.clone() else { return };
        match tree.untold(live.state.noted()).await {
            Ok(changes) => {
                let touched = Touched { changes, ..Touched::default() };
                self.note(live, touched, self.parts.clock.now_ms());
            }
            Err(source) => {
                let trouble = Trouble::NotNoted { reason: source.to_string() };
                self.feed().tell(&live.session, || Notice::Trouble(trouble));
            }
        }
    }
}

/// Who acts in a session now.
fn who(state: &State) -> Who {
    let role = state.spec().map(|spec| &spec.role);
    Who {
        principal: state.spec().map(|spec| spec.principal.clone()).unwrap_or_default(),
        agent: role.map(Role::acting).unwrap_or_default(),
        above: role.map(Role::above).unwrap_or_default(),
        labels: state.labels().clone(),
    }
}
