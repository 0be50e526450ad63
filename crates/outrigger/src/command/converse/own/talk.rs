//! A session of this machine that is talked with, while this process holds it.

use async_trait::async_trait;
use outrigger_agent::{Message, Park, Record, Seq, SessionId};
use outrigger_engine::{EmbeddedHost, Error, Host, Notice};
use outrigger_store::{Lease, load_all};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::sessions::OwnSessions;
use super::work::OwnWork;
use crate::command::ask::{AnswerReceipt, OwnQuestions, QuestionSource, asks};
use crate::command::converse::source::{SessionWork, Talk};
use crate::command::converse::work::over;
use crate::command::task::OpenedTask;
use crate::conversation::Input;
use crate::exit::{Failure, Kind, Outcome};
use crate::question::{Decision, Question};
use crate::show::Tone;
use crate::{limits, session};

/// A session of this machine that is talked with.
pub(super) struct OwnTalk {
    work: Rc<OwnWork>,
    host: EmbeddedHost,
    notices: Receiver<(SessionId, Notice)>,
    shown: Seq,
    /// Whether it was not heard yet that it waits.
    driven: bool,
    came: Option<OwnNotice>,
    /// When it is looked next whether another process wrote something.
    look_at: Instant,
    _lease: Option<Rc<Lease>>,
}

/// What happens next in a session.
#[derive(Debug)]
enum OwnNotice {
    Notice(Result<(SessionId, Notice), RecvError>),
    Parked(Result<Park, Arc<Error>>),
    /// It is time to look whether another process wrote something.
    Look,
}

impl OwnTalk {
    /// A session, of which so much was shown.
    pub(super) fn new(sessions: OwnSessions, task: OpenedTask, shown: Seq) -> Self {
        let OpenedTask { store, engine, session, lease } = task;
        let lease = lease.map(Rc::new);
        Self::of(OwnWork::new(sessions, store, engine, session), lease, shown)
    }

    /// One that goes on behind another, which holds the lease.
    pub(super) fn of(mut work: OwnWork, lease: Option<Rc<Lease>>, shown: Seq) -> Self {
        if let Some(egress) = work.engine.egress() {
            egress.attend();
        }
        work.lease = lease.as_ref().map(Rc::downgrade).unwrap_or_default();
        let (host, notices) = (EmbeddedHost::new(work.engine.clone()), work.engine.feed().listen());
        let work = Rc::new(work);
        let look_at = Instant::now();
        Self { work, host, notices, shown, driven: false, came: None, look_at, _lease: lease }
    }

    /// Goes on until it waits.
    pub(super) fn drive(&mut self) -> Outcome {
        self.host.poke(&self.work.session)?;
        self.driven = true;
        Ok(())
    }

    fn source(&self) -> OwnQuestions<'_> {
        let OwnWork { sessions, engine, store, session, .. } = &*self.work;
        OwnQuestions { paths: sessions.paths(), engine, journal: &*store.journal, session }
    }

    /// What waits for an answer, with what it would change.
    async fn questions(&self) -> Outcome<Vec<Question>> {
        self.source().all().await
    }

    async fn noticed(
        &mut self,
        notice: Result<(SessionId, Notice), RecvError>,
    ) -> Outcome<Vec<Input>> {
        let session = &self.work.session;
        Ok(match notice {
            Ok((from, Notice::Appended(record))) if from != *session => {
                let asked = asks(&record);
                let mut inputs = vec![Input::EventBelow(from, record)];
                if asked {
                    inputs.push(Input::Asked(self.questions().await?));
                }
                inputs
            }
            Ok((_, Notice::Appended(record))) if record.seq == self.shown.next() => {
                self.shown = record.seq;
                let asked = asks(&record);
                let mut inputs = vec![Input::Event(record)];
                if asked {
                    inputs.push(Input::Asked(self.questions().await?));
                }
                inputs
            }
            Ok((_, Notice::Appended(record))) if record.seq > self.shown => self.missed().await?,
            Ok((_, Notice::Appended(_))) => Vec::new(),
            Ok((from, Notice::Live(effect, live))) => {
                let effect = (from == *session).then_some(effect);
                vec![Input::Live(effect, live)]
            }
            Ok((_, Notice::Warning(warning))) => {
                let text = outrigger_engine::workspace::explain(&warning);
                vec![Input::Note(Tone::Warning, format!("! {text}"))]
            }
            Ok((_, Notice::Elsewhere(_))) | Err(RecvError::Lagged(_)) => self.missed().await?,
            Err(RecvError::Closed) => return Err(Error::Driver(session.clone()).into()),
        })
    }

    /// What another process wrote while nothing ran here: it may be something said.
    async fn looked(&mut self) -> Outcome<Vec<Input>> {
        self.look_at = Instant::now() + Duration::from_millis(limits::TALK_LOOK_MS);
        // What is done here with its sandboxes writes as well, and is waited for.
        let sandboxes = Arc::clone(&self.work.sandboxes);
        let Ok(_alone) = sandboxes.try_lock() else { return Ok(Vec::new()) };
        let mut inputs = self.missed().await?;
        if !inputs.is_empty() && self.work.state().await?.in_turn() {
            inputs.insert(0, Input::Working);
            self.drive()?;
        }
        Ok(inputs)
    }

    /// What the journal has beyond what was shown.
    async fn missed(&mut self) -> Outcome<Vec<Input>> {
        let OwnWork { store, session, .. } = &*self.work;
        let mut records: Vec<Record> = Vec::new();
        load_all(&*store.journal, session, self.shown, |record| records.push(record)).await?;
        self.shown = records.last().map_or(self.shown, |record| record.seq);
        Ok(records.into_iter().map(|record| Input::Event(record.into())).collect())
    }

    async fn parked(&mut self, park: &Park) -> Outcome<Vec<Input>> {
        let mut inputs = self.missed().await?;
        if matches!(park, Park::Answers(_)) {
            let questions = self.questions().await?;
            if questions.is_empty() {
                // An answer came just when it stopped.
                self.drive()?;
                return Ok(inputs);
            }
            inputs.push(Input::Asked(questions));
            inputs.push(Input::Waiting);
        } else {
            let state = self.work.state().await?;
            inputs.extend(over(&state));
        }
        Ok(inputs)
    }
}

#[async_trait(?Send)]
impl Talk for OwnTalk {
    fn work(&self) -> Rc<dyn SessionWork> {
        Rc::clone(&self.work) as Rc<dyn SessionWork>
    }

    fn is_driven(&self) -> bool {
        self.driven
    }

    async fn wait(&mut self) {
        if self.came.is_some() {
            return;
        }
        let came = tokio::select! {
            biased;
            notice = self.notices.recv() => OwnNotice::Notice(notice),
            park = self.host.parked(&self.work.session), if self.driven => OwnNotice::Parked(park),
            () = tokio::time::sleep_until(self.look_at), if !self.driven => OwnNotice::Look,
        };
        self.came = Some(came);
    }

    async fn take(&mut self) -> Outcome<Vec<Input>> {
        match self.came.take() {
            None => Ok(Vec::new()),
            Some(OwnNotice::Notice(notice)) => self.noticed(notice).await,
            Some(OwnNotice::Look) => self.looked().await,
            Some(OwnNotice::Parked(park)) => {
                self.driven = false;
                let park = park.map_err(|error| Failure::from(&*error))?;
                self.parked(&park).await
            }
        }
    }

    async fn say(&mut self, message: Message) -> Outcome {
        self.work.engine.say(&self.work.session, message).await?;
        self.drive()
    }

    async fn interrupt(&mut self) -> Outcome {
        self.work.engine.interrupt(&self.work.session, session::WHO).await?;
        self.drive()
    }

    async fn answer(
        &mut self,
        question: &Question,
        decision: &Decision,
        standing: Option<Seq>,
    ) -> Outcome {
        let receipt = self.source().answer(question, decision, standing).await?;
        match receipt {
            // It was answered elsewhere: it goes on all the same.
            AnswerReceipt::Taken | AnswerReceipt::Over(_) => self.drive(),
            AnswerReceipt::NotEntitled(why) => Err(Failure::new(Kind::Denied, why)),
        }
    }

    async fn look(&mut self) -> Outcome<Vec<Input>> {
        Ok(vec![Input::Asked(self.questions().await?)])
    }
}
