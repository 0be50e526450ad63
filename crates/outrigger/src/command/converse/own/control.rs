//! How a session of this machine goes on, beside talking with it.

use async_trait::async_trait;
use outrigger_agent::{Seq, SessionId};
use outrigger_engine::{EgressQuestion, ResumeChange};
use outrigger_store::load_all;
use std::num::NonZeroU64;

use super::resume;
use super::sessions::OwnSessions;
use super::talk::OwnTalk;
use super::work::OwnWork;
use crate::command::converse::source::{OpenedTalk, SessionControl, SessionWork};
use crate::command::finish::WrittenChanges;
use crate::command::task;
use crate::exit::{Failure, Kind, Outcome};
use crate::network::{self, HostChoice, Words};
use crate::show::row::Row;
use crate::show::{Tone, inert};
use crate::{models, session};

#[async_trait(?Send)]
impl SessionControl for OwnWork {
    async fn compact(&self) -> Outcome {
        Ok(self.engine.compact(&self.session, session::WHO).await?)
    }

    async fn fork(&self) -> Outcome<SessionId> {
        let into = session::new_id();
        Box::pin(self.engine.fork(&self.session, None, &into, session::WHO)).await?;
        WrittenChanges::copy(&self.sessions.paths, &self.session, &into)?;
        Ok(into)
    }

    async fn rewind(&self, to: Option<NonZeroU64>) -> Outcome<OpenedTalk> {
        let lease = self.lease.upgrade();
        let Self { store, engine, session, .. } = self;
        let _alone = self.sandboxes.lock().await;
        outrigger_engine::suspend(engine, session).await?;
        let to = to.map(|to| Seq(to.get()));
        let (moment, warnings) = engine.rewind(session, to, session::WHO).await?;
        let explained = warnings.iter().map(|warning| {
            let text = outrigger_engine::workspace::explain(warning);
            Row::note(Tone::Warning, &format!("! {text}"))
        });
        let mut rows: Vec<Row> = explained.collect();
        rows.push(resume::went_back(&moment.said));
        let mut before = Vec::new();
        load_all(&*store.journal, session, Seq::default(), |record| before.push(record)).await?;
        let shown = before.last().map(|record| record.seq).unwrap_or_default();
        let talk = Box::new(OwnTalk::of(self.clone(), lease, shown));
        Ok(OpenedTalk { talk, before, rows })
    }

    async fn ask_model(&self, _name: &str) -> Outcome<OpenedTalk> {
        let lease = self.lease.upgrade();
        let Self { sessions, store, engine, session, .. } = self;
        let OwnSessions { paths, config, .. } = sessions;
        let mut model = models::open(paths, &sessions.model()).await?;
        task::price(config, store, &mut model, session::WHO).await?;
        let change = ResumeChange { model: Some(model.spec), ..ResumeChange::default() };
        engine.resume(session, session::WHO, change).await?;
        let mut opened = resume::take_up(sessions, store.clone(), session.clone(), lease).await?;
        opened.rows.clear();
        Ok(opened)
    }

    async fn reach(&self, more: Option<&Words>) -> Outcome<String> {
        if let Some(words) = more {
            let Self { store, engine, session, .. } = self;
            let wanted = network::of_session(&engine.state(session).await?, words)?;
            network::secrets_are_there(&*store.database, &wanted).await?;
            return Ok(network::shown(&network::widen(engine, session, words).await?));
        }
        let state = self.state().await?;
        Ok(network::shown(state.spec().map_or(&[], |spec| spec.network())))
    }

    async fn hosts(&self) -> Vec<EgressQuestion> {
        match self.engine.egress() {
            Some(egress) => egress.questions().await,
            None => Vec::new(),
        }
    }

    async fn answer_host(&self, question: &EgressQuestion, choice: HostChoice) -> Outcome<String> {
        let nobody = || Failure::new(Kind::NotFound, format!("{} is over", inert(&question.words)));
        let egress = self.engine.egress().ok_or_else(nobody)?;
        network::act(&**egress, &self.sessions.paths, question, choice).await
    }
}
