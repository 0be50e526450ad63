//! Secrets on their way through one request.
//!
//! Owns the order: a placeholder is swapped after the request was granted and before anything
//! is sent, what goes out has none left, and what comes back has no secret.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};
use hyper::http::request::Parts;

use super::answer::Denial;
use super::push;
use super::session::{Permission, Session};
use crate::flow::Refusal;
use crate::host::Target;
use crate::rules::Rules;
use crate::sandbox::Outcome;
use crate::secrets::{Misplaced, Replacer, Replacing};

/// Looks after the secrets of a request.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    session: Arc<Session>,
    rules: Arc<Rules>,
    target: Target,
    /// A placeholder was in the body, which ended the request.
    misplaced: Arc<AtomicBool>,
}

/// A body that is looked through.
#[derive(Debug)]
pub(super) struct Sieve {
    guard: Guard,
    way: SieveWay,
    replacing: Replacing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SieveWay {
    Outside,
    Inside,
}

impl From<Misplaced> for Denial {
    fn from(misplaced: Misplaced) -> Self {
        Self::new(Refusal::Secret, StatusCode::FORBIDDEN, misplaced.0)
    }
}

impl Guard {
    pub(super) fn new(session: &Arc<Session>, permission: &Permission, target: &Target) -> Self {
        Self {
            session: Arc::clone(session),
            rules: Arc::clone(&permission.rules),
            target: target.clone(),
            misplaced: Arc::default(),
        }
    }

    /// Puts secrets into a request. Gives what was read of its body for that.
    pub(super) async fn begin(
        &self,
        head: &mut Parts,
        body: &mut Incoming,
    ) -> Result<Vec<Bytes>, Denial> {
        let secrets = &self.rules.secrets;
        if secrets.placeholders().is_none() {
            return Ok(Vec::new());
        }
        let path = head.uri.path().to_owned();
        let swapped = secrets.swap(&self.target, head)?;
        if !swapped.ids.is_empty() {
            self.session.targets.add_secrets(swapped.ids.clone());
            // They may have been revoked before they were seen with the connection.
            let rules = self.session.sandbox.rules();
            let all = |rules: Arc<Rules>| swapped.ids.iter().all(|id| rules.secrets.has(id));
            if !rules.is_some_and(all) {
                let words = "a secret of this request was revoked.";
                return Err(Denial::new(Refusal::Secret, StatusCode::FORBIDDEN, words));
            }
        }
        if secrets.values(&self.target).is_some() {
            // What is encoded can't be looked through.
            head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        match swapped.refs {
            Some(refs) if push::is_push(&head.method, &path) => {
                push::check(head, body, &refs).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// What a request's body passes through, if there is something to look for.
    pub(super) fn outside(&self) -> Option<Sieve> {
        self.rules.secrets.placeholders()?;
        Some(self.sieve(SieveWay::Outside))
    }

    /// What an answer's body passes through, after its head did.
    pub(super) fn inside(&self, headers: &mut HeaderMap) -> Result<Option<Sieve>, Denial> {
        let Some(values) = self.rules.secrets.values(&self.target) else { return Ok(None) };
        let encoded = headers.get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
        if encoded {
            let words = format!(
                "{} answers in an encoding that can't be looked through for secrets.",
                self.target.host
            );
            return Err(Denial::new(Refusal::Malformed, StatusCode::BAD_GATEWAY, words));
        }
        let mut found = false;
        for value in headers.values_mut() {
            let Some(with) = values.replace(value.as_bytes()) else { continue };
            found = true;
            *value = HeaderValue::from_bytes(&with).unwrap_or(HeaderValue::from_static(""));
        }
        if found {
            self.count(Refusal::Echo);
        }
        Ok(Some(self.sieve(SieveWay::Inside)))
    }

    fn sieve(&self, way: SieveWay) -> Sieve {
        Sieve { guard: self.clone(), way, replacing: Replacing::default() }
    }

    /// Whether the body ended the request.
    pub(super) fn misplaced(&self) -> Option<Denial> {
        self.misplaced.load(Ordering::Relaxed).then(|| {
            let words = "the placeholder of a secret is in the body of the request.";
            Denial::new(Refusal::Secret, StatusCode::FORBIDDEN, words)
        })
    }

    fn count(&self, refusal: Refusal) {
        let (host, port) = (self.target.host.to_string(), self.target.port);
        self.session.sandbox.table.count(&host, port, Outcome::Refused(refusal), None);
    }
}

impl Sieve {
    fn replacer(&self) -> Option<&Replacer> {
        match self.way {
            SieveWay::Outside => self.guard.rules.secrets.placeholders(),
            SieveWay::Inside => self.guard.rules.secrets.values(&self.guard.target),
        }
    }

    /// The next piece, as far as it can go on. `None`: the request ends here.
    pub(super) fn piece(&mut self, piece: Bytes) -> Option<Bytes> {
        let mut replacing = std::mem::take(&mut self.replacing);
        let before = replacing.found;
        let piece = match self.replacer() {
            Some(replacer) => replacing.piece(replacer, piece),
            None => piece,
        };
        self.replacing = replacing;
        self.found(before).then_some(piece)
    }

    /// What was held back, at the end. `None`: the request ends here.
    pub(super) fn rest(&mut self) -> Option<Bytes> {
        let mut replacing = std::mem::take(&mut self.replacing);
        let before = replacing.found;
        let rest = self.replacer().and_then(|replacer| replacing.rest(replacer));
        self.replacing = replacing;
        self.found(before).then_some(rest.unwrap_or_default())
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.replacing.held_bytes()
    }

    /// Says what was found, once. Gives whether the body goes on.
    fn found(&self, before: u64) -> bool {
        let found = self.replacing.found > before;
        if found && before == 0 {
            match self.way {
                SieveWay::Inside => self.guard.count(Refusal::Echo),
                // The answer to the request is counted.
                SieveWay::Outside => self.guard.misplaced.store(true, Ordering::Relaxed),
            }
        }
        !found || self.way == SieveWay::Inside
    }
}
