//! One line at the bottom of a terminal that says what takes so long, and erases
//! itself. Must never appear where standard error is no terminal.

use outrigger_agent::Seq;
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::limits;

/// The line.
#[derive(Debug)]
pub(crate) struct Status {
    /// Whether there is a terminal to show it on, and nobody asked for silence.
    enabled: bool,
    waiting: Option<(Seq, String, Instant)>,
    shown: Cell<bool>,
}

impl Status {
    pub(crate) fn new(wanted: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let enabled = wanted && !dumb && std::io::stderr().is_terminal();
        Self { enabled, waiting: None, shown: Cell::new(false) }
    }

    /// What is waited for from now on. The clock goes on if it is the same as before.
    pub(crate) fn wait_for(&mut self, what: Option<(Seq, String)>) {
        self.erase();
        let since = match (&self.waiting, &what) {
            (Some((old, _, since)), Some((new, _))) if old == new => *since,
            _ => Instant::now(),
        };
        self.waiting = what.map(|(seq, text)| (seq, text, since));
    }

    /// Shows the line, if what is waited for takes long.
    pub(crate) fn show(&self) {
        let Some((_, what, since)) = self.waiting.as_ref().filter(|_| self.enabled) else { return };
        let elapsed = since.elapsed();
        if elapsed < Duration::from_millis(limits::STATUS_AFTER_MS) {
            return;
        }
        let columns =
            rustix::termios::tcgetwinsize(std::io::stderr()).map_or(80, |size| size.ws_col);
        let text = line(what, elapsed.as_secs(), usize::from(columns));
        // `\r` and "erase to the end of the line" (ECMA-48, EL): also where colours are off.
        let mut stderr = std::io::stderr().lock();
        drop(write!(stderr, "\r{text}\x1b[K").and_then(|()| stderr.flush()));
        self.shown.set(true);
    }

    /// Takes the line away, if it is there.
    pub(crate) fn erase(&self) {
        if self.shown.replace(false) {
            let mut stderr = std::io::stderr().lock();
            drop(write!(stderr, "\r\x1b[K").and_then(|()| stderr.flush()));
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.erase();
    }
}

/// Fits into a row, so that `\r` leads back to its beginning.
fn line(what: &str, seconds: u64, columns: usize) -> String {
    let end = format!(" · {seconds} s");
    let room = columns.saturating_sub(end.chars().count() + 3);
    let mut what: String = what.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if what.chars().count() > room {
        what = what.chars().take(room.saturating_sub(1)).chain(['…']).collect();
    }
    format!("… {what}{end}")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn the_line_fits_into_a_row() {
        for (what, columns, expected) in [
            ("waiting for the model", 80, "… waiting for the model · 7 s"),
            ("execute  make -j2\nall", 80, "… execute  make -j2 all · 7 s"),
            ("execute  make all", 20, "… execute  m… · 7 s"),
            ("x", 0, "… … · 7 s"),
        ] {
            assert_eq!(line(what, 7, columns), expected);
        }
    }
}
