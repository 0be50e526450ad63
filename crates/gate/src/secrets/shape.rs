//! Placeholders: what a sandbox has instead of a secret.
//!
//! Owns their shape. A program that looks at a token (its length, `ghp_` before it) takes
//! one for the other, and so do the encodings that a token is sent in: what is not a letter or
//! a digit stays where it is, so that both have the same length in each of them.

use aws_lc_rs::hmac;

use crate::limits::{PLACEHOLDER_BITS_MIN, PLACEHOLDER_PREFIX_BYTES_MAX};

const HEX: &[u8] = b"0123456789abcdef";
const UPPER: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const ALL: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Of one that has not the shape of its secret, because nobody could tell that from chance.
const OWN_PREFIX: &str = "outrigger_";
const OWN_LENGTH: usize = 32;

/// The placeholder of a secret in a sandbox: each time the same, in no other sandbox, and of
/// nothing to anybody without the key.
pub(crate) fn placeholder(key: &hmac::Key, sandbox: &str, id: &str, value: &str) -> String {
    let mut random = Random { key, about: format!("{sandbox}\0{id}"), bytes: Vec::new(), next: 0 };
    let alphabet = alphabet(value);
    let prefix = prefix(value, alphabet);
    if bits(&value[prefix.len()..], alphabet) < PLACEHOLDER_BITS_MIN {
        let random = (0..OWN_LENGTH).map(|_| random.pick(ALL));
        return OWN_PREFIX.chars().chain(random).collect();
    }
    let rest = value[prefix.len()..].chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => random.pick(alphabet),
        other => other,
    });
    prefix.chars().chain(rest).collect()
}

/// What the letters and digits of a value come from.
fn alphabet(value: &str) -> &'static [u8] {
    let of = |alphabet: &[u8]| {
        let mut letters = value.bytes().filter(u8::is_ascii_alphanumeric);
        letters.all(|byte| alphabet.contains(&byte))
    };
    [HEX, UPPER].into_iter().find(|alphabet| of(alphabet)).unwrap_or(ALL)
}

fn bits(text: &str, alphabet: &[u8]) -> u32 {
    let letters = text.bytes().filter(u8::is_ascii_alphanumeric).count();
    (alphabet.len().ilog2()) * u32::try_from(letters).unwrap_or(u32::MAX / 8)
}

/// What says whose token it is (`ghp_`, `sk-ant-api03-`), if enough is left behind it.
fn prefix<'a>(value: &'a str, alphabet: &[u8]) -> &'a str {
    let mut best = "";
    for (at, mark) in value.bytes().enumerate().take(PLACEHOLDER_PREFIX_BYTES_MAX) {
        let (before, after) = value.split_at(at + 1);
        if matches!(mark, b'_' | b'-') && bits(after, alphabet) >= PLACEHOLDER_BITS_MIN {
            best = before;
        }
    }
    best
}

/// Bytes that only the key tells from chance.
struct Random<'a> {
    key: &'a hmac::Key,
    about: String,
    bytes: Vec<u8>,
    next: u32,
}

impl Random<'_> {
    fn byte(&mut self) -> u8 {
        if self.bytes.is_empty() {
            let block = format!("{}\0{}", self.about, self.next);
            self.next += 1;
            self.bytes = hmac::sign(self.key, block.as_bytes()).as_ref().to_vec();
        }
        self.bytes.pop().unwrap_or_default()
    }

    fn pick(&mut self, alphabet: &[u8]) -> char {
        let length = alphabet.len();
        let fair = 256 - 256 % length;
        loop {
            let byte = usize::from(self.byte());
            if byte < fair {
                return char::from(alphabet[byte % length]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sandbox: &str, value: &str) -> String {
        placeholder(&hmac::Key::new(hmac::HMAC_SHA256, b"key"), sandbox, "id", value)
    }

    #[test]
    fn a_placeholder_has_the_shape_of_its_secret() {
        for (value, prefix) in [
            ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "ghp_"),
            ("sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AA", "sk-ant-api03-"),
            ("0123456789abcdef0123456789abcdef", ""),
            ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""),
        ] {
            let made = of("a", value);
            assert!(made.starts_with(prefix), "{made}");
            assert_eq!(made.len(), value.len());
            assert_ne!(made, value);
            for (theirs, ours) in value.chars().zip(made.chars()) {
                assert_eq!(theirs.is_ascii_alphanumeric(), ours.is_ascii_alphanumeric());
            }
            assert_eq!(made, of("a", value));
            assert_ne!(made, of("b", value));
        }
        assert!(of("a", "0123456789abcdef0123456789abcdef").bytes().all(|it| HEX.contains(&it)));
    }

    #[test]
    fn a_short_secret_has_a_long_placeholder() {
        let made = of("a", "hunter2!");
        assert_eq!(made.len(), OWN_PREFIX.len() + OWN_LENGTH, "{made}");
        assert!(made.starts_with(OWN_PREFIX));
    }
}
