//! Forks and rewinds of sessions.
//!
//! Owns which checkpoints of a session can be gone back to, and that a fork's disks are its
//! own before it is opened, so that neither session can take anything from the other.
//! A fork is opened in one append and a rewind is one: there is none by halves.

use outrigger_agent::{
    Cut, CutSandbox, Event, Record, SandboxReady, Seq, SessionId, SnapshotRef, Spec, State,
};
use outrigger_sandbox::{Error as SandboxError, SnapshotId};
use outrigger_store::Error as StoreError;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::driver::journal::last_said;
use crate::sandbox::handle::{self, SandboxHandle, origin_of};
use crate::sandbox::suspend;
use crate::{Engine, Error, Warning};

/// A place in a session at which it can be forked or gone back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCheckpoint {
    /// The last event that belongs to it.
    pub at: Seq,
    /// When that was, milliseconds since 1970.
    pub at_ms: u64,
    /// How the session stood, in a word or two.
    pub status: &'static str,
    /// What was said last, its first line; empty before anything was.
    pub said: String,
    /// What is kept of its sandboxes' disks, as the session then knew.
    pub kept: Vec<SnapshotRef>,
    /// Names of sandboxes whose disk is not kept any more: it can't be gone back to.
    pub gone: Vec<String>,
}

/// What a fork or a rewind takes up.
struct ForkSource {
    checkpoint: SessionCheckpoint,
    spec: Arc<Spec>,
    budget: outrigger_agent::Limit,
    cut: Cut,
}

impl Engine {
    /// The checkpoints of a session, the oldest first: where it waited, and the disks of
    /// its sandboxes were kept.
    ///
    /// # Errors
    /// No such session, the journal's, or a backend's.
    pub async fn checkpoints(&self, session: &SessionId) -> Result<Vec<SessionCheckpoint>, Error> {
        self.history(session).await.map(|(checkpoints, _)| checkpoints)
    }

    async fn history(&self, session: &SessionId) -> Result<(Vec<SessionCheckpoint>, State), Error> {
        let (mut checkpoints, mut run) = (Vec::<SessionCheckpoint>::new(), false);
        let state = self
            .folded(session, None, |state, record| {
                if let Event::Rewound { cut, .. } = &record.event {
                    // It stands where it stood: what came after that is given up.
                    checkpoints.retain(|it| it.at <= cut.at);
                    run = true;
                    return;
                }
                if !state.is_cut(session, record.at_ms) {
                    run = false;
                    return;
                }
                // Of some in a row only the last: nothing was begun between them.
                if run {
                    checkpoints.pop();
                }
                run = true;
                checkpoints.push(checkpoint(state, record.at_ms));
            })
            .await?;
        let there = self.snapshots(&state, session).await?;
        for checkpoint in &mut checkpoints {
            checkpoint.gone.retain(|snapshot| !there.contains(snapshot));
        }
        Ok((checkpoints, state))
    }

    /// Opens `into` as `session` stood at a checkpoint; without one, as it stands at its
    /// last. Gives the checkpoint. The disks of its sandboxes are copies from then on.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`]; no such session; the journal's, also if there is a session `into`
    /// already; or a backend's. What was copied
    /// before an error is collected like anything that no session names.
    pub async fn fork(
        &self,
        session: &SessionId,
        at: Option<Seq>,
        into: &SessionId,
        by: &str,
    ) -> Result<SessionCheckpoint, Error> {
        // Its sandboxes have the names of those that are made here.
        let found = self.parts.journal.head(into).await;
        let found = found.map_err(|source| Error::journal(into, source))?;
        if found != Seq::default() {
            let source =
                StoreError::Conflict { session: into.clone(), expected: Seq::default(), found };
            return Err(Error::journal(into, source));
        }
        suspend::suspend(self, session).await?;
        let ForkSource { checkpoint, spec, budget, mut cut } =
            self.find(session, at, Fallback::Last).await?;
        let opened = Spec { budget, ..spec.on_its_own() };
        let at_ms = self.parts.clock.now_ms();
        let (opened, after) = (Event::Opened(Arc::new(opened)), Seq(1));
        let state = State::default().apply(&Record { seq: after, at_ms, event: opened.clone() });
        for (name, sandbox) in &mut cut.sandboxes {
            let theirs = handle::of(self, session, &state, name)?;
            let ours = handle::of(self, into, &state, name)?;
            adopt(&theirs, &ours, sandbox, after.next()).await.map_err(Error::Sandbox)?;
        }
        let forked = Event::Forked { by: by.to_owned(), cut: Arc::new(cut) };
        self.begin(into, vec![opened, forked]).await?;
        Ok(checkpoint)
    }

    /// Takes a session back to a checkpoint of its own; without one, to the one before its
    /// last turn. Its sandboxes end; the next call that needs one finds the disk as it
    /// was. What was spent stays spent, and snapshots of later are given up.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`], also while something runs; no such session; the journal's.
    pub async fn rewind(
        &self,
        session: &SessionId,
        to: Option<Seq>,
        by: &str,
    ) -> Result<(SessionCheckpoint, Vec<Warning>), Error> {
        let ForkSource { checkpoint, cut, .. } = self.find(session, to, Fallback::Before).await?;
        let rewound = Event::Rewound { by: by.to_owned(), cut: Arc::new(cut) };
        self.command(session, |state| {
            if suspend::own_park(self, session, state).is_none() {
                let why = "something runs in it; interrupt it first".to_owned();
                return Err(no_checkpoint(session, to, why));
            }
            super::command::ensure_open(session, state).map(|()| rewound.clone())
        })
        .await?;
        Ok((checkpoint, self.end_set_back(session).await))
    }

    /// Ends what was set back. The next call would do it anyway; but until then something
    /// may still run. The session has gone back whatever comes of it.
    async fn end_set_back(&self, session: &SessionId) -> Vec<Warning> {
        let warning = |name: String, source| Warning::NotRemoved { name, source };
        let state = match self.state(session).await {
            Ok(state) => state,
            Err(error) => {
                let source = SandboxError::Backend(error.to_string());
                return vec![warning(format!("what {session} ran in"), source)];
            }
        };
        let mut warnings = Vec::new();
        let names = state.spec().map(|spec| spec.sandbox_names()).unwrap_or_default();
        for name in names.into_iter().filter(|name| state.is_set_back(name)) {
            let Some(before) = state.last_ready(name) else { continue };
            let ended = match handle::of(self, session, &state, name) {
                Ok(handle) => end(&handle, before).await,
                Err(error) => Err(SandboxError::Backend(error.to_string())),
            };
            let id = || handle::sandbox_id(session, name).to_string();
            warnings.extend(ended.err().map(|source| warning(id(), source)));
        }
        warnings
    }

    /// A checkpoint by its place, or by where it stands among all.
    async fn find(
        &self,
        session: &SessionId,
        at: Option<Seq>,
        fallback: Fallback,
    ) -> Result<ForkSource, Error> {
        let (checkpoints, state) = self.history(session).await?;
        let checkpoint = match (at, fallback) {
            (Some(at), _) => checkpoints.iter().find(|it| it.at == at),
            (None, Fallback::Last) => checkpoints.last(),
            (None, Fallback::Before) => {
                let stands = state.is_cut(session, self.parts.clock.now_ms());
                checkpoints.iter().rev().nth(usize::from(stands))
            }
        };
        let Some(checkpoint) = checkpoint.cloned() else {
            let places: Vec<String> = checkpoints.iter().map(|it| it.at.to_string()).collect();
            let why = match places[..] {
                [] => "it has none yet: one is made when a turn ends".to_owned(),
                _ if at.is_some() => format!("its checkpoints are {}", places.join(", ")),
                _ => format!("it stands at its first, {}", places[0]),
            };
            return Err(no_checkpoint(session, at, why));
        };
        let at = Some(checkpoint.at);
        if !checkpoint.gone.is_empty() {
            let why = format!("{} is not kept any more", checkpoint.gone.join(", "));
            return Err(no_checkpoint(session, at, why));
        }
        let state = self.folded(session, at, |_, _| ()).await?;
        let cut = state.cut(session, checkpoint.at_ms);
        match (cut, state.spec()) {
            (Some(cut), Some(spec)) => {
                Ok(ForkSource { spec: Arc::clone(spec), budget: state.budget(), cut, checkpoint })
            }
            _ => Err(no_checkpoint(session, at, "it changed meanwhile".to_owned())),
        }
    }

    /// Folds a session from its first event, up to a place, and shows each state.
    async fn folded(
        &self,
        session: &SessionId,
        up_to: Option<Seq>,
        mut each: impl FnMut(&State, &Record) + Send,
    ) -> Result<State, Error> {
        let mut state = State::default();
        let mut next = Some(Seq::default());
        while let Some(after) = next.filter(|after| up_to.is_none_or(|up_to| *after < up_to)) {
            let loaded = self.parts.journal.load(session, after).await;
            let page = loaded.map_err(|source| Error::journal(session, source))?;
            for record in page.records {
                if up_to.is_some_and(|up_to| record.seq > up_to) {
                    break;
                }
                state = state.apply(&record);
                each(&state, &record);
            }
            next = page.more_after;
        }
        Ok(state)
    }

    /// The names of all snapshots that a session's backends have.
    async fn snapshots(
        &self,
        state: &State,
        session: &SessionId,
    ) -> Result<BTreeSet<String>, Error> {
        let mut there = BTreeSet::new();
        let names = state.spec().map(|spec| spec.sandbox_names()).unwrap_or_default();
        for name in names {
            let Ok(handle) = handle::of(self, session, state, name) else { continue };
            if let Ok(snapshots) = handle.backend.snapshots() {
                let listed = snapshots.list().await.map_err(Error::Sandbox)?;
                there.extend(listed.into_iter().map(|snapshot| snapshot.name.to_string()));
            }
        }
        Ok(there)
    }
}

/// The checkpoint that is meant where none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fallback {
    /// The last one.
    Last,
    /// The one before where it stands.
    Before,
}

fn checkpoint(state: &State, at_ms: u64) -> SessionCheckpoint {
    let kept: Vec<SnapshotRef> = state.last_kept().cloned().collect();
    let gone = kept.iter().map(|kept| kept.snapshot.clone()).collect();
    let said = last_said(state.conversation()).unwrap_or_default();
    SessionCheckpoint { at: state.seq(), at_ms, status: state.status(), said, kept, gone }
}

/// Ends the life that was set back, and none that somebody began since.
async fn end(handle: &SandboxHandle, before: &SandboxReady) -> Result<(), SandboxError> {
    let Some(listed) = handle.lookup().await? else { return Ok(()) };
    let given_up = handle.is_given_up(&listed, before);
    if given_up { handle.backend.destroy(&handle.id).await } else { Ok(()) }
}

fn no_checkpoint(session: &SessionId, at: Option<Seq>, why: String) -> Error {
    let place = at.map_or_else(|| "to go to".to_owned(), |at| format!("at {at}"));
    Error::NoCheckpoint { session: session.clone(), place, why }
}

/// Makes what is kept of one sandbox's disk another one's own: it is made from it, kept
/// under its own name, and ends again, until a call needs it.
async fn adopt(
    theirs: &SandboxHandle,
    ours: &SandboxHandle,
    sandbox: &mut CutSandbox,
    place: Seq,
) -> Result<(), SandboxError> {
    let Some((kept, origin)) = sandbox.kept.as_mut().and_then(|kept| {
        let origin = origin_of(kept)?;
        Some((kept, origin))
    }) else {
        return Ok(());
    };
    let snapshots = theirs.backend.snapshots()?;
    ours.backend.create(&ours.id, &ours.spec(origin)).await?;
    let name = SnapshotId::new(format!("{}.{place}", ours.id));
    let name = name.expect("a sandbox's id and a place are a name");
    let taken = snapshots.take(&ours.id, &name).await;
    ours.backend.destroy(&ours.id).await?;
    // When it was what it is, and not when it was copied.
    kept.snapshot = taken?.name.to_string();
    Ok(())
}
