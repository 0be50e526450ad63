//! Programs that wait for a person who lets them in, as a server keeps them in memory.
//!
//! Owns that a key is given out once, to the program that asked for it.

use outrigger_agent::Digest;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::limits;

/// Letters of a code: no vowels, so that none is a word, and none that looks like another.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// Programs that wait for a person, by their codes.
#[derive(Debug, Default)]
pub(crate) struct DeviceLogins(Mutex<HashMap<String, WaitingProgram>>);

/// A program that waits.
#[derive(Debug, Clone)]
pub(crate) struct WaitingProgram {
    /// Of what only the program knows.
    secret: Digest,
    /// What it says that it is.
    pub(crate) label: String,
    /// Until when it waits.
    pub(crate) until_ms: u64,
    /// Who let it in; nobody where somebody refused.
    answer: Option<Option<String>>,
}

/// What a program hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoginOutcome {
    /// It waits no more, or never did.
    Unknown,
    Waiting,
    Refused,
    /// As whom it is let in, and what it said that it is.
    Granted(String, String),
}

impl DeviceLogins {
    /// Those that still wait.
    fn current(&self, now_ms: u64) -> MutexGuard<'_, HashMap<String, WaitingProgram>> {
        let mut all = self.0.lock().expect("nobody panics while they hold the table");
        all.retain(|_, program| now_ms < program.until_ms);
        all
    }

    /// Lets a program wait. Whether there is room for it.
    pub(crate) fn begin(&self, code: &str, secret: Digest, label: String, now_ms: u64) -> bool {
        let mut all = self.current(now_ms);
        if all.len() >= limits::DEVICES_MAX {
            return false;
        }
        let until_ms = now_ms.saturating_add(limits::DEVICE_MS_MAX);
        let program = WaitingProgram { secret, label, until_ms, answer: None };
        all.insert(code.to_owned(), program);
        true
    }

    /// The one of this code that nobody answered yet.
    pub(crate) fn waiting(&self, code: &str, now_ms: u64) -> Option<WaitingProgram> {
        self.current(now_ms).get(code).filter(|program| program.answer.is_none()).cloned()
    }

    /// Answers the one of this code: as whom it is let in, if it is. Whether there was one.
    pub(crate) fn answer(&self, code: &str, person: Option<String>, now_ms: u64) -> bool {
        let mut all = self.current(now_ms);
        let waiting = all.get_mut(code).filter(|program| program.answer.is_none());
        waiting.map(|program| program.answer = Some(person)).is_some()
    }

    /// What the program hears that knows this secret. What is no waiting is heard once.
    pub(crate) fn outcome(&self, secret: &Digest, now_ms: u64) -> LoginOutcome {
        let mut all = self.current(now_ms);
        let found = all.iter().find(|(_, program)| program.secret == *secret);
        let Some((code, program)) = found else { return LoginOutcome::Unknown };
        let Some(answer) = program.answer.clone() else { return LoginOutcome::Waiting };
        let (code, label) = (code.clone(), program.label.clone());
        all.remove(&code);
        answer.map_or(LoginOutcome::Refused, |person| LoginOutcome::Granted(person, label))
    }
}

/// A code of chance.
pub(crate) fn code_of(chance: [u8; 32]) -> String {
    let letters = chance.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    plain(&letters[..limits::DEVICE_CODE_LETTERS].iter().collect::<String>())
}

/// What a code is, however it is typed.
pub(crate) fn plain(code: &str) -> String {
    let letters: Vec<u8> =
        code.bytes().map(|it| it.to_ascii_uppercase()).filter(|it| LETTERS.contains(it)).collect();
    let text = String::from_utf8(letters).unwrap_or_default();
    match text.split_at_checked(limits::DEVICE_CODE_LETTERS / 2) {
        Some((first, second)) => format!("{first}-{second}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_same_however_it_is_typed() {
        for typed in ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk "] {
            assert_eq!(plain(typed), "BCDF-GHJK");
        }
        assert_eq!(plain("<b>"), "B");
    }

    #[test]
    fn a_key_is_given_once_and_in_time() {
        let (logins, secret) = (DeviceLogins::default(), Digest::of(b"one"));
        let begin = |code: &str, secret: &Digest, now_ms| {
            logins.begin(code, secret.clone(), "a program".to_owned(), now_ms)
        };
        assert!(begin("BCDF-GHJK", &secret, 0));
        assert_eq!(logins.outcome(&Digest::of(b"two"), 1), LoginOutcome::Unknown);
        assert_eq!(logins.outcome(&secret, 1), LoginOutcome::Waiting);
        assert!(logins.answer("BCDF-GHJK", Some("person:ada".to_owned()), 2));
        assert!(!logins.answer("BCDF-GHJK", None, 3), "who answered first");
        assert!(logins.waiting("BCDF-GHJK", 3).is_none());
        let granted = LoginOutcome::Granted("person:ada".to_owned(), "a program".to_owned());
        assert_eq!(logins.outcome(&secret, 4), granted);
        assert_eq!(logins.outcome(&secret, 5), LoginOutcome::Unknown);
        assert!(begin("KJHG-FDCB", &secret, 0));
        assert!(!logins.answer("KJHG-FDCB", None, limits::DEVICE_MS_MAX), "too late");
        for number in 0..limits::DEVICES_MAX {
            assert!(begin(&number.to_string(), &secret, 0));
        }
        assert!(!begin("one more", &secret, 1));
    }
}
