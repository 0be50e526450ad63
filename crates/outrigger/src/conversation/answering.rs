//! How a question is answered in a conversation: by a line that is one of its choices, or by a
//! text that a choice asks for.
//!
//! Owns that nothing answers that was meant for something else: a letter may begin a message, and
//! a line that is sent as the question comes was written before.

use super::Conversation;
use super::asked::{AskedQuestion, Expects};
use super::exchange::{Action, note, print};
use super::key::Key;
use crate::limits;
use crate::network::HostChoice;
use crate::question::{Choice, Decision, Question};
use crate::show::row::Row;
use crate::show::{Line, Tone, diff_rows};

/// The reason of a no that stands behind it, on one line.
fn refused(word: &str) -> Option<&str> {
    word.strip_prefix("n ").map(str::trim).filter(|reason| !reason.is_empty())
}

impl Conversation {
    /// What waits for an answer now. What is asked again as it was answered before is answered
    /// by itself; what is new is shown.
    pub(super) fn ask(&mut self, questions: Vec<Question>) -> Vec<Action> {
        let mut actions = Vec::new();
        let still = |old: &Question| questions.iter().any(|question| question.is(old));
        self.asked.retain(|asked| still(&asked.question));
        for question in questions {
            if self.asked.iter().any(|asked| asked.question.is(&question)) {
                continue;
            }
            if let Some(before) = self.standing.covers(&question) {
                let text = format!("  ● approved as before: {}", question.title());
                actions.extend(note(Tone::Good, &text));
                actions.push(Action::Answer(Box::new(question), Decision::Yes, Some(before)));
                continue;
            }
            let since_ms = self.now_ms;
            self.asked.push_back(AskedQuestion {
                question,
                expects: Expects::Choice,
                since_ms,
                is_shown: false,
                left: false,
            });
        }
        actions.extend(self.show_open());
        actions
    }

    /// Shows all of the question that is open, once it is its turn.
    fn show_open(&mut self) -> Vec<Action> {
        match self.asked.front_mut().filter(|asked| !asked.left && !asked.is_shown) {
            Some(asked) => {
                asked.is_shown = true;
                print(shown(&asked.question))
            }
            None => Vec::new(),
        }
    }

    /// Asks again what was left for later.
    pub(crate) fn reopen(&mut self) {
        for asked in &mut self.asked {
            (asked.left, asked.since_ms) = (false, self.now_ms);
        }
    }

    /// The question that is open.
    pub(super) fn open_question(&self) -> Option<&AskedQuestion> {
        self.asked.front().filter(|asked| !asked.left)
    }

    /// What a key is to what is asked; nothing if it belongs to the text.
    pub(super) fn choose(&mut self, key: Key) -> Option<Vec<Action>> {
        let Some(asked) = self.asked.front_mut().filter(|asked| !asked.left) else {
            return if key == Key::Enter { self.choose_by_enter() } else { None };
        };
        match (asked.expects, key) {
            (Expects::Reason | Expects::Instead, Key::Escape) => {
                asked.expects = Expects::Choice;
                self.editor.set("");
                Some(Vec::new())
            }
            (Expects::Reason, Key::Enter) => {
                let decision = Decision::No(self.editor.submit());
                Some(self.decide(decision))
            }
            (Expects::Instead, Key::Enter) => {
                if let Some(why) = asked.question.refuses(self.editor.text()) {
                    let text = format!("! {why}; mend it, or Esc goes back");
                    return Some(note(Tone::Warning, &text));
                }
                let decision = Decision::Instead(self.editor.submit());
                Some(self.decide(decision))
            }
            (Expects::Choice, Key::Escape) => Some(self.leave()),
            (Expects::Choice, Key::Enter) => self.choose_by_enter(),
            _ => None,
        }
    }

    /// What Enter is to what is asked; nothing if what is written is something to say.
    fn choose_by_enter(&mut self) -> Option<Vec<Action>> {
        let question = self.open_question().map(|asked| asked.since_ms);
        let since_ms = question.or_else(|| Some(self.open_host()?.since_ms))?;
        if self.now_ms.saturating_sub(since_ms) < limits::QUESTION_GUARD_MS {
            return None;
        }
        let word = self.editor.text().to_owned();
        self.chosen_by_word(&word)
    }

    /// What a line is to what is asked; nothing if it is something to say.
    pub(super) fn chosen_by_word(&mut self, word: &str) -> Option<Vec<Action>> {
        let Some(asked) = self.open_question() else { return self.chosen_for_host(word) };
        if asked.expects != Expects::Choice {
            return None;
        }
        if let Some(choice) = Choice::parse(word) {
            self.editor.set("");
            return Some(self.chosen(choice));
        }
        if let Some(reason) = refused(word) {
            self.editor.set("");
            return Some(self.decide(Decision::No(reason.to_owned())));
        }
        let choices = asked.question.choices();
        self.no_choice(word, &choices)
    }

    /// A single letter is nothing that anybody says.
    pub(super) fn no_choice(&mut self, word: &str, choices: &str) -> Option<Vec<Action>> {
        if word.trim().chars().count() != 1 {
            return None;
        }
        self.editor.set("");
        Some(note(Tone::Warning, &format!("! `{}` is none of: {choices}", word.trim())))
    }

    /// Whether anything is asked.
    pub(super) fn is_asked(&self) -> bool {
        self.open_question().is_some() || self.open_host().is_some()
    }

    /// Whether what is written answers what is asked.
    pub(super) fn is_answer(&self) -> bool {
        let word = self.editor.text();
        match (self.open_question(), self.open_host()) {
            (Some(asked), _) => {
                let is_choice = Choice::parse(word).is_some() || refused(word).is_some();
                asked.expects != Expects::Choice || is_choice
            }
            (None, Some(host)) => HostChoice::parse(word, &host.question).is_some(),
            (None, None) => false,
        }
    }

    fn chosen(&mut self, choice: Choice) -> Vec<Action> {
        let Some(asked) = self.asked.front_mut() else { return Vec::new() };
        match choice {
            Choice::Yes => self.decide(Decision::Yes),
            Choice::Always if asked.question.can_stand() => self.decide(Decision::Always),
            Choice::No => {
                asked.expects = Expects::Reason;
                Vec::new()
            }
            Choice::Edit => {
                if let Some(draft) = asked.question.draft() {
                    asked.expects = Expects::Instead;
                    self.editor.set(&draft);
                }
                Vec::new()
            }
            Choice::Why => {
                let line = |line: &String| Row::of(&Line::new(Tone::Detail, format!("  {line}")));
                print(asked.question.why.iter().map(line).collect())
            }
            Choice::Later => self.leave(),
            Choice::Always => Vec::new(),
        }
    }

    fn decide(&mut self, decision: Decision) -> Vec<Action> {
        let Some(AskedQuestion { question, .. }) = self.asked.pop_front() else {
            return Vec::new();
        };
        if decision == Decision::Always {
            self.standing.add(&question);
        }
        // The next one was not looked at yet.
        let now_ms = self.now_ms;
        self.asked.iter_mut().for_each(|next| next.since_ms = now_ms);
        let mut actions = vec![Action::Answer(Box::new(question), decision, None)];
        actions.extend(self.show_open());
        actions
    }

    /// Leaves it to the inbox.
    fn leave(&mut self) -> Vec<Action> {
        let Some(mut asked) = self.asked.pop_front() else { return Vec::new() };
        (asked.left, asked.is_shown) = (true, false);
        let id = &asked.question.id;
        let text = format!(
            "! {id} waits in the inbox; Enter asks again, `outrigger approve {id}` answers elsewhere"
        );
        self.asked.push_back(asked);
        let mut actions = note(Tone::Warning, &text);
        actions.extend(self.show_open());
        actions
    }

    /// What nobody answers for long is left.
    pub(super) fn time_passed(&mut self) -> Vec<Action> {
        let late = self.open_question().is_some_and(|asked| {
            self.now_ms.saturating_sub(asked.since_ms) >= limits::QUESTION_MS_MAX
        });
        if late && self.editor.is_empty() { self.leave() } else { Vec::new() }
    }
}

/// All of a question: what would be done, and what it would change.
fn shown(question: &Question) -> Vec<Row> {
    let mut rows = vec![Row::default()];
    rows.push(Row::of(&Line::new(Tone::Warning, format!("? {}", question.title()))));
    let line = |line: &String| Row::of(&Line::new(Tone::Plain, format!("  {line}")));
    rows.extend(question.lines.iter().map(line));
    rows.extend(question.diff.iter().flat_map(|diff| diff_rows(diff, usize::MAX)));
    rows
}
