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
        // On another thread, so that Ctrl-C is heard meanwhile.
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        let read = read.await.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic))?;
        let line = read.map_err(|error| Failure::from_error(Kind::Usage, &error))?;
        Ok(matches!(line.trim(), "y" | "Y" | "yes"))
    }
}
