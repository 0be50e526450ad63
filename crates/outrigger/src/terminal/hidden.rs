//! One line that nobody sees while it is typed.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Read, Write as _};
use zeroize::Zeroizing;

use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// Reads a line: typed on a terminal without being shown, behind what is asked there, or all
/// of standard input where that is none.
pub(crate) async fn hidden_line(asked: Option<String>) -> Outcome<Zeroizing<String>> {
    let read = tokio::task::spawn_blocking(move || read(asked)).await;
    let read = read.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic))?;
    read.map_err(|error| Failure::from_error(Kind::Usage, &error))
}

fn read(asked: Option<String>) -> std::io::Result<Zeroizing<String>> {
    let stdin = std::io::stdin();
    // With room for all of it, so that no copy is left where it grew.
    let mut text = Zeroizing::new(String::with_capacity(limits::HIDDEN_LINE_BYTES_MAX));
    if !stdin.is_terminal() {
        stdin.lock().take(limits::HIDDEN_LINE_BYTES_MAX as u64).read_to_string(&mut text)?;
        return Ok(text);
    }
    let hidden = Hidden::enter()?;
    if let Some(asked) = asked {
        write!(std::io::stderr(), "{asked}")?;
    }
    // Byte by byte: a buffer of the standard library would keep what was typed.
    let mut byte = Zeroizing::new([0]);
    while rustix::io::read(&stdin, &mut *byte)? == 1 && byte[0] != b'\n' {
        if !byte[0].is_ascii() || text.len() == limits::HIDDEN_LINE_BYTES_MAX {
            break;
        }
        text.push(char::from(byte[0]));
    }
    drop(hidden);
    writeln!(std::io::stderr())?;
    Ok(text)
}

/// The terminal without its echo. Dropping it gives it back as it was.
struct Hidden(Termios);

impl Hidden {
    fn enter() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}
