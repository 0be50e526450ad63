//! Mends text whose provider cut a character in two.
//!
//! A character outside of the Basic Multilingual Plane, an emoji for example, is two escapes
//! in JSON, and servers that stream token by token send one half in one event and the other
//! half in the next. Owns that both come together, and that a half which stays alone becomes
//! U+FFFD. Nothing behind this sees a half.

use outrigger_agent::json::{ESCAPE_BYTES, Edge, Half, lone_halves};
use std::borrow::Cow;

use crate::sse::OwnedEvent;

/// What stands in place of a half; as long as the escape of one.
const REPLACEMENT: &str = "\\ufffd";

/// Holds an event back that ends in the middle of a character, until the next one comes.
#[derive(Debug, Default)]
pub(crate) struct Halves {
    held: Option<(OwnedEvent, Vec<Half>)>,
}

impl Halves {
    /// Takes the next event; gives those that are whole by now, in order.
    pub(crate) fn take(&mut self, mut event: OwnedEvent) -> impl Iterator<Item = OwnedEvent> {
        let mut halves = lone_halves(&event.data);
        let held = self.held.take().map(|(mut first, ends)| {
            let begins: Vec<Half> =
                halves.iter().copied().filter(|half| half.edge == Edge::Begins).collect();
            if begins.len() == ends.len() {
                join(&mut first.data, &ends, &mut event.data, &begins);
                halves = lone_halves(&event.data);
            } else {
                replace(&mut first.data, &ends);
            }
            first
        });
        let (ends, alone): (Vec<Half>, Vec<Half>) =
            halves.into_iter().partition(|half| half.edge == Edge::Ends);
        replace(&mut event.data, &alone);
        let next = if ends.is_empty() {
            Some(event)
        } else {
            self.held = Some((event, ends));
            None
        };
        held.into_iter().chain(next)
    }

    /// The event that is held back when no other comes.
    pub(crate) fn rest(self) -> Option<OwnedEvent> {
        let (mut event, ends) = self.held?;
        replace(&mut event.data, &ends);
        Some(event)
    }
}

/// Moves first halves from the ends of strings to the second ones that others begin with.
fn join(from: &mut String, ends: &[Half], to: &mut String, begins: &[Half]) {
    for (first, second) in ends.iter().zip(begins).rev() {
        let escape = from[first.at..first.at + ESCAPE_BYTES].to_owned();
        from.replace_range(first.at..first.at + ESCAPE_BYTES, "");
        to.insert_str(second.at, &escape);
    }
}

fn replace(text: &mut String, halves: &[Half]) {
    for half in halves {
        text.replace_range(half.at..half.at + ESCAPE_BYTES, REPLACEMENT);
    }
}

/// A piece of JSON without a half in it.
pub(crate) fn mended(text: &str) -> Cow<'_, str> {
    let halves = lone_halves(text);
    if halves.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut text = text.to_owned();
    replace(&mut text, &halves);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(events: &[&str]) -> Vec<String> {
        let mut halves = Halves::default();
        let mut whole = Vec::new();
        for data in events {
            let event = OwnedEvent { data: (*data).to_owned(), ..OwnedEvent::default() };
            whole.extend(halves.take(event).map(|event| event.data));
        }
        whole.extend(halves.rest().map(|event| event.data));
        whole
    }

    #[test]
    fn halves_of_neighbours_come_together_and_others_are_replaced() {
        for (events, whole) in [
            (&[r#"["a\ud83d"]"#, r#"["\ude00b"]"#][..], &[r#"["a"]"#, r#"["\ud83d\ude00b"]"#][..]),
            (
                &[r#"["\ud83d","\ud83d"]"#, r#"["\ude00","\ude01"]"#],
                &[r#"["",""]"#, r#"["\ud83d\ude00","\ud83d\ude01"]"#],
            ),
            (
                &[r#"["\ud83d"]"#, r#"["\ude00\ud83d"]"#, r#"["\ude01"]"#],
                &[r#"[""]"#, r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude01"]"#],
            ),
            (&[r#"["a\ud83d"]"#, "[1]"], &[r#"["a\ufffd"]"#, "[1]"]),
            (&[r#"["a\ud83d"]"#], &[r#"["a\ufffd"]"#]),
            (&[r#"["\ude00"]"#, r#"["\ud83dx"]"#], &[r#"["\ufffd"]"#, r#"["\ufffdx"]"#]),
        ] {
            assert_eq!(taken(events), whole, "{events:?}");
        }
    }
}
