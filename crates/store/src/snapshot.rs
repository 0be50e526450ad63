//! The seal of a snapshot: what makes it one of this very journal.
//!
//! It covers the link of the event that the state follows, and a link stands
//! for all events before it: a state can't be put beside another history.

use outrigger_agent::{Digest, SessionId};

/// Seals a state that follows the event with that link.
pub(crate) fn seal(session: &SessionId, link: &str, version: u32, state: &[u8]) -> Digest {
    let state = Digest::of(state);
    Digest::of(format!("outrigger snapshot 1\n{session}\n{link}\n{version}\n{state}").as_bytes())
}
