//! What connections of a sandbox wait for: hosts that nobody granted or declined yet.
//!
//! Owns that all that wait for one host and port are one question, and when a question is over.
//! It never says yes: what a connection may do is decided by the rules, after it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::host::Target;
use crate::limits;
use crate::network::Destination;
use crate::rules::Rules;

/// The questions of a sandbox, the oldest first.
#[derive(Debug)]
pub(super) struct Questions {
    open: Mutex<Vec<HostQuestion>>,
    room: Semaphore,
}

/// A question about one host and port.
#[derive(Debug)]
struct HostQuestion {
    target: Target,
    until: Instant,
    /// Connections that wait for its answer.
    waiting: usize,
    /// When one of them was seen last.
    seen: Instant,
}

/// A connection that waits, until this is dropped.
pub(super) struct HeldConnection<'a> {
    _room: SemaphorePermit<'a>,
    questions: &'a Questions,
    destination: Destination,
    pub(super) until: Instant,
}

impl Default for Questions {
    fn default() -> Self {
        Self { open: Mutex::default(), room: Semaphore::new(limits::HELD_CONNECTIONS_MAX) }
    }
}

impl HostQuestion {
    fn stands(&self, now: Instant) -> bool {
        let again = self.seen + Duration::from_millis(limits::HELD_AGAIN_MS);
        now < self.until && (self.waiting > 0 || now < again)
    }
}

impl Questions {
    fn lock(&self) -> MutexGuard<'_, Vec<HostQuestion>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is asked now, under these rules.
    pub(super) fn open(&self, rules: &Rules) -> Vec<Destination> {
        let now = Instant::now();
        let open = self.lock();
        let open = open.iter().filter(|it| it.stands(now) && rules.asks(&it.target));
        open.map(|question| question.target.destination()).collect()
    }

    /// Forgets what these rules answer: where they are taken back it is asked anew.
    pub(super) fn answered(&self, rules: &Rules) {
        self.lock().retain(|question| rules.asks(&question.target));
    }

    /// One more waits. `None`: so many do, or so many hosts are asked about already.
    pub(super) fn hold(&self, target: &Target) -> Option<HeldConnection<'_>> {
        let (now, destination) = (Instant::now(), target.destination());
        let room = self.room.try_acquire().ok()?;
        let mut open = self.lock();
        open.retain(|question| question.stands(now));
        let known = open.iter().position(|known| known.target.destination() == destination);
        let at = match known {
            Some(at) => at,
            None if open.len() >= limits::QUESTIONS_MAX => return None,
            None => {
                let until = now + Duration::from_millis(limits::HELD_MS_MAX);
                let target = target.clone();
                open.push(HostQuestion { target, until, waiting: 0, seen: now });
                open.len() - 1
            }
        };
        open[at].waiting += 1;
        Some(HeldConnection { _room: room, questions: self, destination, until: open[at].until })
    }
}

impl Drop for HeldConnection<'_> {
    fn drop(&mut self) {
        let mut open = self.questions.lock();
        let ours = |question: &&mut HostQuestion| question.until == self.until;
        let mut all = open.iter_mut().filter(ours);
        if let Some(question) = all.find(|it| it.target.destination() == self.destination) {
            question.waiting = question.waiting.saturating_sub(1);
            question.seen = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::network::Scheme;

    #[test]
    fn a_question_is_over_after_its_time_or_without_anybody_who_waits() {
        let questions = Questions::default();
        let host = |name: &str| {
            let host = Host::parse(name).unwrap();
            questions.hold(&Target { scheme: Scheme::Https, host, port: 443 })
        };
        let after = |ms: u64| {
            let now = Instant::now() + Duration::from_millis(ms);
            questions.lock().iter().filter(|question| question.stands(now)).count()
        };
        let held = [host("a.test").unwrap(), host("a.test").unwrap()];
        assert_eq!((held[0].until, after(0)), (held[1].until, 1), "both are one question");
        assert_eq!(after(limits::HELD_MS_MAX - 1_000), 1);
        assert_eq!(after(limits::HELD_MS_MAX), 0);
        drop(held);
        assert_eq!(after(limits::HELD_AGAIN_MS - 1_000), 1, "whoever hung up may ask again");
        assert_eq!(after(limits::HELD_AGAIN_MS + 1_000), 0);
        let many = limits::QUESTIONS_MAX - 1;
        let held: Vec<_> = (0..many).map(|number| host(&format!("{number}.test"))).collect();
        assert!(held.iter().all(Option::is_some) && host("beyond.test").is_none());
    }
}
