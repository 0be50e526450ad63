//! The terminal of whoever types to a shell: every key is passed on, and it is given back as it
//! was whatever happens.

use outrigger_sandbox::{Input, TerminalSize};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{IsTerminal, Write};
use tokio::io::{AsyncReadExt, Stdin};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Failure, Kind, Outcome};

/// What is read of the keyboard at once.
const PIECE_BYTES: usize = 4 << 10;

/// An error where there is none.
pub(crate) fn needed() -> Outcome {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    Err(Failure::new(Kind::Usage, "a shell needs a terminal, and this is none")
        .hint("`outrigger sandbox exec` runs a command without one."))
}

/// How large it is.
pub(crate) fn size() -> TerminalSize {
    let found = tcgetwinsize(std::io::stdout()).ok();
    let found = found.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    found.map_or(TerminalSize { rows: 24, columns: 80 }, |size| TerminalSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// Shows what the shell writes as it is: that is what a shell is for, and the one place where a
/// sandbox moves a cursor.
pub(crate) fn show(bytes: &[u8]) {
    let mut stdout = std::io::stdout();
    drop(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// A terminal that passes every key on. Dropping it gives it back.
pub(crate) struct RawTerminal {
    keyboard: Stdin,
    resized: Signal,
    hung_up: Signal,
    ended: Signal,
    /// Last, so that it is as it was once nobody reads it any more.
    _before: Settings,
}

struct Settings(Termios);

impl RawTerminal {
    pub(crate) fn enter() -> Outcome<Self> {
        let failed = |error: rustix::io::Errno| {
            Failure::new(Kind::Usage, format!("the terminal can't be used: {error}"))
        };
        let signal = |kind| signal(kind).map_err(lost);
        let (resized, hung_up) =
            (signal(SignalKind::window_change())?, signal(SignalKind::hangup())?);
        let ended = signal(SignalKind::terminate())?;
        let before = tcgetattr(std::io::stdin()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        let (keyboard, _before) = (tokio::io::stdin(), Settings(before));
        Ok(Self { keyboard, resized, hung_up, ended, _before })
    }

    /// What is typed next, or the size that it has now; nothing once whoever types has gone.
    pub(crate) async fn next(&mut self) -> Outcome<Option<Input>> {
        let mut piece = vec![0; PIECE_BYTES];
        tokio::select! {
            read = self.keyboard.read(&mut piece) => {
                piece.truncate(read.map_err(lost)?);
                Ok((!piece.is_empty()).then_some(Input::Bytes(piece)))
            }
            _ = self.resized.recv() => Ok(Some(Input::Size(size()))),
            _ = self.hung_up.recv() => Ok(None),
            _ = self.ended.recv() => Err(Failure::new(Kind::Interrupted, "the shell was ended")),
        }
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

fn lost(error: std::io::Error) -> Failure {
    Failure::from_error(Kind::Usage, &error)
}
