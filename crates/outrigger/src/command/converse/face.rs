//! What a person sees and types on: a terminal that is drawn, or lines where it is dumb.

use std::io::Write;

use crate::conversation::{Conversation, Input};
use crate::exit::Outcome;
use crate::show::Lines;
use crate::show::row::{Paint, Row};
use crate::terminal::{Terminal, paint};

/// One of the two.
pub(super) enum Face {
    Terminal(Box<Terminal>),
    Lines { lines: Lines, paint: Paint, prompt: String },
}

/// What was typed.
pub(super) enum Typed {
    Input(Input),
    Line(String),
}

impl Face {
    pub(super) fn terminal() -> Outcome<Self> {
        Ok(Self::Terminal(Box::new(Terminal::open()?)))
    }

    pub(super) fn lines() -> Self {
        Self::Lines { lines: Lines::default(), paint: paint(), prompt: String::new() }
    }

    /// What is typed next; nothing when nobody is there any more. Dropping it loses nothing.
    pub(super) async fn next(&mut self) -> Option<Typed> {
        match self {
            Self::Terminal(terminal) => terminal.next().await.map(Typed::Input),
            Self::Lines { lines, prompt, .. } => {
                let line = lines.next().await.ok().flatten()?;
                // The line break that was typed ended it.
                prompt.clear();
                Some(Typed::Line(line))
            }
        }
    }

    /// Writes rows that stay, and what is below them.
    ///
    /// # Errors
    /// Nobody looks at it any more.
    pub(super) fn draw(
        &mut self,
        rows: &[Row],
        conversation: &Conversation,
    ) -> std::io::Result<()> {
        match self {
            Self::Terminal(terminal) => terminal.draw(rows, conversation),
            Self::Lines { paint, prompt, .. } => {
                let wanted = conversation.prompt();
                let mut text = String::new();
                if !rows.is_empty() && !prompt.is_empty() {
                    text.push('\n');
                    prompt.clear();
                }
                for row in rows {
                    text.push_str(&row.painted(*paint));
                    text.push('\n');
                }
                if wanted != *prompt {
                    text.push_str(&wanted);
                    *prompt = wanted;
                }
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(text.as_bytes())?;
                stdout.flush()
            }
        }
    }

    pub(super) fn redraw(&mut self) {
        if let Self::Terminal(terminal) = self {
            terminal.redraw();
        }
    }

    /// The end: how one goes on stays on the terminal.
    pub(super) fn close(mut self, conversation: &Conversation, rows: &[Row]) {
        // Whoever has gone need not be told.
        drop(self.draw(rows, conversation));
    }
}
