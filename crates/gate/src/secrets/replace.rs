//! Texts found and replaced in what streams by.
//!
//! Owns that one is found over the seam of two pieces as well, and that nothing is held back
//! but what may be the beginning of one: an answer that streams goes on streaming.

use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use hyper::body::Bytes;
use zeroize::Zeroizing;

use super::encodings::forms;

/// Finds some texts in all their forms.
pub(crate) struct Replacer {
    found: AhoCorasick,
    texts: Vec<Text>,
    longest: usize,
}

struct Text {
    form: Zeroizing<Vec<u8>>,
    with: Vec<u8>,
    /// Which of the texts it is a form of.
    of: usize,
}

/// One stream on its way.
#[derive(Debug, Default)]
pub(crate) struct Replacing {
    held: Zeroizing<Vec<u8>>,
    /// What was found so far.
    pub(crate) found: u64,
}

impl Replacer {
    /// From pairs of a text and what takes its place, in the same form. What does not have the
    /// same length there is as many `*` instead: lengths that were announced stay true.
    pub(crate) fn new<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut texts = Vec::new();
        for (of, (text, with)) in pairs.enumerate() {
            let with = forms(with);
            for (nth, form) in forms(text).into_iter().enumerate() {
                let with = with.get(nth).filter(|with| with.len() == form.len());
                let with = with.map_or_else(|| vec![b'*'; form.len()], |with| with.to_vec());
                texts.push(Text { form, with, of });
            }
        }
        let found = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(texts.iter().map(|text| text.form.as_slice()))
            .map_err(|error| error.to_string())?;
        let longest = texts.iter().map(|text| text.form.len()).max().unwrap_or(0);
        Ok(Self { found, texts, longest })
    }

    /// Which of the texts is found first.
    pub(crate) fn first(&self, bytes: &[u8]) -> Option<usize> {
        self.found.find(bytes).map(|found| self.texts[found.pattern()].of)
    }

    /// A text that is whole. `None`: nothing was found.
    pub(crate) fn replace(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.found.find(bytes)?;
        let mut replaced = bytes.to_vec();
        self.in_place(&mut replaced);
        Some(replaced)
    }

    fn in_place(&self, bytes: &mut [u8]) -> (u64, usize) {
        let spots: Vec<_> =
            self.found.find_iter(&*bytes).map(|found| (found.range(), found.pattern())).collect();
        for (range, pattern) in &spots {
            bytes[range.clone()].copy_from_slice(&self.texts[*pattern].with);
        }
        let end = spots.last().map_or(0, |(range, _)| range.end);
        (spots.len() as u64, end)
    }

    /// How many bytes at the end may be the beginning of a text.
    fn beginning(&self, bytes: &[u8]) -> usize {
        let most = bytes.len().min(self.longest.saturating_sub(1));
        let begins = |length: &usize| {
            let end = &bytes[bytes.len() - length..];
            self.texts.iter().any(|text| text.form.len() > *length && text.form.starts_with(end))
        };
        (1..=most).rev().find(begins).unwrap_or(0)
    }
}

impl Replacing {
    /// The next piece, as far as it can go on.
    pub(crate) fn piece(&mut self, replacer: &Replacer, piece: Bytes) -> Bytes {
        if self.held.is_empty()
            && replacer.found.find(&piece).is_none()
            && replacer.beginning(&piece) == 0
        {
            return piece;
        }
        let mut bytes = std::mem::take(&mut *self.held);
        bytes.extend_from_slice(&piece);
        let (found, end) = replacer.in_place(&mut bytes);
        self.found += found;
        let hold = replacer.beginning(&bytes[end..]);
        self.held = Zeroizing::new(bytes.split_off(bytes.len() - hold));
        bytes.into()
    }

    /// What was held back, at the end.
    pub(crate) fn rest(&mut self, replacer: &Replacer) -> Option<Bytes> {
        let mut bytes = std::mem::take(&mut *self.held);
        self.found += replacer.in_place(&mut bytes).0;
        (!bytes.is_empty()).then(|| bytes.into())
    }

    /// How many bytes are still to come beside what the stream has.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held.len() as u64
    }
}

impl fmt::Debug for Replacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replacer").field("texts", &self.texts.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const PLACEHOLDER: &str = "ghp_9876543210zyxwvutsrqZYXWVUTSRQ543210";

    fn replacer() -> Replacer {
        Replacer::new([(SECRET, PLACEHOLDER)].into_iter()).unwrap()
    }

    fn through(pieces: &[&[u8]]) -> (Vec<u8>, u64) {
        let (replacer, mut replacing) = (replacer(), Replacing::default());
        let mut out = Vec::new();
        for piece in pieces {
            out.extend(replacing.piece(&replacer, Bytes::copy_from_slice(piece)));
        }
        out.extend(replacing.rest(&replacer).unwrap_or_default());
        (out, replacing.found)
    }

    #[test]
    fn a_secret_is_found_over_any_seam_and_in_any_form() {
        use base64::Engine as _;
        let base64 = base64::engine::general_purpose::STANDARD.encode(format!("a:{SECRET}!"));
        for text in [format!("a {SECRET} b"), format!("{SECRET}{SECRET}"), base64] {
            let whole = through(&[text.as_bytes()]);
            assert!(whole.1 > 0, "{text}");
            assert_eq!(whole.0.len(), text.len());
            assert!(replacer().first(&whole.0).is_none());
            for cut in 0..text.len() {
                let (left, right) = text.as_bytes().split_at(cut);
                assert_eq!(through(&[left, right]), whole, "{cut}");
            }
            let letters: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(through(&letters), whole);
        }
    }

    #[test]
    fn nothing_is_held_back_that_begins_nothing() {
        let (replacer, mut replacing) = (replacer(), Replacing::default());
        let out = replacing.piece(&replacer, Bytes::from_static(b"data: hello\n\n"));
        assert_eq!(out, "data: hello\n\n");
        let out = replacing.piece(&replacer, Bytes::from_static(b"data: ghp_01"));
        assert_eq!(out, "data: ");
        assert_eq!(replacing.piece(&replacer, Bytes::from_static(b"x")), "ghp_01x");
        assert_eq!(replacing.rest(&replacer), None);
    }
}
