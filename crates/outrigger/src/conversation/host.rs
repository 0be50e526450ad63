//! Hosts that the sandbox asks for in a conversation, and the line that answers.

use outrigger_engine::EgressQuestion;

use super::Conversation;
use super::asked::AskedHost;
use super::exchange::{Action, print};
use crate::network::HostChoice;
use crate::show::row::Row;
use crate::show::{Line, Tone};

impl Conversation {
    /// All that is asked for now. What is new is shown.
    pub(super) fn ask_hosts(&mut self, questions: Vec<EgressQuestion>) -> Vec<Action> {
        self.hosts.retain(|asked| questions.contains(&asked.question));
        let mut rows = Vec::new();
        for question in questions {
            if self.hosts.iter().any(|asked| asked.question == question) {
                continue;
            }
            // The host comes first: what follows it was written by others.
            let what = self.transcript.waiting().map_or_else(String::new, |(_, what)| what);
            let title = format!("{} is to be reached: {what}", question.words);
            rows.push(Row::of(&Line::new(Tone::Warning, format!("? {title}"))));
            let since_ms = self.now_ms;
            self.hosts.push(AskedHost { question, title, since_ms });
        }
        print(rows)
    }

    /// The host that is asked about, behind what the rules ask.
    pub(super) fn open_host(&self) -> Option<&AskedHost> {
        self.hosts.first().filter(|_| self.open_question().is_none())
    }

    /// What a line is to it; nothing if it is something to say.
    pub(super) fn chosen_for_host(&mut self, word: &str) -> Option<Vec<Action>> {
        let question = &self.open_host()?.question;
        let Some(choice) = HostChoice::parse(word, question) else {
            let choices = HostChoice::shown(question);
            return self.no_choice(word, choices);
        };
        self.editor.set("");
        let AskedHost { question, .. } = self.hosts.remove(0);
        // The next one was not looked at yet.
        let now_ms = self.now_ms;
        self.hosts.iter_mut().for_each(|next| next.since_ms = now_ms);
        Some(vec![Action::AnswerHost(question, choice)])
    }
}
