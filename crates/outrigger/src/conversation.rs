//! A conversation as a person sees it: what they write, what is under way, what is asked.
//!
//! Pure: a state, what comes in, what is to be done about it, and the rows that are drawn. Must
//! never read a clock, a terminal or a session: `command::converse` does.

mod answering;
mod asked;
mod complete;
mod editor;
mod exchange;
mod host;
mod key;
mod slash;
#[cfg(test)]
mod tests;
pub(crate) mod view;

use outrigger_agent::{Author, Event, Outcome, Product, Record, Seq};
use std::collections::VecDeque;

pub(crate) use exchange::{Action, Input, Size};
pub(crate) use key::Key;
pub(crate) use slash::{Hazards, Slash};

use crate::limits;
use crate::question::StandingAnswers;
use crate::show::row::Row;
use crate::show::{Line, Tone, Transcript, inert};
use asked::{AskedHost, AskedQuestion};
use complete::{Completion, Forward};
use editor::Editor;
use exchange::{Phase, note, print};

/// The state.
#[derive(Debug)]
pub(crate) struct Conversation {
    transcript: Transcript,
    size: Size,
    editor: Editor,
    completion: Option<Completion>,
    files: Option<Vec<String>>,
    /// What is said when the turn is over.
    queue: VecDeque<String>,
    /// What was said here and stands on the screen already.
    echoed: Vec<String>,
    phase: Phase,
    /// Since when the step is under way that is waited for.
    step: Option<(Seq, u64)>,
    asked: VecDeque<AskedQuestion>,
    hosts: Vec<AskedHost>,
    standing: StandingAnswers,
    /// The whole of the output that was shown last.
    output: Option<String>,
    /// Until when a second Ctrl-C leaves.
    leaving_until_ms: Option<u64>,
    footer: String,
    /// Why nothing is heard of the session now, if so.
    away: Option<String>,
    now_ms: u64,
}

impl Conversation {
    pub(crate) fn new(size: Size, history: Vec<String>) -> Self {
        Self {
            transcript: Transcript::live_in(size.room()),
            size,
            editor: Editor::new(history),
            completion: None,
            files: None,
            queue: VecDeque::new(),
            echoed: Vec::new(),
            phase: Phase::Idle,
            step: None,
            asked: VecDeque::new(),
            hosts: Vec::new(),
            standing: StandingAnswers::default(),
            output: None,
            leaving_until_ms: None,
            footer: String::new(),
            away: None,
            now_ms: 0,
        }
    }

    /// Takes note of what happened before in the session that is gone on with.
    pub(crate) fn learn(&mut self, record: &Record) {
        self.transcript.learn(record);
    }

    /// Forgets a session: another one is gone on with.
    pub(crate) fn forget(&mut self) {
        self.transcript = Transcript::live_in(self.size.room());
        self.asked.clear();
        self.hosts.clear();
        self.step = None;
        self.output = None;
        self.away = None;
    }

    /// Takes in what comes, and says what is to be done about it.
    pub(crate) fn update(&mut self, now_ms: u64, input: Input) -> Vec<Action> {
        self.now_ms = now_ms;
        let mut actions = match input {
            Input::Key(key) => self.key(key),
            Input::Paste(text) => {
                self.editor.paste(&text);
                self.offer()
            }
            Input::Resize(size) => {
                self.size = size;
                self.transcript.resize(size.room());
                Vec::new()
            }
            Input::Tick => self.time_passed(),
            Input::Event(record) => self.event(&record),
            Input::EventBelow(session, record) => {
                print(self.transcript.event_below(&session, &record))
            }
            Input::Live(Some(effect), output) => print(self.transcript.under_way(effect, &output)),
            Input::Live(None, output) => {
                print(crate::show::retrying(&output).into_iter().collect())
            }
            Input::Note(tone, text) => note(tone, &text),
            Input::Busy(what) => {
                self.phase = Phase::Busy { what, since_ms: now_ms };
                Vec::new()
            }
            Input::Working => {
                self.phase = Phase::Working { since_ms: now_ms };
                Vec::new()
            }
            Input::Idle => self.idle(),
            Input::Waiting => {
                self.hosts.clear();
                self.phase = Phase::Idle;
                Vec::new()
            }
            Input::Asked(questions) => self.ask(questions),
            Input::Hosts(questions) => self.ask_hosts(questions),
            Input::Files(files) => {
                self.files = Some(files);
                self.offer()
            }
            Input::Footer(text) => {
                self.footer = text;
                Vec::new()
            }
            Input::Unsaid(text) => {
                self.take_back(&text);
                Vec::new()
            }
            Input::Away(why) => {
                self.away = Some(why);
                Vec::new()
            }
            Input::Back => {
                self.away = None;
                print(self.transcript.begin_anew())
            }
        };
        let waiting = self.transcript.waiting().map(|(effect, _)| effect);
        if waiting != self.step.map(|(effect, _)| effect) {
            self.step = waiting.map(|effect| (effect, now_ms));
        }
        actions.retain(|action| !matches!(action, Action::Print(rows) if rows.is_empty()));
        actions
    }

    /// Takes in a line that was typed where keys are not heard one by one.
    pub(crate) fn line(&mut self, now_ms: u64, line: &str) -> Vec<Action> {
        self.now_ms = now_ms;
        let text = line.trim_end_matches(['\r', '\n']);
        if let Some(actions) = self.chosen_by_word(text) {
            return actions;
        }
        self.editor.set(text);
        let mut actions = self.update(now_ms, Input::Key(Key::Enter));
        // The terminal shows what was typed already.
        let sent = |action: &Action| matches!(action, Action::Say(_) | Action::Command(_));
        if actions.iter().any(sent) {
            actions.retain(|action| !matches!(action, Action::Print(_)));
        }
        actions
    }

    /// Rows of text that have become certain, to be printed before the next drawing.
    pub(crate) fn settled(&mut self) -> Vec<Row> {
        self.transcript.advance()
    }

    fn event(&mut self, record: &Record) -> Vec<Action> {
        if let Event::Settled { outcome: Outcome::Done(Product::Output(output)), .. } =
            &record.event
        {
            self.output = Some(output.text.clone());
        }
        let rows = self.transcript.event(record);
        if self.was_echoed(&record.event) { Vec::new() } else { print(rows) }
    }

    /// Whether it was said here. Others may say something in the same session.
    fn was_echoed(&mut self, event: &Event) -> bool {
        let Event::Said(message) = event else { return false };
        let is_of_person = matches!(message.author, Author::Person(_));
        let place = self.echoed.iter().position(|text| is_of_person && *text == message.text);
        place.map(|place| self.echoed.remove(place)).is_some()
    }

    fn idle(&mut self) -> Vec<Action> {
        self.hosts.clear();
        self.phase = Phase::Idle;
        match self.queue.pop_front() {
            Some(text) if self.asked.is_empty() => self.say(text),
            Some(text) => {
                self.queue.push_front(text);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Says something, and shows it at once.
    fn say(&mut self, text: String) -> Vec<Action> {
        self.echoed.push(text.clone());
        let heard = if self.is_working() { "  (heard at the next step)" } else { "" };
        let mut rows = vec![Row::default()];
        for (index, line) in text.lines().enumerate() {
            let mark = if index == 0 { "› " } else { "  " };
            let line = Line::new(Tone::Strong, format!("{mark}{}", inert(line)));
            rows.extend(Row::of(&line).wrapped(self.size.room().columns));
        }
        if !heard.is_empty() {
            rows.push(Row::of(&Line::new(Tone::Detail, heard)));
        }
        // What is shown with it stands right below.
        vec![Action::Print(rows), Action::Say(text), Action::Print(vec![Row::default()])]
    }

    /// What was said here and did not come back from the session yet.
    pub(crate) fn unheard(&self) -> impl Iterator<Item = &str> {
        self.echoed.iter().map(String::as_str)
    }

    /// What is said when the turn is over.
    pub(crate) fn queued(&self) -> impl Iterator<Item = &str> {
        self.queue.iter().map(String::as_str)
    }

    /// What was to be said could not be: it can be written anew.
    pub(crate) fn take_back(&mut self, text: &str) {
        if let Some(place) = self.echoed.iter().rposition(|echoed| echoed == text) {
            self.echoed.remove(place);
        }
        let written = self.editor.text();
        let both = if written.is_empty() { text.to_owned() } else { format!("{text}\n{written}") };
        self.editor.set(&both);
    }

    fn is_working(&self) -> bool {
        matches!(self.phase, Phase::Working { .. })
    }

    fn key(&mut self, key: Key) -> Vec<Action> {
        if key == Key::Interrupt {
            return self.interrupt();
        }
        self.leaving_until_ms = None;
        if let Some(actions) = self.choose(key) {
            return actions;
        }
        match key {
            Key::Escape if self.completion.take().is_some() => Vec::new(),
            Key::Escape if self.is_working() => self.stop(),
            Key::EndOfInput if self.editor.is_empty() => vec![Action::Leave],
            Key::EndOfInput => {
                self.editor.press(Key::Delete);
                self.offer()
            }
            Key::Expand => self.expand(),
            Key::Redraw => vec![Action::Redraw],
            Key::Tab | Key::Up | Key::Down | Key::Enter if self.completion.is_some() => {
                self.complete(key)
            }
            Key::Tab => self.enqueue(),
            Key::Enter => self.enter(),
            Key::Up if self.editor.is_empty() && !self.queue.is_empty() => {
                let text = self.queue.pop_back().unwrap_or_default();
                self.editor.set(&text);
                Vec::new()
            }
            key => {
                self.editor.press(key);
                self.offer()
            }
        }
    }

    /// Ctrl-C: gives up the text, stops what runs, and leaves the second time.
    fn interrupt(&mut self) -> Vec<Action> {
        if self.leaving_until_ms.is_some_and(|until| self.now_ms < until) {
            return vec![Action::Leave];
        }
        self.leaving_until_ms = Some(self.now_ms + limits::LEAVE_MS_MAX);
        self.completion = None;
        self.give_up_text();
        if self.is_working() { self.stop() } else { Vec::new() }
    }

    fn give_up_text(&mut self) {
        if let Some(asked) = self.asked.front_mut() {
            asked.back_to_choice();
        }
        self.editor.set("");
    }

    /// Stops the step. What was to be said after it can be written anew.
    fn stop(&mut self) -> Vec<Action> {
        if self.editor.is_empty() && !self.queue.is_empty() {
            let queued: Vec<String> = self.queue.drain(..).collect();
            self.editor.set(&queued.join("\n"));
        }
        vec![Action::Interrupt]
    }

    fn enqueue(&mut self) -> Vec<Action> {
        if self.is_working() && !self.editor.text().trim().is_empty() {
            let text = self.editor.submit();
            self.queue.push_back(text);
        }
        Vec::new()
    }

    fn enter(&mut self) -> Vec<Action> {
        if self.editor.text().trim().is_empty() {
            // What was left for later is asked again.
            return vec![Action::Look];
        }
        let text = self.editor.submit();
        self.completion = None;
        match Slash::parse(&text) {
            None => self.say(text),
            Some(Ok(Slash::Help)) => print(slash::help()),
            Some(Ok(Slash::Quit)) => vec![Action::Leave],
            Some(Ok(command)) => {
                let echo = Row::of(&Line::new(Tone::Detail, format!("› {}", inert(text.trim()))));
                vec![Action::Print(vec![Row::default(), echo]), Action::Command(command)]
            }
            Some(Err(why)) => note(Tone::Warning, &format!("! {why}")),
        }
    }

    /// Offers what can stand in the place of the word before the cursor.
    fn offer(&mut self) -> Vec<Action> {
        let word = self.editor.before().rsplit(char::is_whitespace).next().unwrap_or_default();
        if word.starts_with('@') && self.files.is_none() {
            self.files = Some(Vec::new());
            return vec![Action::ListFiles];
        }
        let files = self.files.as_deref().unwrap_or_default();
        self.completion = Completion::of(self.editor.before(), files);
        if word.is_empty() && self.completion.is_none() {
            // They may be others the next time.
            self.files = self.files.take().filter(Vec::is_empty).or(None);
        }
        Vec::new()
    }

    fn complete(&mut self, key: Key) -> Vec<Action> {
        let Some(completion) = &mut self.completion else { return Vec::new() };
        match key {
            Key::Up => completion.turn(Forward::No),
            Key::Down => completion.turn(Forward::Yes),
            _ => {
                let (bytes, text) = (completion.bytes, completion.text());
                self.editor.complete(bytes, &text);
                self.completion = None;
                if key == Key::Enter && text.starts_with('/') {
                    return self.enter();
                }
            }
        }
        Vec::new()
    }

    /// All of the output of which the end was shown.
    fn expand(&mut self) -> Vec<Action> {
        let Some(output) = &self.output else {
            return note(Tone::Detail, "  there is no output yet");
        };
        let clean = inert(output);
        let line = |text: &str| Row::of(&Line::new(Tone::Detail, format!("  │ {text}")));
        print(clean.lines().map(line).collect())
    }
}
