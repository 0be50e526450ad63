//! The session that is talked with, while this process holds it.

use outrigger_agent::{Message, Park, Record, Seq, SessionId};
use outrigger_engine::{AnswerRequest, EmbeddedHost, Engine, Error, Host, Notice, RuleSource};
use outrigger_store::load_all;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::command::ask::asks;
use crate::command::task::OpenedTask;
use crate::compose::Store;
use crate::conversation::Input;
use crate::exit::{Failure, Outcome};
use crate::paths::Paths;
use crate::question::Question;
use crate::rules::ConfiguredRules;
use crate::session::{self, Lock};
use crate::show::{Tone, Totals};
use crate::waiting::PendingApproval;

/// What works on a session have of it.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) store: Store,
    pub(super) engine: Engine,
    pub(super) session: SessionId,
    /// Held by who looks into the sandboxes or lets them rest, each of which ends the other.
    pub(super) sandboxes: Arc<Mutex<()>>,
}

/// A session that is talked with.
pub(super) struct Talk {
    store: Store,
    engine: Engine,
    pub(super) session: SessionId,
    sandboxes: Arc<Mutex<()>>,
    lock: Option<Lock>,
    host: EmbeddedHost,
    notices: Receiver<(SessionId, Notice)>,
    paths: Paths,
    shown: Seq,
    /// Whether it was not heard yet that it waits.
    driven: bool,
}

/// What happens next in a session.
#[derive(Debug)]
pub(super) enum TalkNotice {
    Notice(Result<(SessionId, Notice), RecvError>),
    Parked(Result<Park, Arc<Error>>),
}

/// What happens next in a session, if there is one. Dropping it loses nothing.
pub(super) async fn next(talk: Option<&mut Talk>) -> TalkNotice {
    let Some(talk) = talk else { return std::future::pending().await };
    tokio::select! {
        biased;
        notice = talk.notices.recv() => TalkNotice::Notice(notice),
        park = talk.host.parked(&talk.session), if talk.driven => TalkNotice::Parked(park),
    }
}

impl Talk {
    pub(super) fn new(task: OpenedTask, shown: Seq, paths: Paths) -> Self {
        let OpenedTask { store, engine, session, lock } = task;
        if let Some(egress) = engine.egress() {
            egress.attend();
        }
        let (host, notices) = (EmbeddedHost::new(engine.clone()), engine.feed().listen());
        let sandboxes = Arc::default();
        Self { store, engine, session, sandboxes, lock, host, notices, paths, shown, driven: false }
    }

    /// What it is held by, without what it was told by.
    pub(super) fn into_lock(self) -> Option<Lock> {
        self.lock
    }

    pub(super) fn parts(&self) -> Parts {
        let (store, engine) = (self.store.clone(), self.engine.clone());
        Parts { store, engine, session: self.session.clone(), sandboxes: self.sandboxes.clone() }
    }

    pub(super) fn is_driven(&self) -> bool {
        self.driven
    }

    /// Goes on until it waits.
    pub(super) fn drive(&mut self) -> Outcome {
        self.host.poke(&self.session)?;
        self.driven = true;
        Ok(())
    }

    pub(super) async fn say(&mut self, message: Message) -> Outcome {
        self.engine.say(&self.session, message).await?;
        self.drive()
    }

    pub(super) async fn interrupt(&mut self) -> Outcome {
        self.engine.interrupt(&self.session, session::WHO).await?;
        self.drive()
    }

    pub(super) async fn answer(&mut self, session: &SessionId, given: AnswerRequest) -> Outcome {
        match self.engine.answer(session, given).await {
            // It was answered elsewhere: it goes on all the same.
            Ok(()) | Err(Error::Unanswerable { .. }) => self.drive(),
            Err(error) => Err(error.into()),
        }
    }

    /// What waits for an answer, with what it would change.
    pub(super) async fn questions(&self, paths: &Paths) -> Outcome<Vec<Question>> {
        let rules = ConfiguredRules::read(paths)?.current().ok();
        let mut questions = Vec::new();
        for waiting in PendingApproval::below(&*self.store.journal, &self.session).await? {
            questions.extend(Question::of(&self.engine, rules.as_ref(), &waiting).await?);
        }
        Ok(questions)
    }

    /// What it is to the conversation.
    pub(super) async fn take(&mut self, notice: TalkNotice) -> Outcome<Vec<Input>> {
        match notice {
            TalkNotice::Notice(notice) => self.noticed(notice).await,
            TalkNotice::Parked(park) => {
                self.driven = false;
                let park = park.map_err(|error| Failure::from(&*error))?;
                self.parked(&park).await
            }
        }
    }

    async fn noticed(
        &mut self,
        notice: Result<(SessionId, Notice), RecvError>,
    ) -> Outcome<Vec<Input>> {
        Ok(match notice {
            Ok((from, Notice::Appended(record))) if from != self.session => {
                let asked = asks(&record);
                let mut inputs = vec![Input::EventBelow(from, record)];
                if asked {
                    inputs.push(Input::Asked(self.questions(&self.paths).await?));
                }
                inputs
            }
            Ok((_, Notice::Appended(record))) if record.seq == self.shown.next() => {
                self.shown = record.seq;
                let asked = asks(&record);
                let mut inputs = vec![Input::Event(record)];
                if asked {
                    inputs.push(Input::Asked(self.questions(&self.paths).await?));
                }
                inputs
            }
            Ok((_, Notice::Appended(record))) if record.seq > self.shown => self.missed().await?,
            Ok((_, Notice::Appended(_))) => Vec::new(),
            Ok((from, Notice::Live(effect, live))) => {
                let effect = (from == self.session).then_some(effect);
                vec![Input::Live(effect, live)]
            }
            Ok((_, Notice::Warning(warning))) => {
                let text = outrigger_engine::workspace::explain(&warning);
                vec![Input::Note(Tone::Warning, format!("! {text}"))]
            }
            Err(RecvError::Lagged(_)) => self.missed().await?,
            Err(RecvError::Closed) => {
                return Err(Failure::from(Error::Driver(self.session.clone())));
            }
        })
    }

    /// What the journal has beyond what was shown.
    async fn missed(&mut self) -> Outcome<Vec<Input>> {
        let mut records: Vec<Record> = Vec::new();
        load_all(&*self.store.journal, &self.session, self.shown, |record| records.push(record))
            .await?;
        self.shown = records.last().map_or(self.shown, |record| record.seq);
        Ok(records.into_iter().map(|record| Input::Event(record.into())).collect())
    }

    async fn parked(&mut self, park: &Park) -> Outcome<Vec<Input>> {
        let mut inputs = self.missed().await?;
        if matches!(park, Park::Answers(_)) {
            let questions = self.questions(&self.paths).await?;
            if questions.is_empty() {
                // An answer came just when it stopped.
                self.drive()?;
                return Ok(inputs);
            }
            inputs.push(Input::Asked(questions));
            inputs.push(Input::Waiting);
        } else {
            let state = self.engine.state(&self.session).await?;
            let totals = format!("  {} in all", Totals::of(&state).words());
            inputs.push(Input::Note(Tone::Detail, totals));
            inputs.push(Input::Asked(Vec::new()));
            inputs.push(Input::Idle);
        }
        Ok(inputs)
    }
}
