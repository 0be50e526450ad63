//! `outrigger sandbox shell` at a server: a person's terminal on a terminal in a sandbox there.

use futures_util::StreamExt;
use outrigger_api::{SHELL_ENDED, TerminalDimensions};
use outrigger_client::{TerminalFrame, TerminalInput};
use outrigger_sandbox::{Input, TerminalSize};
use std::pin::pin;

use super::connection::Remote;
use super::sandbox_names::{address, sandbox};
use crate::command::sandbox::raw_terminal::{self, RawTerminal};
use crate::exit::{Failure, Kind, Outcome};

pub(super) async fn open(remote: &Remote, name: &str) -> Outcome<u8> {
    raw_terminal::needed()?;
    let at = address(&sandbox(remote, name).await?);
    let size = dimensions(raw_terminal::size());
    let (mut input, frames) = remote.client.terminal(&at, size).await?;
    let mut terminal = RawTerminal::enter()?;
    let shown = async {
        let mut frames = pin!(frames);
        while let Some(frame) = frames.next().await {
            match frame? {
                TerminalFrame::Shown(bytes) => raw_terminal::show(&bytes),
                TerminalFrame::Closed(why) => return ended(why),
            }
        }
        ended(String::new())
    };
    // The shell ends with the connection.
    tokio::select! {
        ended = shown => ended,
        hung_up = typing(&mut terminal, &mut input) => hung_up,
    }
}

async fn typing(terminal: &mut RawTerminal, input: &mut TerminalInput) -> Outcome<u8> {
    while let Some(typed) = terminal.next().await? {
        match typed {
            Input::Bytes(bytes) => input.type_bytes(bytes).await?,
            Input::Size(size) => input.resize(dimensions(size)).await?,
        }
    }
    Ok(0)
}

fn dimensions(size: TerminalSize) -> TerminalDimensions {
    TerminalDimensions { rows: size.rows, cols: size.columns }
}

/// What a shell that is over means for whoever typed to it.
fn ended(why: String) -> Outcome<u8> {
    if let Some(code) = why.strip_prefix(SHELL_ENDED).and_then(|code| code.parse::<i32>().ok()) {
        return Ok(u8::try_from(code & 0xff).unwrap_or(u8::MAX));
    }
    let why = if why.is_empty() { "the connection to the shell is over".to_owned() } else { why };
    Err(Failure::new(Kind::SandboxUnavailable, why))
}
