//! What is said about each attempt: one line of JSON, at once, so that what was seen
//! before a crash is not lost with it.
//!
//! Owns the form of the lines and the child that an attempt runs in. Judges nothing.

use std::io::Write;

use crate::sys;

/// Seconds that one attempt may take before it counts as hanging.
const ATTEMPT_SECONDS: u32 = 20;

/// Where the lines go.
#[derive(Debug, Default)]
pub(crate) struct Report;

impl Report {
    /// Says what was seen.
    pub(crate) fn say(&self, probe: &str, saw: &str) {
        let line = format!("{{\"probe\":{},\"saw\":{}}}\n", quoted(probe), quoted(saw));
        // Nobody is there to be told that nobody listens.
        let _ = std::io::stdout().write_all(line.as_bytes());
    }

    /// Makes an attempt in a process of its own, so that its end is not ours.
    pub(crate) fn attempt(&self, probe: &str, attempt: impl FnOnce() -> String) {
        match sys::fork() {
            Err(error) => self.say(probe, &format!("fork: {}", sys::name(error))),
            Ok(0) => {
                sys::alarm(ATTEMPT_SECONDS);
                self.say(probe, &attempt());
                sys::leave(0);
            }
            Ok(child) => {
                if let Some(signal) = sys::wait(child) {
                    let hung = signal == libc::SIGALRM;
                    let saw = if hung { "hung".to_owned() } else { format!("signal {signal}") };
                    self.say(probe, &saw);
                }
            }
        }
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if u32::from(char) < 0x20 => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(char)));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_reserves_is_escaped() {
        assert_eq!(quoted("a\"b\\c\n\u{1}é"), r#""a\"b\\c\u000a\u0001é""#);
    }
}
