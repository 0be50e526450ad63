//! The terminal of a conversation: raw keys in, rows out, below everything that was there.
//!
//! Owns that the terminal is left as it was found, whatever happens. Uses no other screen: what
//! was said stays in the scrollback. Decides nothing.

mod hidden;
mod keys;
pub(crate) use hidden::hidden_line;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};

use crate::conversation::view::View;
use crate::conversation::{Conversation, Input, Size};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::show::is_dumb;
use crate::show::region::Region;
use crate::show::row::{Paint, Row};

/// Pasted text is marked as such (xterm's bracketed paste).
const BEGIN: &str = "\x1b[?2004h";
const END: &str = "\x1b[?2004l\x1b[?25h";
/// All of it is shown at once, by terminals that know the mode 2026; others pass over it.
const HOLD: &str = "\x1b[?2026h\x1b[?25l";
const RELEASE: &str = "\x1b[?25h\x1b[?2026l";

/// What a conversation can be shown on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ability {
    /// Rows can be drawn again.
    Full,
    /// Lines can be written, and typed.
    Lines,
    /// Nobody sits there.
    None,
}

/// What standard input and output are.
pub(crate) fn ability() -> Ability {
    match (std::io::stdin().is_terminal(), std::io::stdout().is_terminal()) {
        (true, true) if !is_dumb() => Ability::Full,
        (true, _) => Ability::Lines,
        (false, _) => Ability::None,
    }
}

/// The size of the terminal that standard output is.
pub(crate) fn size() -> Size {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let (columns, rows) = size.map_or((0, 0), |size| (size.ws_col, size.ws_row));
    // Some terminals do not say.
    let or = |said: u16, usual| if said > 0 { usize::from(said) } else { usual };
    Size { columns: or(columns, limits::COLUMNS_DEFAULT), rows: or(rows, limits::ROWS_DEFAULT) }
}

/// How standard output is written to.
pub(crate) fn paint() -> Paint {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => Paint::Plain,
        _ => Paint::Styled,
    }
}

/// A terminal in raw mode.
pub(crate) struct Terminal {
    events: EventStream,
    region: Region,
    paint: Paint,
    /// What is drawn, so that it is not drawn twice.
    shown: Option<View>,
    /// The last rows that stay, for a terminal that moved them about when it was resized.
    printed: VecDeque<Row>,
    resized: bool,
}

impl Terminal {
    /// Takes the terminal. It is given back when this is dropped.
    pub(crate) fn open() -> Outcome<Self> {
        let failed = |error: std::io::Error| Failure::from_error(Kind::Usage, &error);
        crossterm::terminal::enable_raw_mode().map_err(failed)?;
        let terminal = Self {
            events: EventStream::new(),
            region: Region::default(),
            paint: paint(),
            shown: None,
            printed: VecDeque::new(),
            resized: false,
        };
        send(BEGIN).map_err(failed)?;
        Ok(terminal)
    }

    /// What is typed next. Nothing when the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<Input> {
        loop {
            match self.events.next().await?.ok()? {
                Event::Key(key) => {
                    if let Some(key) = keys::key(key) {
                        return Some(Input::Key(key));
                    }
                }
                Event::Paste(text) => return Some(Input::Paste(text)),
                Event::Resize(..) => {
                    self.resized = true;
                    return Some(Input::Resize(size()));
                }
                Event::FocusGained | Event::FocusLost | Event::Mouse(_) => {}
            }
        }
    }

    /// Writes rows that stay, and draws what is below them.
    ///
    /// # Errors
    /// The terminal's: it is gone.
    pub(crate) fn draw(
        &mut self,
        settled: &[Row],
        conversation: &Conversation,
    ) -> std::io::Result<()> {
        let view = conversation.view();
        if settled.is_empty() && self.shown.as_ref() == Some(&view) {
            return Ok(());
        }
        let Size { columns, rows } = size();
        let mut text = HOLD.to_owned();
        if std::mem::take(&mut self.resized) {
            let again = self.again(columns, rows.saturating_sub(view.rows.len()));
            text.push_str(&again.unwrap_or_default());
        }
        if !settled.is_empty() {
            text.push_str(&self.region.erased(columns));
        }
        for row in settled.iter().flat_map(|row| row.settled(columns)) {
            text.push_str(&row.painted(self.paint));
            text.push_str("\r\n");
            self.printed.push_back(row);
        }
        let old = self.printed.len().saturating_sub(limits::PRINTED_ROWS_MAX);
        self.printed.drain(..old);
        text.push_str(&self.region.drawn(&view.rows, Some(view.cursor), columns, self.paint));
        text.push_str(RELEASE);
        self.shown = Some(view);
        send(&text)
    }

    /// The screen anew, where all of it is ours: where its rows went when it was resized, only
    /// the terminal knows, and some tell of it later than they do it.
    fn again(&mut self, columns: usize, rows: usize) -> Option<String> {
        let (mut taken, mut from) = (0, self.printed.len());
        while taken <= rows {
            from = from.checked_sub(1)?;
            taken += self.printed[from].width().div_ceil(columns.max(1)).max(1);
        }
        // ECMA-48, CUP and EL, row by row: a whole screen that is erased at once goes into the
        // scrollback of some terminals.
        let all = size().rows;
        let mut text: String = (1..=all).map(|row| format!("\x1b[{row}H\x1b[2K")).collect();
        text.push_str("\x1b[H");
        for row in self.printed.iter().skip(from + 1) {
            text.push_str(&row.painted(self.paint));
            text.push_str("\r\n");
        }
        self.region = Region::default();
        Some(text)
    }

    /// Draws everything anew, on an empty screen.
    pub(crate) fn redraw(&mut self) {
        self.region = Region::default();
        self.shown = None;
        // ECMA-48, ED and CUP: the scrollback stays.
        drop(send("\x1b[2J\x1b[H"));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let erased = self.region.erased(size().columns);
        drop(send(&format!("{erased}{END}")));
        drop(crossterm::terminal::disable_raw_mode());
    }
}

fn send(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
