//! A question to whoever sits at the terminal.

use std::io::IsTerminal;

use super::{Screen, Tone};
use crate::exit::{Failure, Kind, Outcome};

impl Screen {
    /// Whether somebody is there to be asked, and shown what they are asked about.
    pub(crate) fn can_ask(&self) -> bool {
        self.tells() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Asks whether something is to be done. Anything but a yes is a no.
    pub(crate) async fn ask(&self, question: &str) -> Outcome<bool> {
        self.note(Tone::Strong, format!("{question} [y/N]"));
        let line = line().await?;
        Ok(matches!(line.trim(), "y" | "Y" | "yes"))
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
        Ok(match line().await?.trim() {
            "" => Some(0),
            typed => typed.parse().ok().and_then(|number: usize| number.checked_sub(1)),
        }
        .filter(|index| *index < choices.len()))
    }
}

/// A line that somebody types.
async fn line() -> Outcome<String> {
    // On another thread, so that Ctrl-C is heard meanwhile.
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let read = read.await.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic))?;
    read.map_err(|error| Failure::from_error(Kind::Usage, &error))
}
