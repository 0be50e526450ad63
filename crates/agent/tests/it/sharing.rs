//! With whom a session is shared, and whose leave a turn needs.

use outrigger_agent::{Author, Event, Message, Part, Record, SharedAccess, State, TurnEnd, Work};
use std::sync::Arc;

use crate::build::{self, done, reply, settled};

struct Play(State);

impl Play {
    fn new() -> Self {
        let mut play = Self(State::default());
        play.add(Event::Opened(Arc::new(build::spec())));
        play
    }

    fn add(&mut self, event: Event) {
        let record = Record { seq: self.0.seq().next(), at_ms: 1, event };
        self.0 = std::mem::take(&mut self.0).apply(&record);
    }

    fn says(&mut self, person: &str) {
        let message = Message::new(Author::Person(person.to_owned()), "hello".to_owned());
        self.add(Event::Said(Arc::new(message)));
    }

    fn speakers(&self) -> Vec<&str> {
        self.0.speakers().iter().map(String::as_str).collect()
    }
}

#[test]
fn who_it_is_shared_with_is_what_was_said_last_of_each() {
    let mut play = Play::new();
    let by = || "person:local".to_owned();
    let mut share =
        |with: &str, access| play.add(Event::Shared { with: with.to_owned(), access, by: by() });
    share("org:acme", SharedAccess::Read);
    share("person:bob", SharedAccess::Read);
    share("person:bob", SharedAccess::TakePart);
    share("org:acme", SharedAccess::None);
    share("group:ops", SharedAccess::None);
    let shares: Vec<_> = play.0.shares().iter().collect();
    assert_eq!(shares, [(&"person:bob".to_owned(), &SharedAccess::TakePart)]);
}

#[test]
fn a_turn_needs_the_leave_of_everybody_who_spoke_in_it_until_it_is_over() {
    let mut play = Play::new();
    play.says("person:local");
    assert_eq!(play.speakers(), [""; 0]);
    play.says("person:bob");
    assert_eq!(play.speakers(), ["person:bob"]);
    // What comes when the turn can't go on is of the next one.
    play.add(Event::Interrupted { by: "person:local".to_owned() });
    play.says("person:eve");
    play.add(Event::TurnEnded(TurnEnd::Interrupted));
    assert_eq!(play.speakers(), ["person:bob", "person:eve"], "nobody has read it yet");
    play.add(Event::Proposed(Work::AskModel));
    let effect = play.0.seq();
    let (attempt, reserved, place) = (1, outrigger_agent::Amounts::default(), None);
    play.add(Event::Started { effect, attempt, reserved, place });
    let last = reply(vec![Part::Text("done".to_owned())]);
    play.add(settled(effect, done(last), 1));
    play.add(Event::TurnEnded(TurnEnd::Answered));
    assert_eq!(play.speakers(), [""; 0]);
}
