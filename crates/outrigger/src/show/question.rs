//! A question to whoever sits at the terminal.

use std::io::IsTerminal;

use super::{Screen, Tone};
use crate::exit::Outcome;

impl Screen {
    /// Whether somebody is there to be asked, and shown what they are asked about.
    pub(crate) fn can_ask(&self) -> bool {
        let shown = !self.keeps();
        shown && self.tells() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Asks whether something is to be done. Anything but a yes is a no.
    pub(crate) async fn ask(&self, question: &str) -> Outcome<bool> {
        self.note(Tone::Strong, format!("{question} [y/N]"));
        let line = self.lines.lock().await.next().await?;
        Ok(matches!(line.unwrap_or_default().trim(), "y" | "Y" | "yes"))
    }

    /// The next line that is typed.
    pub(crate) async fn line(&self) -> Outcome<Option<String>> {
        self.lines.lock().await.next().await
    }

    /// Gives up what was typed before.
    pub(crate) async fn forget_lines(&self) {
        self.lines.lock().await.forget();
    }

    /// Asks for one of several things, of which the first is meant where nothing is typed. Nothing
    /// for an answer that names none of them.
    pub(crate) async fn ask_which(
        &self,
        question: &str,
        choices: &[String],
    ) -> Outcome<Option<usize>> {
        for (number, choice) in (1..).zip(choices) {
            self.note(Tone::Plain, format!("  {number}  {choice}"));
        }
        self.note(Tone::Strong, format!("{question} [1]"));
        let line = self.line().await?;
        Ok(match line.unwrap_or_default().trim() {
            "" => Some(0),
            typed => typed.parse().ok().and_then(|number: usize| number.checked_sub(1)),
        }
        .filter(|index| *index < choices.len()))
    }
}
