//! What several tests need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_agent::{Author, Event, Message, Seq, SessionId};
use outrigger_store::{Error, Journal, SessionSummary, Settings, Sqlite};

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(crate) fn said(text: impl Into<String>) -> Event {
    let author = Author::Person("person:test".to_owned());
    Event::Said(Arc::new(Message::new(author, text.into())))
}

pub(crate) async fn open(directory: &Path) -> Sqlite {
    Sqlite::open(directory, Settings::default()).await.unwrap()
}

pub(crate) async fn append(
    journal: &dyn Journal,
    name: &str,
    after: u64,
    events: Vec<Event>,
) -> Result<Seq, Error> {
    journal.append(&session(name), Seq(after), 1_000, &events, SessionSummary::default()).await
}

/// Every file beneath a directory, with its content.
pub(crate) fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// An error with its causes, as the edge would print it.
pub(crate) fn explain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
