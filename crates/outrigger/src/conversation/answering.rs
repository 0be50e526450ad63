//! How a question is answered in a conversation: by a key, or by a text that a key asks for.
//!
//! Owns that no key answers that was meant for something else: one that comes as the question
//! does, or while a text is being written, belongs to the text.

use super::Conversation;
use super::asked::{AskedQuestion, Expects};
use super::exchange::{Action, note, print};
use super::key::Key;
use crate::limits;
use crate::question::{Choice, Decision, Question};
use crate::show::row::Row;
use crate::show::{Line, Tone, diff_rows};

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
            actions.extend(print(shown(&question)));
            let since_ms = self.now_ms;
            self.asked.push_back(AskedQuestion {
                question,
                expects: Expects::Key,
                since_ms,
                left: false,
            });
        }
        actions
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

    /// What a key is to the question that is open; nothing if it belongs to the text.
    pub(super) fn choose(&mut self, key: Key) -> Option<Vec<Action>> {
        let asked = self.asked.front_mut().filter(|asked| !asked.left)?;
        match (asked.expects, key) {
            (Expects::Reason | Expects::Instead, Key::Escape) => {
                asked.expects = Expects::Key;
                self.editor.set("");
                Some(Vec::new())
            }
            (Expects::Reason, Key::Enter) => {
                let decision = Decision::No(self.editor.submit());
                Some(self.decide(decision))
            }
            (Expects::Instead, Key::Enter) => {
                let decision = Decision::Instead(self.editor.submit());
                Some(self.decide(decision))
            }
            (Expects::Key, Key::Escape) => Some(self.leave()),
            (Expects::Key, Key::Char(char)) if self.editor.is_empty() => {
                let at_once =
                    self.now_ms.saturating_sub(asked.since_ms) < limits::QUESTION_GUARD_MS;
                let choice = Choice::parse(char.encode_utf8(&mut [0; 4]));
                let choice = choice.filter(|_| !at_once)?;
                Some(self.chosen(choice))
            }
            _ => None,
        }
    }

    /// What a line is to the question that is open; nothing if it is something to say.
    pub(super) fn chosen_by_word(&mut self, word: &str) -> Option<Vec<Action>> {
        let expects = self.open_question()?.expects;
        let choice = Choice::parse(word).filter(|_| expects == Expects::Key)?;
        Some(self.chosen(choice))
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
        vec![Action::Answer(Box::new(question), decision, None)]
    }

    /// Leaves it to the inbox.
    fn leave(&mut self) -> Vec<Action> {
        let Some(mut asked) = self.asked.pop_front() else { return Vec::new() };
        asked.left = true;
        let id = &asked.question.id;
        let text = format!(
            "! {id} waits in the inbox; Enter asks again, `outrigger approve {id}` answers elsewhere"
        );
        self.asked.push_back(asked);
        note(Tone::Warning, &text)
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
