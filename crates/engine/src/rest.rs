//! Looks after the sandboxes of a session that waits: keeps their disks, suspends
//! them, and destroys those of a session that was ended.
//!
//! Off the path to the answer: whoever drives calls it when the answer was given.
//! Must never fail a turn, and never touch what runs.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outrigger_agent::{Event, Next, Park, Record, SessionId, State};
use outrigger_sandbox::{Error as SandboxError, Suspend};
use outrigger_store::Error as StoreError;

use crate::keep::{prune, remove, take};
use crate::sandboxes::{Berth, Keep};
use crate::{Engine, Error, Notice, Trouble, limits};

impl Engine {
    /// Looks after the sandboxes of a session that waits. One that does not wait is
    /// left alone. Safe at any moment, beside a driver as well: what runs is busy, and
    /// the journal's fence refuses what is out of date. What went wrong is told to
    /// listeners too.
    ///
    /// # Errors
    /// No such session, or the journal's.
    pub async fn rest(&self, session: &SessionId) -> Result<Vec<Trouble>, Error> {
        let mut state = self.state(session).await?;
        let mut troubles = match self.stands(session, &state).await? {
            Some(Park::Cancelled) => self.discard(session, &state).await,
            Some(Park::Message | Park::Answers(_)) => Vec::new(),
            Some(Park::Unopened) | None => return Ok(Vec::new()),
        };
        let living = state.sandboxes().filter(|_| !state.is_cancelled());
        let names: Vec<String> = living.map(|(name, _)| name.to_owned()).collect();
        for name in names {
            let Ok(berth) = self.berth(session, &state, &name) else { continue };
            troubles.extend(self.keep_disk(session, &mut state, &name, &berth).await?);
            if self.stands(session, &state).await?.is_some() {
                troubles.extend(suspend(&name, &berth).await);
            }
        }
        let below = matches!(self.stands(session, &state).await?, Some(Park::Answers(_)));
        if below && state.status() != State::WAITS {
            self.tell_how_it_stands(session, state.seq(), State::WAITS).await?;
        }
        for trouble in &troubles {
            self.feed().tell(session, || Notice::Trouble(trouble.clone()));
        }
        Ok(troubles)
    }

    /// Destroys the sandboxes that are a session's alone, with what was kept of them.
    /// Repeating it is harmless.
    pub async fn discard(&self, session: &SessionId, state: &State) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        let Some(spec) = state.spec() else { return troubles };
        for name in spec.sandbox_names() {
            let Ok(berth) = self.berth(session, state, name) else { continue };
            if berth.shared {
                continue;
            }
            if let Some(shelves) = &self.parts.shelves {
                shelves.served.forget(&berth.id);
            }
            if let Err(source) = berth.backend.destroy(&berth.id).await {
                troubles.push(Trouble::NotRemoved { name: berth.id.to_string(), source });
            }
            let Ok(snapshots) = berth.backend.snapshots() else { continue };
            troubles.extend(prune(snapshots, &berth.id, 0).await);
        }
        troubles
    }

    /// What a session waits for, also if only its subagents wait, and it for them.
    pub(crate) fn stands<'a>(
        &'a self,
        session: &'a SessionId,
        state: &'a State,
    ) -> BoxFuture<'a, Result<Option<Park>, Error>> {
        async move {
            let Next::Perform(ids) = state.decide(session, self.parts.clock.now_ms()) else {
                return Ok(self.waits(session, state));
            };
            for id in &ids {
                let child = session.child(*id);
                let below = match state.is_subagent(*id) {
                    true => self.state(&child).await,
                    false => return Ok(None),
                };
                match below {
                    Ok(below) => match self.stands(&child, &below).await? {
                        Some(Park::Answers(_)) => {}
                        Some(Park::Unopened | Park::Message | Park::Cancelled) | None => {
                            return Ok(None);
                        }
                    },
                    Err(Error::NotFound(_)) => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            Ok(Some(Park::Answers(ids)))
        }
        .boxed()
    }

    /// What a session waits for, as its own journal says.
    pub(crate) fn waits(&self, session: &SessionId, state: &State) -> Option<Park> {
        match state.decide(session, self.parts.clock.now_ms()) {
            Next::Park(park) => Some(park),
            Next::Record(_)
            | Next::Judge(_)
            | Next::Start(..)
            | Next::Perform(_)
            | Next::Stop(_) => None,
        }
    }

    /// Keeps the disk of a sandbox that may have changed since it was kept. `state`
    /// moves on with what is journalled of it.
    async fn keep_disk(
        &self,
        session: &SessionId,
        state: &mut State,
        name: &str,
        berth: &Berth,
    ) -> Result<Vec<Trouble>, Error> {
        let Keep::Turn { kept_max } = berth.care.keep else { return Ok(Vec::new()) };
        let (Some(changed), Ok(snapshots)) = (state.unkept(name), berth.backend.snapshots()) else {
            return Ok(Vec::new());
        };
        let kept = match take(berth, snapshots, session, changed).await {
            Ok(kept) => kept,
            Err(SandboxError::Busy { .. }) => return Ok(Vec::new()),
            Err(source) => {
                return Ok(vec![Trouble::NotKept { sandbox: name.to_owned(), source }]);
            }
        };
        for _ in 0..limits::CONFLICTS_MAX {
            let stands = self.stands(session, state).await?;
            let waits = matches!(stands, Some(Park::Message | Park::Answers(_)));
            if !waits || state.unkept(name) != Some(changed) {
                // Somebody drives on: what was taken is nobody's, and is collected.
                return Ok(Vec::new());
            }
            let older = state.kept(name);
            let many = (older.len() + 1).saturating_sub(kept_max.max(1));
            let dropped: Vec<String> =
                older.iter().take(many).map(|old| old.snapshot.clone()).collect();
            let event = Event::SandboxKept {
                sandbox: name.to_owned(),
                kept: kept.clone(),
                dropped: dropped.clone(),
            };
            if self.append_one(session, state, event).await? {
                return Ok(if berth.shared {
                    // The other sessions know nothing of each other's.
                    prune(snapshots, &berth.id, kept_max.max(1)).await
                } else {
                    remove(snapshots, dropped).await
                });
            }
        }
        Err(Error::Contended(session.clone()))
    }

    /// Appends an event to a session that waits. False if somebody else was first;
    /// the state is folded anew then.
    async fn append_one(
        &self,
        session: &SessionId,
        state: &mut State,
        event: Event,
    ) -> Result<bool, Error> {
        let (at_ms, after) = (self.parts.clock.now_ms(), state.seq());
        let record = Record { seq: after.next(), at_ms, event };
        let next = state.clone().apply(&record);
        match self.append(session, after, at_ms, vec![record.event], &next).await {
            Ok(()) => {
                *state = next;
                Ok(true)
            }
            Err(Error::Journal { source: StoreError::Conflict { .. }, .. }) => {
                *state = self.state(session).await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// As deeply as is wanted and offered.
async fn suspend(name: &str, berth: &Berth) -> Option<Trouble> {
    let wanted = berth.care.suspend.filter(|_| !berth.shared)?;
    let offered = berth.backend.capabilities().suspend.iter().copied();
    let how: Suspend = offered.filter(|offered| *offered <= wanted).max()?;
    match berth.backend.suspend(&berth.id, how).await {
        Ok(())
        | Err(
            SandboxError::Busy { .. }
            | SandboxError::Absent { .. }
            | SandboxError::Unsupported { .. },
        ) => None,
        Err(source) => Some(Trouble::NotSuspended { sandbox: name.to_owned(), source }),
    }
}
