//! A body that is looked through for secrets while it passes.
//!
//! Owns what comes of a find: on the way out the request ends, on the way in the host sent a
//! secret back, and the program gets its placeholder.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::body::{Bytes, Frame};
use hyper::header::{HeaderMap, HeaderValue};

use crate::flow::Refusal;
use crate::host::Target;
use crate::rules::Rules;
use crate::sandbox::{Outcome, Sandbox};
use crate::secrets::{Replacer, Replacing};

/// A body that is looked through.
#[derive(Debug)]
pub(super) struct Sieve {
    pub(super) way: SieveWay,
    pub(super) passage: Passage,
    pub(super) replacing: Replacing,
}

/// The request that a body is of.
#[derive(Debug, Clone)]
pub(super) struct Passage {
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) rules: Arc<Rules>,
    pub(super) target: Target,
    /// A placeholder was in the body, which ended the request.
    pub(super) misplaced: Arc<AtomicBool>,
    /// The answer has secrets that are for the sandbox, as placeholders.
    pub(super) mints: bool,
}

/// Where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SieveWay {
    Outside,
    Inside,
}

/// Replaces what is found in headers. Gives whether there was anything.
pub(super) fn replace(replacer: &Replacer, headers: &mut HeaderMap) -> bool {
    let mut found = false;
    for value in headers.values_mut() {
        let Some(with) = replacer.replace(value.as_bytes()) else { continue };
        found = true;
        *value = HeaderValue::from_bytes(&with).unwrap_or(HeaderValue::from_static(""));
    }
    found
}

impl Passage {
    /// Writes down what was found.
    pub(super) fn count(&self, refusal: Refusal) {
        let (host, port) = (self.target.host.to_string(), self.target.port);
        self.sandbox.table.count(&host, port, Outcome::Refused(refusal), None);
    }
}

impl Sieve {
    fn replacer(&self) -> Option<&Replacer> {
        match self.way {
            SieveWay::Outside => self.passage.rules.secrets.placeholders(),
            SieveWay::Inside => self.passage.rules.secrets.values(&self.passage.target),
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

    /// What comes behind a body, looked through as headers are.
    pub(super) fn trailers(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match (frame.into_trailers(), self.replacer()) {
            (Ok(mut trailers), Some(replacer)) => {
                if replace(replacer, &mut trailers) && self.way == SieveWay::Inside {
                    self.passage.count(Refusal::Echo);
                }
                Frame::trailers(trailers)
            }
            (Ok(trailers), None) => Frame::trailers(trailers),
            (Err(frame), _) => frame,
        }
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.replacing.held_bytes()
    }

    /// Says what was found, once. Gives whether the body goes on.
    fn found(&self, before: u64) -> bool {
        let found = self.replacing.found > before;
        if found && before == 0 {
            match self.way {
                SieveWay::Inside if self.passage.mints => {}
                SieveWay::Inside => self.passage.count(Refusal::Echo),
                // The answer to the request is counted.
                SieveWay::Outside => self.passage.misplaced.store(true, Ordering::Relaxed),
            }
        }
        !found || self.way == SieveWay::Inside
    }
}
