//! What a server left that does not live: how long one that takes it up waits for its return.
//!
//! A server that is begun anew has the disks of its sandboxes, and another one has not.

use outrigger_store::{DueSession, Error};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

use crate::limits;

/// Since when servers were found dead.
#[derive(Debug, Default)]
pub(super) struct LeftBehind(HashMap<i64, Instant>);

impl LeftBehind {
    /// Of what is due, what is taken up now. Where the database does not answer nobody is known to
    /// be dead: the others have no answer either.
    pub(super) fn ready(
        &mut self,
        due: Result<Vec<DueSession>, Error>,
        now: Instant,
    ) -> Vec<DueSession> {
        let mut due = due.unwrap_or_default();
        self.0.retain(|server, _| due.iter().any(|due| due.left_by == Some(*server)));
        let wait = Duration::from_millis(limits::SERVE_RETURN_MS);
        due.retain(|due| {
            let since = due.left_by.map(|server| *self.0.entry(server).or_insert(now));
            since.is_none_or(|since| now.duration_since(since) >= wait)
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_agent::SessionId;

    #[test]
    fn one_that_does_not_come_back_is_waited_for_once() {
        let due = |name: &str, left_by| {
            let session = SessionId::new(name).unwrap();
            DueSession { session, left_by, wakes: 1 }
        };
        let all = || vec![due("ours", None), due("theirs", Some(7))];
        let (mut left, now) = (LeftBehind::default(), Instant::now());
        let later = now + Duration::from_millis(limits::SERVE_RETURN_MS);
        let mut names = |found: Result<Vec<DueSession>, Error>, now| -> Vec<String> {
            left.ready(found, now).iter().map(|due| due.session.to_string()).collect()
        };
        assert_eq!(names(Ok(all()), now), ["ours"]);
        assert_eq!(names(Ok(all()), later), ["ours", "theirs"]);
        // It came back, or nobody could say.
        assert!(names(Err(Error::Closed), later).is_empty());
        assert_eq!(names(Ok(all()), later), ["ours"]);
    }
}
