//! Requests by which something was said lately.
//!
//! Owns how long their names are remembered: who sends a request again, because its answer was
//! lost, says nothing twice.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::{Digest, limits};

/// The names of requests, and when each was heard, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct HeardRequests(BTreeMap<Digest, u64>);

impl HeardRequests {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, request: &Digest) -> bool {
        self.0.contains_key(request)
    }

    /// Something was said, perhaps by a request that has a name.
    pub(crate) fn note(&mut self, request: Option<&Digest>, at_ms: u64) {
        let Some(request) = request else { return };
        let oldest_ms = at_ms.saturating_sub(limits::REQUEST_KEPT_MS);
        self.0.retain(|_, heard_ms| *heard_ms >= oldest_ms);
        if self.0.len() >= limits::REQUESTS_KEPT_MAX
            && let Some(oldest) = self.0.iter().min_by_key(|(_, heard_ms)| **heard_ms)
        {
            let oldest = oldest.0.clone();
            self.0.remove(&oldest);
        }
        self.0.insert(request.clone(), at_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_remembered_for_its_time_and_the_oldest_is_forgotten_first() {
        let name = |number: usize| Digest::of(&number.to_le_bytes());
        let mut heard = HeardRequests::default();
        heard.note(None, 5);
        assert!(heard.is_empty());
        heard.note(Some(&name(0)), 5);
        heard.note(Some(&name(1)), 5 + limits::REQUEST_KEPT_MS);
        assert!(heard.has(&name(0)) && heard.has(&name(1)));
        heard.note(Some(&name(2)), 6 + limits::REQUEST_KEPT_MS);
        assert!(!heard.has(&name(0)) && heard.has(&name(1)) && heard.has(&name(2)));
        for number in 3..=limits::REQUESTS_KEPT_MAX + 1 {
            heard.note(Some(&name(number)), 7 + limits::REQUEST_KEPT_MS);
        }
        assert!(!heard.has(&name(1)) && heard.has(&name(2)));
        assert_eq!(heard.0.len(), limits::REQUESTS_KEPT_MAX);
    }
}
