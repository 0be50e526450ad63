//! Sessions of this machine, which this process drives.

mod control;
mod resume;
mod sessions;
mod talk;
mod work;

use async_trait::async_trait;
use outrigger_agent::Message;
use outrigger_engine::ensure_shown;

use super::source::{ListedSession, Listing, OpenedTalk, SessionSource};
use crate::command::detach::Driver;
use crate::command::task::{self, Task};
use crate::compose;
use crate::config::{Config, ModelChoice};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Apply;
use crate::network::Words;
use crate::project_file::ProjectFile;
use crate::show::row::Row;
use crate::show::{self, Screen, Tone, inert};
use crate::trust::{self, JudgedFile};
use crate::{picture, session, workspace};

pub(crate) use resume::{cancelled, recapitulation, went_back};
use sessions::NextSession;
pub(super) use sessions::OwnSessions;
use talk::OwnTalk;

#[async_trait(?Send)]
impl SessionSource for OwnSessions {
    fn name(&self) -> String {
        match &self.next.borrow().model {
            ModelChoice::Provider(model) => inert(&model.name),
            ModelChoice::Script(path) => {
                format!("the script {}", inert(&path.display().to_string()))
            }
            ModelChoice::Bundled(_) => "the bundled script".to_owned(),
            ModelChoice::Unset => "no model".to_owned(),
        }
    }

    fn choose(&self, name: &str) -> Outcome {
        match &mut self.next.borrow_mut().model {
            ModelChoice::Provider(model) => {
                name.clone_into(&mut model.name);
                Ok(())
            }
            ModelChoice::Script(_) | ModelChoice::Bundled(_) | ModelChoice::Unset => {
                Err(Failure::new(Kind::Usage, "a script plays itself alone"))
            }
        }
    }

    fn widen(&self, words: &Words) {
        let mut next = self.next.borrow_mut();
        next.network = next.network.with(words);
    }

    fn network(&self) -> String {
        self.next.borrow().network.to_string()
    }

    async fn message(&self, text: &str) -> Outcome<(Message, Vec<Row>)> {
        let files = picture::mentioned(text, &self.dir)?;
        let pictures = picture::keep(&self.paths, files).await?;
        let rows = pictures.iter().map(|it| Row::note(Tone::Detail, &show::picture(it)));
        let rows = rows.collect();
        Ok((Message { pictures, ..session::said(text.to_owned()) }, rows))
    }

    async fn begin(&self, message: Message) -> Outcome<OpenedTalk> {
        let NextSession { model, network } = self.next.borrow().clone();
        if let ModelChoice::Provider(model) = &model {
            ensure_shown(&model.name, std::iter::empty(), &message.pictures)?;
        }
        let mut config = Config::clone(&self.config);
        if let Some(first) = config.sandboxes.first_mut() {
            first.network = network;
        }
        let mut screen = Screen::keeping();
        // Whoever sits there was asked before the first prompt.
        let tree = workspace::tree(&self.dir)?;
        let files = ProjectFile::all(&tree);
        let judged = trust::settle(&self.paths, &tree.top, files, &screen).await?;
        let mut messages: Vec<_> = judged.into_iter().filter_map(JudgedFile::message).collect();
        messages.push(message);
        let task = Task {
            who: session::WHO.to_owned(),
            tree,
            sent: None,
            messages,
            apply: Apply::default(),
            model,
            name: None,
            lease: None,
            driver: Driver::Here,
            agent: None,
        };
        let task = Box::pin(task::open(&self.paths, &config, None, task, &mut screen)).await?;
        let mut talk = OwnTalk::new(self.clone(), task, Default::default());
        talk.drive()?;
        Ok(OpenedTalk { talk: Box::new(talk), before: Vec::new(), rows: screen.kept() })
    }

    async fn go_on(&self, name: &str) -> Outcome<OpenedTalk> {
        let store = compose::store(&self.paths).await?;
        let row = session::find(&*store.journal, name).await?;
        resume::go_on(self, store, &row.session).await
    }

    async fn list(&self, which: Listing) -> Outcome<Vec<ListedSession>> {
        let paths = &self.paths;
        if paths.database().is_sqlite() && !paths.harness().join("journal.db").exists() {
            return Ok(Vec::new());
        }
        let store = compose::store(paths).await?;
        match which {
            Listing::Newest(count) => self.newest(&store, count).await,
            Listing::LastHere => match session::last_in(&store, &self.dir).await? {
                Some(row) => Ok(vec![self.listed(&store, row).await?]),
                None => Ok(Vec::new()),
            },
        }
    }
}
