//! What people do to sessions: each a fenced append, and a poke by who called.

use outrigger_agent::{
    Author, Event, Limit, Message, ModelSpec, Picture, Record, Seq, SessionId, SharedAccess, Spec,
    State, Touched, TurnLimits, WhenBusy,
};
use outrigger_policy::Principal;
use outrigger_store::Error as StoreError;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::pictures::ensure_shown;
use crate::driver::journal;
use crate::egress::NO_NETWORK;
use crate::sandbox::sandbox_id;
use crate::{Engine, Error, limits};

/// What is otherwise from where a session is resumed on. What is `None` stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResumeChange {
    /// The session's budget.
    pub budget: Option<Limit>,
    /// The turn's limits; its steps and time count anew.
    pub turn: Option<TurnLimits>,
    /// The model.
    pub model: Option<ModelSpec>,
    /// What the first sandbox may reach, in the words of `--net`.
    pub network: Option<Vec<String>>,
}

impl Engine {
    /// Stores pictures by their names and bytes, before a message has them.
    ///
    /// # Errors
    /// [`Error::Picture`], [`Error::TooManyPictures`], [`Error::Blob`].
    pub async fn keep_pictures(
        &self,
        shown: Vec<(String, Vec<u8>)>,
    ) -> Result<Vec<Picture>, Error> {
        let (count, max) = (shown.len(), outrigger_agent::limits::PICTURES_PER_MESSAGE_MAX);
        if count > max {
            return Err(Error::TooManyPictures { count, max });
        }
        let known = shown.iter().map(|(name, content)| crate::picture(name, content));
        let known = known.collect::<Result<Vec<_>, _>>()?;
        for (_, content) in shown {
            self.parts.blobs.put(content).await.map_err(Error::Blob)?;
        }
        Ok(known)
    }

    /// The bytes of a picture.
    ///
    /// # Errors
    /// [`Error::Blob`].
    pub async fn picture_bytes(&self, picture: &Picture) -> Result<Vec<u8>, Error> {
        self.parts.blobs.get(&picture.digest).await.map_err(Error::Blob)
    }

    /// Opens a session with what is said first.
    ///
    /// # Errors
    /// A message that is too large, pictures that the model can't be shown, a session of that
    /// name, or the journal's.
    pub async fn open(
        &self,
        session: &SessionId,
        spec: Spec,
        messages: Vec<Message>,
    ) -> Result<(), Error> {
        self.open_labelled(session, spec, BTreeSet::new(), messages).await
    }

    /// Opens a session whose instructions hold what came from elsewhere.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub async fn open_labelled(
        &self,
        session: &SessionId,
        spec: Spec,
        labels: BTreeSet<String>,
        messages: Vec<Message>,
    ) -> Result<(), Error> {
        for message in &messages {
            ensure_shown(&spec.model.name, std::iter::empty(), &message.pictures)?;
        }
        let mut events = vec![Event::Opened(Arc::new(spec))];
        if !labels.is_empty() {
            let touched = Touched { labels, ..Touched::default() };
            events.push(Event::Touched(Arc::new(touched)));
        }
        for message in messages {
            events.push(said(message)?);
        }
        self.begin(session, events).await
    }

    /// Opens a session in one append, so that there is none by halves.
    pub(crate) async fn begin(&self, session: &SessionId, events: Vec<Event>) -> Result<(), Error> {
        let at_ms = self.parts.clock.now_ms();
        let state = events.iter().fold(State::default(), |state, event| {
            let record = Record { seq: state.seq().next(), at_ms, event: event.clone() };
            state.apply(&record)
        });
        journal::append(self, session, Seq::default(), at_ms, events, &state).await
    }

    /// Says something: begins a turn, or steers the running one.
    ///
    /// # Errors
    /// A message that is too large, pictures that the model can't be shown, an ended session,
    /// or the journal's.
    pub async fn say(&self, session: &SessionId, message: Message) -> Result<(), Error> {
        self.say_all(session, vec![message], WhenBusy::Steer).await
    }

    /// Says several things, or none of them. Where a turn runs it becomes of them what `asked`
    /// says. Nothing is said where one of them came with a request that was heard before.
    ///
    /// # Errors
    /// As [`Engine::say`]; and a turn that runs, where that is refused.
    pub async fn say_all(
        &self,
        session: &SessionId,
        messages: Vec<Message>,
        asked: WhenBusy,
    ) -> Result<(), Error> {
        let shown = messages.iter().flat_map(|it| it.pictures.clone()).collect::<Vec<_>>();
        let requests = messages.iter().filter_map(|it| it.request.clone()).collect::<Vec<_>>();
        let by = messages.iter().find_map(|it| match &it.author {
            Author::Person(by) => Some(by.clone()),
            Author::Agent(_) | Author::Untrusted(_) | Author::Trusted(_) => None,
        });
        let after_turn = asked == WhenBusy::Queue;
        let said = messages.into_iter().map(|it| said(Message { after_turn, ..it }));
        let said = said.collect::<Result<Vec<_>, _>>()?;
        self.commands(session, |state| {
            if requests.iter().any(|request| state.has_heard(request)) {
                return Ok(Vec::new());
            }
            let model = state.spec().map_or("", |spec| &spec.model.name);
            ensure_shown(model, state.pictures(), &shown)?;
            ensure_open(session, state)?;
            let stop = Event::Interrupted { by: by.clone().unwrap_or_default() };
            match asked {
                WhenBusy::Refuse if state.in_turn() => Err(Error::Busy(session.clone())),
                WhenBusy::Interrupt if state.in_turn() => Ok([&[stop], &said[..]].concat()),
                WhenBusy::Steer | WhenBusy::Queue | WhenBusy::Interrupt | WhenBusy::Refuse => {
                    Ok(said.clone())
                }
            }
        })
        .await
    }

    /// Stops the current turn and keeps the session.
    ///
    /// # Errors
    /// An ended session, or the journal's.
    pub async fn interrupt(&self, session: &SessionId, by: &str) -> Result<(), Error> {
        let by = by.to_owned();
        self.command(session, |state| {
            ensure_open(session, state).map(|()| Event::Interrupted { by: by.clone() })
        })
        .await
    }

    /// Shares the session with somebody, or not any more. What is so already is fine.
    ///
    /// # Errors
    /// A subagent's session, which is shared as the one above; or the journal's.
    pub async fn share(
        &self,
        session: &SessionId,
        with: &Principal,
        access: SharedAccess,
        by: &str,
    ) -> Result<(), Error> {
        let (with, by) = (with.to_string(), by.to_owned());
        self.command(session, |state| {
            if state.is_child() {
                let parent = session.root();
                return Err(Error::Subagent { session: session.clone(), parent });
            }
            Ok(Event::Shared { with: with.clone(), access, by: by.clone() })
        })
        .await
    }

    /// Has the conversation summarised before the model is asked again.
    ///
    /// # Errors
    /// An ended session, or the journal's.
    pub async fn compact(&self, session: &SessionId, by: &str) -> Result<(), Error> {
        let by = by.to_owned();
        self.command(session, |state| {
            ensure_open(session, state).map(|()| Event::CompactionRequested { by: by.clone() })
        })
        .await
    }

    /// Ends a session for good. Ending one that was ended is fine.
    ///
    /// # Errors
    /// The journal's.
    pub async fn cancel(&self, session: &SessionId, by: &str, reason: &str) -> Result<(), Error> {
        let (by, reason) = (by.to_owned(), reason.to_owned());
        let cancelled = self
            .command(session, |state| {
                let event = Event::Cancelled { by: by.clone(), reason: reason.clone() };
                ensure_open(session, state).map(|()| event)
            })
            .await;
        match cancelled {
            Err(Error::Ended(_)) => Ok(()),
            other => other,
        }
    }

    /// Lets a turn that stopped before its answer go on.
    ///
    /// # Errors
    /// An ended session, a subagent, another model while subagents ask the one before, or the
    /// journal's.
    pub async fn resume(
        &self,
        session: &SessionId,
        by: &str,
        change: ResumeChange,
    ) -> Result<(), Error> {
        let ResumeChange { budget, turn, model, network } = change;
        let (by, model) = (by.to_owned(), model.map(Box::new));
        self.command(session, |state| {
            if model.is_some() && state.subagents(session).next().is_some() {
                return Err(Error::SubagentsRun(session.clone()));
            }
            let (by, model, network) = (by.clone(), model.clone(), network.clone());
            let event = Event::Resumed { by, budget, turn, model, network };
            match state.spec().and_then(|spec| spec.parent()) {
                Some(parent) => Err(Error::Subagent {
                    session: session.clone(),
                    parent: parent.session.clone(),
                }),
                None => ensure_open(session, state).map(|()| event),
            }
        })
        .await?;
        // What is taken back is so at once, also from what runs in the background.
        let none = network.is_some_and(|words| words == [NO_NETWORK]);
        if let (true, Some(egress)) = (none, &self.parts.egress)
            && let Some(spec) = self.state(session).await?.spec()
            && let Some(first) = spec.sandboxes.first()
        {
            egress.close(&sandbox_id(session, &first.name)).await;
        }
        Ok(())
    }

    /// The state of a session.
    ///
    /// # Errors
    /// No such session, or the journal's.
    pub async fn state(&self, session: &SessionId) -> Result<State, Error> {
        let (state, _) = journal::fold(self, session).await?;
        if state.spec().is_none() {
            return Err(Error::NotFound(session.clone()));
        }
        Ok(state)
    }

    pub(crate) async fn command(
        &self,
        session: &SessionId,
        event: impl Fn(&State) -> Result<Event, Error>,
    ) -> Result<(), Error> {
        self.commands(session, |state| Ok(vec![event(state)?])).await
    }

    /// Appends what is to be said of a state, all of it or nothing.
    async fn commands(
        &self,
        session: &SessionId,
        events: impl Fn(&State) -> Result<Vec<Event>, Error>,
    ) -> Result<(), Error> {
        for _ in 0..limits::CONFLICTS_MAX {
            let state = self.state(session).await?;
            let events = events(&state)?;
            if events.is_empty() {
                return Ok(());
            }
            let at_ms = self.parts.clock.now_ms();
            let after = state.seq();
            let state = events.iter().fold(state, |state, event| {
                let record = Record { seq: state.seq().next(), at_ms, event: event.clone() };
                state.apply(&record)
            });
            match journal::append(self, session, after, at_ms, events, &state).await {
                Err(Error::Journal { source: StoreError::Conflict { .. }, .. }) => {}
                other => return other,
            }
        }
        Err(Error::Contended(session.clone()))
    }
}

/// An error unless something can still happen in a session.
pub(crate) fn ensure_open(session: &SessionId, state: &State) -> Result<(), Error> {
    if state.is_cancelled() { Err(Error::Ended(session.clone())) } else { Ok(()) }
}

fn said(message: Message) -> Result<Event, Error> {
    let max = outrigger_agent::limits::MESSAGE_BYTES_MAX;
    if message.text.len() > max {
        return Err(Error::MessageTooLarge { bytes: message.text.len(), max });
    }
    Ok(Event::Said(Arc::new(message)))
}
