//! Runs a subagent: opens its session, drives it to its end, and takes its answer.
//!
//! Owns that the same tool call always is the same session, whoever drives the one above
//! and how often; that its sandboxes are its own before it is opened; and that nothing can
//! be spent in it any more when what it spent is settled above.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outrigger_agent::{
    Amounts, Child, CutSandbox, Event, Files, Outcome, Park, Product, Seq, SessionId, State,
    Status, ToolCall, ToolOutput, Work,
};
use outrigger_sandbox::Error as SandboxError;
use outrigger_store::Error as StoreError;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::driver::session::{Completion, DriveBelow, SessionRun};
use crate::driver::tasks::scoped;
use crate::driver::wait::WaitingOnPeople;
use crate::sandbox::handle::{self, SandboxHandle};
use crate::sandbox::suspend;
use crate::{Engine, Error, limits};

/// `None` if no reply of the model contains the call.
pub(super) fn run(
    engine: &Engine,
    run: &SessionRun,
    effect: Seq,
    call: &ToolCall,
) -> Option<impl Future<Output = Result<Completion, Error>> + Send + use<>> {
    run.state.call(call)?;
    let subagent = subagent(engine, run, effect, call);
    let (waiting, session) = (run.waiting.clone(), run.session.clone());
    Some(async move {
        match subagent {
            // It goes on while its parent's driver waits for something else: both use
            // the same journal, and one that is not polled may be who holds it.
            Ok(subagent) => scoped(async move { subagent.run(&waiting).await })
                .await
                .unwrap_or(Err(Error::Driver(session))),
            Err(detail) => Ok(not_begun(effect, &detail)),
        }
    })
}

fn subagent(
    engine: &Engine,
    run: &SessionRun,
    effect: Seq,
    call: &ToolCall,
) -> Result<Subagent, String> {
    let (session, state) = (&run.session, &run.state);
    let child = Child::of(state, session, effect, call)?;
    let disks = match child.files {
        Files::Copy => disks(engine, session, state, &child).map_err(|error| error.to_string()),
        Files::Start => Ok(Vec::new()),
    };
    let (engine, parent, drive) = (engine.clone(), session.clone(), run.drive_below);
    Ok(Subagent { engine, drive, parent, effect, child, disks })
}

/// The disks of a session that a subagent's tools act on.
fn disks(
    engine: &Engine,
    session: &SessionId,
    state: &State,
    child: &Child,
) -> Result<Vec<Disk>, Error> {
    let mut disks = Vec::new();
    let tools = child.spec.tools.iter().filter_map(|tool| tool.sandbox.as_deref());
    for name in tools.collect::<BTreeSet<_>>() {
        let Some(ready) = state.last_ready(name).cloned() else { continue };
        let theirs = handle::of(engine, session, state, name)?;
        if !theirs.shared {
            let sandbox = CutSandbox { ready, kept: state.kept(name).last().cloned() };
            let lives = state.sandbox(name).is_some();
            disks.push(Disk { name: name.to_owned(), sandbox, lives, theirs });
        }
    }
    Ok(disks)
}

/// Ends a subagent, whether it was opened or not, and gives what it spent. A driver
/// that others believe dead can't begin it any more either.
pub(crate) fn stop(
    engine: &Engine,
    run: &SessionRun,
    effect: Seq,
) -> BoxFuture<'static, Result<Amounts, Error>> {
    let subagent = match run.state.effect(effect).map(|effect| &effect.work) {
        Some(Work::CallTool(call)) => subagent(engine, run, effect, call).ok(),
        Some(Work::AskModel | Work::Compact | Work::Provision { .. }) | None => None,
    };
    async move {
        match subagent {
            Some(subagent) => subagent.stop().await,
            None => Ok(Amounts::default()),
        }
    }
    .boxed()
}

/// A disk of the session above.
struct Disk {
    name: String,
    sandbox: CutSandbox,
    /// Whether its sandbox lives, so that it is copied as it is now.
    lives: bool,
    theirs: SandboxHandle,
}

struct Subagent {
    engine: Engine,
    drive: DriveBelow,
    parent: SessionId,
    effect: Seq,
    child: Child,
    /// What it is to have copies of; or why that can't be told.
    disks: Result<Vec<Disk>, String>,
}

impl Subagent {
    async fn run(mut self, waiting: &WaitingOnPeople) -> Result<Completion, Error> {
        if let Some(detail) = self.begin().await? {
            return Ok(not_begun(self.effect, &detail));
        }
        let (engine, session) = (&self.engine, &self.child.session);
        loop {
            match (self.drive)(engine, session).await? {
                Park::Answers(_) => {
                    // What can't be suspended now goes on running; listeners are told.
                    suspend::suspend(engine, session).await?;
                    let _guard = waiting.begin(self.effect);
                    self.wait().await?;
                }
                Park::Message | Park::Unopened | Park::Cancelled => {
                    if let Some(state) = self.close("its answer was taken").await? {
                        let spent = state.spent().plus(Amounts::STEP);
                        let output = outrigger_tools::subagent::shown(&state);
                        let outcome = Outcome::Done(Product::Output(output));
                        return Ok(Completion::new(self.effect, outcome, spent));
                    }
                }
            }
        }
    }

    /// Opens it, unless it was opened before. Gives what stands against it, for the model.
    async fn begin(&mut self) -> Result<Option<String>, Error> {
        match self.engine.state(&self.child.session).await {
            Ok(state) => return Ok(self.against(&state)),
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        let copied = self.copy_disks().await;
        let first = match &copied {
            Ok(()) => Event::Said(Arc::new(self.child.task.clone())),
            // Another driver may have had more luck, and may be about to open it: what is
            // told to be not begun must not begin afterwards.
            Err(detail) => {
                let by = self.child.spec.role.above.first().cloned().unwrap_or_default();
                Event::Cancelled { by, reason: uncopied(detail) }
            }
        };
        self.open(first).await?;
        let state = self.engine.state(&self.child.session).await?;
        Ok(match copied {
            Err(detail) if was_given_up(&state) => {
                self.drop_copies().await;
                Some(uncopied(&detail))
            }
            Ok(()) | Err(_) => self.against(&state),
        })
    }

    /// Why it does not go on although it is there.
    fn against(&self, state: &State) -> Option<String> {
        let given_up = || was_given_up(state).then(|| "it was given up before it began".to_owned());
        self.is_other(state).or_else(given_up)
    }

    /// Another driver may be faster.
    async fn open(&self, last: Event) -> Result<(), Error> {
        let Child { session, spec, cut, .. } = &self.child;
        let by = self.child.spec.role.above.first().cloned();
        let events = vec![
            Event::Opened(Arc::new(spec.clone())),
            Event::Forked { by: by.unwrap_or_default(), cut: Arc::new(cut.clone()) },
            last,
        ];
        match self.engine.begin(session, events).await {
            Err(Error::Journal { source: StoreError::Conflict { .. }, .. }) => Ok(()),
            opened => opened,
        }
    }

    /// A session of that name that is not this call's is left alone.
    fn is_other(&self, state: &State) -> Option<String> {
        let ours = self.child.spec.parent();
        let same = state.spec().is_some_and(|spec| spec.parent() == ours);
        (!same).then(|| format!("there is another session `{}`", self.child.session))
    }

    /// Keeps the disks above as they are now, for its sandboxes to begin from. Repeating it
    /// after a crash is harmless.
    async fn copy_disks(&mut self) -> Result<(), String> {
        for Disk { name, sandbox, lives, theirs } in self.disks.as_ref().map_err(Clone::clone)? {
            let mut sandbox = sandbox.clone();
            if *lives {
                let kept = copied(theirs, &self.parent, self.effect).await;
                sandbox.kept = Some(kept.map_err(|error| error.to_string())?);
            }
            self.child.cut.sandboxes.insert(name.clone(), sandbox);
        }
        Ok(())
    }

    /// Until it does not wait for a person any more, it or what is below it.
    async fn wait(&self) -> Result<(), Error> {
        let (engine, session) = (&self.engine, &self.child.session);
        loop {
            let state = engine.state(session).await?;
            if !matches!(
                suspend::current_park(engine, session, &state).await?,
                Some(Park::Answers(_))
            ) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(limits::FOREIGN_POLL_MS)).await;
        }
    }

    /// Removes what was kept for it. What can't be removed now is collected.
    async fn drop_copies(&self) {
        for Disk { theirs, .. } in self.disks.iter().flatten() {
            if let (Ok(snapshots), Ok(name)) =
                (theirs.backend.snapshots(), theirs.snapshot_name(&self.parent, self.effect))
            {
                drop(snapshots.remove(&name).await);
            }
        }
    }

    /// Ends it for good and destroys its sandboxes. Gives how it stands; nothing if
    /// somebody let it go on meanwhile.
    async fn close(&self, reason: &str) -> Result<Option<State>, Error> {
        let session = &self.child.session;
        let state = self.engine.state(session).await?;
        if state.in_turn() && !state.is_cancelled() {
            return Ok(None);
        }
        let by = self.child.spec.role.above.first().cloned().unwrap_or_default();
        let closing = self.engine.command(session, |state| {
            crate::people::command::ensure_open(session, state)?;
            if state.in_turn() {
                return Err(Error::Contended(session.clone()));
            }
            Ok(Event::Cancelled { by: by.clone(), reason: reason.to_owned() })
        });
        match closing.await {
            Ok(()) | Err(Error::Ended(_)) => {}
            Err(Error::Contended(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        suspend::suspend(&self.engine, session).await?;
        self.drop_copies().await;
        self.engine.state(session).await.map(Some)
    }

    async fn stop(self) -> Result<Amounts, Error> {
        let (by, reason) = ("engine".to_owned(), "the session above was stopped".to_owned());
        let session = self.child.session.clone();
        let found = match self.engine.state(&session).await {
            Err(Error::NotFound(_)) => {
                let cancelled = Event::Cancelled { by: by.clone(), reason: reason.clone() };
                self.open(cancelled).await?;
                self.engine.state(&session).await?
            }
            found => found?,
        };
        if self.is_other(&found).is_some() {
            return Ok(Amounts::STEP);
        }
        self.engine.cancel(&session, &by, &reason).await?;
        (self.drive)(&self.engine, &session).await?;
        suspend::suspend(&self.engine, &session).await?;
        self.drop_copies().await;
        Ok(self.engine.state(&session).await?.spent().plus(Amounts::STEP))
    }
}

/// Keeps the disk of a sandbox above as it is now. What a command left running there
/// may keep it busy for a moment, and so may another copy.
async fn copied(
    theirs: &SandboxHandle,
    parent: &SessionId,
    effect: Seq,
) -> Result<outrigger_agent::SnapshotRef, SandboxError> {
    let snapshots = theirs.backend.snapshots()?;
    let pause = Duration::from_millis(limits::COPY_PAUSE_MS);
    for _ in 1..limits::COPY_ATTEMPTS_MAX {
        match theirs.take_snapshot(snapshots, parent, effect).await {
            Err(SandboxError::Busy { .. }) => tokio::time::sleep(pause).await,
            taken => return taken,
        }
    }
    theirs.take_snapshot(snapshots, parent, effect).await
}

fn uncopied(detail: &str) -> String {
    format!("its files could not be copied: {detail}")
}

/// Whether it was ended before it heard its task.
fn was_given_up(state: &State) -> bool {
    state.is_cancelled() && !state.in_turn() && state.ended().is_none()
}

fn not_begun(effect: Seq, detail: &str) -> Completion {
    let text = format!("No subagent was started: {}.", detail.trim_end_matches('.'));
    let output = ToolOutput::new(Status::Error, text);
    Completion::new(effect, Outcome::Done(Product::Output(output)), Amounts::STEP)
}
