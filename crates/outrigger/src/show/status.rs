//! The rows at the bottom of a terminal that say what is under way, and erase themselves: what
//! a command prints, what a model writes, what takes so long. Must never appear where standard
//! error is no terminal.

use outrigger_agent::Seq;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use super::region::Region;
use super::row::{Paint, Row};
use super::transcript::Room;
use crate::limits;

/// The rows.
#[derive(Debug)]
pub(crate) struct Status {
    /// Whether there is a terminal to show it on, and nobody asked for silence.
    enabled: bool,
    paint: Paint,
    waiting: Option<(Seq, String, Instant)>,
    /// What stands above the line that says what takes so long.
    open: Vec<Row>,
    drawn: RefCell<DrawnRegion>,
}

/// What is on the terminal.
#[derive(Debug, Default)]
struct DrawnRegion {
    region: Region,
    at: Option<Instant>,
}

/// Whether the terminal can't erase what was written.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Columns and rows of standard error's terminal.
fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let (columns, rows) = size.map_or((0, 0), |size| (size.ws_col, size.ws_row));
    // Some terminals do not say.
    let or = |said: u16, usual| if said > 0 { usize::from(said) } else { usual };
    (or(columns, limits::COLUMNS_DEFAULT), or(rows, limits::ROWS_DEFAULT))
}

impl Status {
    pub(crate) fn new(wanted: bool) -> Self {
        let enabled = wanted && !is_dumb() && std::io::stderr().is_terminal();
        let colours =
            anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
        let paint = if colours { Paint::Styled } else { Paint::Plain };
        Self { enabled, paint, waiting: None, open: Vec::new(), drawn: RefCell::default() }
    }

    /// How much there is room for.
    pub(crate) fn room(&self) -> Room {
        let (columns, rows) = size();
        let open_rows_max = if self.enabled { rows / 2 } else { 1 };
        Room { columns: columns.saturating_sub(1).max(limits::COLUMNS_MIN), open_rows_max }
    }

    /// What is waited for from now on. The clock goes on if it is the same as before.
    pub(crate) fn wait_for(&mut self, what: Option<(Seq, String)>) {
        let since = match (&self.waiting, &what) {
            (Some((old, text, _)), Some((new, now))) if old == new && text == now => return,
            (Some((old, _, since)), Some((new, _))) if old == new => *since,
            _ => Instant::now(),
        };
        self.erase();
        self.waiting = what.map(|(seq, text)| (seq, text, since));
    }

    /// What is under way looks like that now. It is drawn at most so often that nobody sees more.
    pub(crate) fn open(&mut self, rows: Vec<Row>) {
        self.open = rows;
        let pause = Duration::from_millis(limits::FRAME_MS);
        let drawn = self.drawn.borrow();
        let due = drawn.at.is_none_or(|at| at.elapsed() >= pause);
        let changes = !self.open.is_empty() || !drawn.region.is_empty();
        drop(drawn);
        if changes && due {
            self.show();
        }
    }

    /// Shows the rows, if there are any, or what is waited for takes long.
    pub(crate) fn show(&self) {
        if !self.enabled {
            return;
        }
        let (columns, rows_max) = size();
        let late = Duration::from_millis(limits::STATUS_AFTER_MS);
        let long = self.waiting.as_ref().filter(|(_, _, since)| since.elapsed() >= late);
        let line = long
            .map(|(_, what, since)| Row::plain(&line(what, since.elapsed().as_secs(), columns)));
        let room = rows_max.saturating_sub(2);
        let above = self.open.len().saturating_sub(room);
        let rows: Vec<Row> = self.open[above..].iter().cloned().chain(line).collect();
        let mut drawn = self.drawn.borrow_mut();
        drawn.at = Some(Instant::now());
        let text = match rows[..] {
            [] => drawn.region.erased(columns),
            _ => drawn.region.drawn(&rows, None, columns, self.paint),
        };
        let mut stderr = std::io::stderr().lock();
        drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()));
    }

    /// Takes the rows away, if they are there.
    pub(crate) fn erase(&self) {
        let mut drawn = self.drawn.borrow_mut();
        if drawn.region.is_empty() {
            return;
        }
        let text = drawn.region.erased(size().0);
        // What was erased is drawn again at once.
        drawn.at = None;
        let mut stderr = std::io::stderr().lock();
        drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()));
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
