//! A conversation about a directory of this machine in a session of a server.

use async_trait::async_trait;
use outrigger_agent::{Message, SessionId, State};
use outrigger_api::{CreateSession, SessionGroup, SessionInfo, SessionList};
use outrigger_client::ServerClient;
use outrigger_store::load_all;
use serde_json::json;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use super::connection::{Remote, named, not_there};
use super::run::{last_in, open};
use super::session_work::RemoteWork;
use super::talk::RemoteTalk;
use crate::command::converse::source::{ListedSession, Listing, OpenedTalk, SessionSource};
use crate::command::converse::{self, Converse, cancelled, recapitulation};
use crate::config::Config;
use crate::exit::Outcome;
use crate::network::Words;
use crate::paths::Paths;
use crate::show::row::Row;
use crate::show::{self, Screen, Tone, inert};
use crate::{picture, session};

/// Sessions of a server. Cheap to copy.
#[derive(Clone)]
struct RemoteSessions {
    remote: Rc<Remote>,
    config: Rc<Config>,
    /// The directory of this machine that sessions begin with.
    dir: PathBuf,
    next: Rc<RefCell<NextSession>>,
}

/// What the next session begins with, where the server's own is not meant.
#[derive(Debug, Default)]
struct NextSession {
    model: Option<String>,
    network: Words,
}

/// Converses until the person leaves.
pub(crate) async fn converse(paths: &Paths, client: ServerClient, asked: &Converse) -> Outcome<u8> {
    if asked.model.script.is_some() {
        return Err(not_there("--script"));
    }
    let config = Config::of_files(paths.configs())?;
    let (remote, dir) = (Rc::new(Remote::new(paths, client)), converse::here()?);
    let network = asked.net.words()?.unwrap_or_default();
    let next = NextSession { model: asked.model.model.clone(), network };
    let (shared, next) = (Rc::new(config), Rc::new(RefCell::new(next)));
    let sessions = RemoteSessions { remote, config: Rc::clone(&shared), dir: dir.clone(), next };
    converse::elsewhere(paths, &shared, dir, Rc::new(sessions), asked).await
}

impl RemoteSessions {
    /// A session with what happened in it, as it is talked with from here on.
    async fn take_up(&self, session: SessionId) -> Outcome<OpenedTalk> {
        let mut before = Vec::new();
        let journal = &self.remote.journal;
        load_all(journal, &session, outrigger_agent::Seq::default(), |it| before.push(it)).await?;
        let state = before.iter().fold(State::default(), State::apply);
        let rows = recapitulation(&session, &state);
        let work = RemoteWork::new(Rc::new(self.clone()), Rc::clone(&self.remote), session);
        let talk = Box::new(RemoteTalk::new(Rc::new(work), state));
        Ok(OpenedTalk { talk, before, rows })
    }
}

#[async_trait(?Send)]
impl SessionSource for RemoteSessions {
    fn name(&self) -> String {
        let server = self.remote.client.server();
        let (_, host) = server.split_once("://").unwrap_or_default();
        match &self.next.borrow().model {
            Some(model) => format!("{} at {}", inert(model), inert(host)),
            None => inert(host),
        }
    }

    fn choose(&self, model: &str) -> Outcome {
        self.next.borrow_mut().model = Some(model.to_owned());
        Ok(())
    }

    fn widen(&self, words: &Words) {
        let mut next = self.next.borrow_mut();
        next.network = next.network.with(words);
    }

    fn network(&self) -> String {
        match self.next.borrow().network.all() {
            [] => "what the server allows".to_owned(),
            words => crate::network::shown(words),
        }
    }

    async fn message(&self, text: &str) -> Outcome<(Message, Vec<Row>)> {
        let files = picture::mentioned(text, &self.dir)?;
        let pictures = self.remote.pictures.keep(&files)?;
        let rows = pictures.iter().map(|it| Row::note(Tone::Detail, &show::picture(it))).collect();
        Ok((Message { pictures, ..session::said(text.to_owned()) }, rows))
    }

    async fn begin(&self, message: Message) -> Outcome<OpenedTalk> {
        let mut screen = Screen::keeping();
        let asked = {
            let next = self.next.borrow();
            let network = next.network.all().to_vec();
            CreateSession {
                pictures: self.remote.pictures.take(&message),
                text: message.text,
                model: next.model.clone(),
                network,
                ..Default::default()
            }
        };
        let opening = open(&self.remote, &self.config, &self.dir, asked, &mut screen);
        let session = Box::pin(opening).await?;
        let work =
            Rc::new(RemoteWork::new(Rc::new(self.clone()), Rc::clone(&self.remote), session));
        let talk = Box::new(RemoteTalk::driven(work, State::default()));
        Ok(OpenedTalk { talk, before: Vec::new(), rows: screen.kept() })
    }

    async fn go_on(&self, name: &str) -> Outcome<OpenedTalk> {
        let session = self.remote.find(name).await?;
        let session = session::root(&self.remote.journal, &session).await?;
        let info = self.remote.info(&session).await?;
        if info.cancelled {
            return Err(cancelled(&session));
        }
        let state = self.remote.state(&session).await?;
        let cut_off = state.in_turn() && info.approvals == 0;
        if cut_off && info.group != SessionGroup::Running && info.rights.speak {
            let path = format!("/v1/sessions/{session}/resume");
            self.remote.client.command(&path, &json!({})).await?;
        }
        self.take_up(session).await
    }

    async fn list(&self, which: Listing) -> Outcome<Vec<ListedSession>> {
        let infos = match which {
            Listing::Newest(count) => {
                let path = format!("/v1/sessions?limit={count}");
                self.remote.client.get::<SessionList>(&path).await?.data
            }
            Listing::LastHere => last_in(&self.remote, &self.dir).await?.into_iter().collect(),
        };
        infos.into_iter().map(listed).collect()
    }
}

fn listed(info: SessionInfo) -> Outcome<ListedSession> {
    let SessionInfo { id, last_at_ms, status: standing, title, .. } = info;
    Ok(ListedSession { session: named(&id)?, last_at_ms, standing, title, is_held: false })
}
