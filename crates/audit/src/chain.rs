//! The hash chain of a session: each event carries the hash of the one before it.
//!
//! A link is SHA-256 over these fields, each preceded by its length in bytes as
//! eight bytes, big end first: the tag `LINK_TAG`, the session's name, the
//! event's place, time and format (eight bytes each, big end first), the link
//! before it and the SHA-256 of the event's text (64 hexadecimal digits each).
//! The first event's link is preceded by [`origin`]. The text enters by its
//! digest, so that a link costs the same for every size, and can be checked
//! where a large text is kept elsewhere.
//!
//! Must never change: every stored journal rests on it. Another way of linking
//! is another tag.

use outrigger_agent::{Digest, Seq, SessionId};

/// First field of a link.
const LINK_TAG: &str = "outrigger journal link 1";
/// First field of what precedes a session's first link.
const ORIGIN_TAG: &str = "outrigger journal origin 1";

/// What stands before the first link of a session.
#[must_use]
pub fn origin(session: &SessionId) -> Digest {
    let mut text = Vec::with_capacity(128);
    field(&mut text, ORIGIN_TAG.as_bytes());
    field(&mut text, session.as_str().as_bytes());
    Digest::of(&text)
}

/// What a link is made of, beside the link before it.
#[derive(Debug, Clone, Copy)]
pub struct ChainLink<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The event's place.
    pub seq: Seq,
    /// The event's time, milliseconds since 1970.
    pub at_ms: u64,
    /// The event's format.
    pub format: u32,
    /// Digest of the event's text.
    pub text: &'a Digest,
}

impl ChainLink<'_> {
    /// The link that follows `before`.
    #[must_use]
    pub fn after(&self, before: &Digest) -> Digest {
        let mut text = Vec::with_capacity(320);
        field(&mut text, LINK_TAG.as_bytes());
        field(&mut text, self.session.as_str().as_bytes());
        field(&mut text, &self.seq.0.to_be_bytes());
        field(&mut text, &self.at_ms.to_be_bytes());
        field(&mut text, &u64::from(self.format).to_be_bytes());
        field(&mut text, before.as_str().as_bytes());
        field(&mut text, self.text.as_str().as_bytes());
        Digest::of(&text)
    }
}

fn field(text: &mut Vec<u8>, bytes: &[u8]) {
    text.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    text.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn links_are_pinned() {
        let session = SessionId::new("s-1").unwrap();
        let text = Digest::of(br#"{"turn_ended":"answered"}"#);
        let before = origin(&session);
        let linked = ChainLink {
            session: &session,
            seq: Seq(1),
            at_ms: 1_700_000_000_000,
            format: 1,
            text: &text,
        };
        expect![[r#"
            295f58391cd78b684095c92f68673f6451068296fea90d22c5061f9344a52d76
            dc413833b1f7f68f76b8432eea65a90bcd1d88d8dd9afe5e322c98e1c028b987"#]]
        .assert_eq(&format!("{before}\n{}", linked.after(&before)));
    }

    #[test]
    fn every_field_counts() {
        let (one, two) = (SessionId::new("a").unwrap(), SessionId::new("b").unwrap());
        let (text, other) = (Digest::of(b"x"), Digest::of(b"y"));
        let base = ChainLink { session: &one, seq: Seq(1), at_ms: 2, format: 1, text: &text };
        let links = [
            base.after(&text),
            base.after(&other),
            ChainLink { session: &two, ..base }.after(&text),
            ChainLink { seq: Seq(2), ..base }.after(&text),
            ChainLink { at_ms: 1, ..base }.after(&text),
            ChainLink { format: 2, ..base }.after(&text),
            ChainLink { text: &other, ..base }.after(&text),
        ];
        let distinct: std::collections::BTreeSet<_> = links.iter().collect();
        assert_eq!(distinct.len(), links.len());
    }
}
