//! Who has which session open.

use outrigger_agent::SessionId;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// The people who follow sessions, counted by their streams.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    sessions: Mutex<HashMap<SessionId, Followers>>,
}

#[derive(Debug, Default)]
struct Followers {
    streams: BTreeMap<String, usize>,
    people: watch::Sender<Vec<String>>,
}

/// Somebody who is there as long as this is.
#[derive(Debug)]
pub(crate) struct PresentPerson {
    presence: Arc<Presence>,
    session: SessionId,
    person: String,
    people: watch::Receiver<Vec<String>>,
}

impl Presence {
    pub(crate) fn enter(self: &Arc<Self>, session: &SessionId, person: &str) -> PresentPerson {
        let mut sessions = self.sessions();
        let followers = sessions.entry(session.clone()).or_default();
        *followers.streams.entry(person.to_owned()).or_default() += 1;
        let mut people = followers.people.subscribe();
        followers.tell();
        // Whoever comes is told, also where they were there already.
        people.mark_changed();
        let (presence, session, person) = (Arc::clone(self), session.clone(), person.to_owned());
        PresentPerson { presence, session, person, people }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Followers>> {
        self.sessions.lock().expect("nobody panics while they hold the table")
    }

    fn leave(&self, session: &SessionId, person: &str) {
        let mut sessions = self.sessions();
        let Some(followers) = sessions.get_mut(session) else { return };
        if let Some(streams) = followers.streams.get_mut(person) {
            *streams -= 1;
        }
        followers.streams.retain(|_, streams| *streams > 0);
        followers.tell();
        if followers.streams.is_empty() {
            sessions.remove(session);
        }
    }
}

impl Followers {
    fn tell(&self) {
        let now: Vec<String> = self.streams.keys().cloned().collect();
        self.people.send_if_modified(|people| {
            let changed = *people != now;
            *people = now;
            changed
        });
    }
}

impl PresentPerson {
    /// Who is there, at first and whenever that changes.
    pub(crate) async fn next(&mut self) -> Option<Vec<String>> {
        self.people.changed().await.ok()?;
        Some(self.people.borrow_and_update().clone())
    }
}

impl Drop for PresentPerson {
    fn drop(&mut self) {
        self.presence.leave(&self.session, &self.person);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn who_comes_and_goes_is_told_to_those_who_are_there() {
        let (presence, session) = (Arc::<Presence>::default(), SessionId::new("s").unwrap());
        let mut ada = presence.enter(&session, "person:ada");
        let told = |it: &mut PresentPerson| it.next().now_or_never().flatten();
        assert_eq!(told(&mut ada), Some(vec!["person:ada".to_owned()]));
        assert_eq!(told(&mut ada), None);
        let mut bob = presence.enter(&session, "person:bob");
        let both = Some(vec!["person:ada".to_owned(), "person:bob".to_owned()]);
        assert_eq!((told(&mut ada), told(&mut bob)), (both.clone(), both.clone()));
        // A second window of one who is there is nobody new.
        let mut again = presence.enter(&session, "person:bob");
        assert_eq!((told(&mut ada), told(&mut again)), (None, both));
        drop((bob, again));
        assert_eq!(told(&mut ada), Some(vec!["person:ada".to_owned()]));
        drop(ada);
        assert!(presence.sessions().is_empty());
    }
}
