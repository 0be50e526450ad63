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
    let mut interrupted = false;
    while rustix::io::read(&stdin, &mut *byte)? == 1 {
        match byte[0] {
            b'\n' | b'\r' | END_OF_INPUT => break,
            INTERRUPT => {
                interrupted = true;
                break;
            }
            BACKSPACE | DELETE => drop(text.pop()),
            KILL_LINE => text.clear(),
            byte if byte.is_ascii() && text.len() < limits::HIDDEN_LINE_BYTES_MAX => {
                text.push(char::from(byte));
            }
            _ => break,
        }
    }
    drop(hidden);
    writeln!(std::io::stderr())?;
    match interrupted {
        true => Err(std::io::Error::other("interrupted; nothing was kept")),
        false => Ok(text),
    }
}

// What a terminal sends for Ctrl-C, Ctrl-D, Ctrl-H, Ctrl-U and the key that deletes.
const INTERRUPT: u8 = 0x03;
const END_OF_INPUT: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const KILL_LINE: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// The terminal without its echo, and with every key for us: who ends the program by one would
/// be left with a terminal that shows nothing. Dropping it gives it back as it was.
struct Hidden(Termios);

impl Hidden {
    fn enter() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}
