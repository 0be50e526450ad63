//! The program in its terminal, and a person's hands.
//!
//! Owns when the program runs. Dropping it ends the program.

use outrigger_sim::limits;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

use super::model::FakeModel;
use super::terminal::{Place, Terminal};
use super::world::World;
use crate::error::{Error, ErrorContext, Outcome};
use crate::sizes;
use crate::spawner::field_kib;

/// What stands before the text that is written.
const PROMPT: &str = "› ";
/// Deletes that text (Ctrl-U).
const DELETE: &str = "\x15";
/// Ctrl-D.
const LEAVE: &str = "\x04";
/// What is shown last of a turn.
const TURN_OVER: &str = " in all";

/// A conversation.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) terminal: Terminal,
    child: Child,
    /// What stands behind the prompt.
    typed: String,
}

/// Memory of the program itself, in MiB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// The largest resident set so far.
    pub(super) peak: f64,
    /// The resident set.
    pub(super) now: f64,
}

impl Program {
    /// Starts it, and types as soon as there is a prompt; the milliseconds from the start until
    /// what was typed stands behind the prompt.
    pub(super) async fn start(world: &World) -> Outcome<(Self, f64)> {
        let doing = "starting the program";
        let (terminal, theirs) = Terminal::open()?;
        let again = |of: &std::os::fd::OwnedFd| of.try_clone().doing(doing);
        let mut command = world.outrigger()?;
        command.stdin(again(&theirs)?).stdout(again(&theirs)?).stderr(theirs);
        let mut command = Command::from(command);
        command.kill_on_drop(true);
        let begun = Instant::now();
        let child = command.spawn().doing(doing)?;
        // It holds the program's end of the terminal, too.
        drop(command);
        let mut program = Self { terminal, child, typed: String::new() };
        let from = program.terminal.here();
        program.terminal.until(from, PROMPT).await?;
        let (_, shown) = program.key().await?;
        Ok((program, ms(begun, shown)))
    }

    /// Types a letter behind what is written: when, and when it was shown.
    pub(super) async fn key(&mut self) -> Outcome<(Instant, Instant)> {
        if self.typed.len() >= sizes::TYPED_CHARS {
            self.delete()?;
        }
        let letter = char::from(b'a' + u8::try_from(self.typed.len() % 26).unwrap_or_default());
        self.typed.push(letter);
        let from = self.terminal.here();
        let at = self.terminal.press(letter.encode_utf8(&mut [0; 4]))?;
        let shown = self.terminal.until(from, &written(&self.typed)).await?;
        Ok((at, shown))
    }

    /// Types so many letters, one after the other; the milliseconds from each until it is shown.
    pub(super) async fn keys(&mut self, count: usize) -> Outcome<Vec<f64>> {
        let mut took = Vec::new();
        for _ in 0..count {
            let (at, shown) = self.key().await?;
            took.push(ms(at, shown));
            // Nobody types faster.
            tokio::time::sleep(Duration::from_millis(limits::BENCH_KEY_PAUSE_MS)).await;
        }
        Ok(took)
    }

    fn delete(&mut self) -> Outcome<()> {
        self.terminal.press(DELETE)?;
        self.typed.clear();
        Ok(())
    }

    /// Says something: when it was sent, and the place behind which its answer is shown.
    pub(super) async fn say(&mut self, text: &str) -> Outcome<(Instant, Place)> {
        self.delete()?;
        let from = self.terminal.here();
        self.terminal.press(text)?;
        self.terminal.until(from, &written(text)).await?;
        let from = self.terminal.here();
        Ok((self.terminal.press("\r")?, from))
    }

    /// Says something, and waits until the provider is asked: the milliseconds that took, the
    /// bytes of the request, and the place behind which its answer is shown.
    pub(super) async fn ask(
        &mut self,
        text: &str,
        model: &mut FakeModel,
    ) -> Outcome<(f64, usize, Place)> {
        model.forget();
        let (at, from) = self.say(text).await?;
        match model.asked().await {
            Some(asked) => Ok((ms(at, asked.at), asked.body_bytes, from)),
            None => {
                self.terminal.here();
                let shown = self.terminal.shown(from);
                Err(Error::Astray(format!("the provider was never asked\n{shown}")))
            }
        }
    }

    /// Waits until a turn is over that began behind a place; when that was shown.
    pub(super) async fn turn_over(&mut self, from: Place) -> Outcome<Instant> {
        self.terminal.until(from, TURN_OVER).await
    }

    /// Whether a turn is over that began behind a place.
    pub(super) fn is_turn_over(&mut self, from: Place) -> bool {
        self.terminal.here();
        self.terminal.found(from, TURN_OVER).is_some()
    }

    /// What it takes of memory.
    pub(super) fn memory(&self) -> Outcome<Memory> {
        let gone = || Error::Astray("the program has gone".to_owned());
        let path = format!("/proc/{}/status", self.child.id().ok_or_else(gone)?);
        let field = |name| field_kib(&path, name).map(|kib| kib as f64 / 1024.0);
        let missing = || Error::Astray(format!("{path} does not say what memory it takes"));
        Ok(Memory {
            peak: field("VmHWM:").ok_or_else(missing)?,
            now: field("VmRSS:").ok_or_else(missing)?,
        })
    }

    /// Leaves it, and waits until it has ended.
    pub(super) async fn leave(mut self) -> Outcome<()> {
        self.delete()?;
        self.terminal.press(LEAVE)?;
        let ms_max = limits::BENCH_TERMINAL_MS_MAX;
        let ended = tokio::time::timeout(Duration::from_millis(ms_max), self.child.wait()).await;
        let status = ended.map_err(|_| Error::TooLong { ms_max })?.doing("waiting for its end")?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Astray(format!("the program ended with {status}")))
    }
}

/// What a terminal is sent for a text that is being written: a row of it, and no more.
fn written(text: &str) -> String {
    format!("{PROMPT}{text}\r\n")
}

/// Milliseconds from one moment to another.
pub(super) fn ms(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}
