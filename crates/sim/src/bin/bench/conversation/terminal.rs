//! A terminal of a measurement's own: a pseudo-terminal, with what was written to it and when.
//!
//! It is not the controlling terminal of the program, which would take a program between that
//! makes a session (setsid(1)) or `unsafe` code: one that is the three standard streams is read
//! and written in the same way. What a controlling terminal has beyond that are signals of the
//! job and of another size, and no measurement sends one.

use outrigger_sim::limits;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::plain::Plain;
use crate::error::{Error, ErrorContext, Outcome};

pub(super) const COLUMNS: u16 = 80;
pub(super) const ROWS: u16 = 30;
/// What the kernel gives of a pseudo-terminal at a time, and more.
const READ_BYTES: usize = 64 << 10;

/// A piece of text, and when it was read.
type Piece = (Instant, Vec<u8>);

/// A place in what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

/// The end of a pseudo-terminal at which the person sits.
#[derive(Debug)]
pub(super) struct Terminal {
    keys: File,
    pieces: UnboundedReceiver<Piece>,
    text: Vec<u8>,
    /// Where each piece of the text ends, and when it was read.
    read: Vec<(usize, Instant)>,
}

impl Terminal {
    /// Opens one; the other end is for a program.
    pub(super) fn open() -> Outcome<(Self, OwnedFd)> {
        let doing = "opening a pseudo-terminal";
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).doing(doing)?;
        grantpt(&ours).doing(doing)?;
        unlockpt(&ours).doing(doing)?;
        let name = ptsname(&ours, Vec::new()).doing(doing)?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(name, flags, Mode::empty()).doing(doing)?;
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).doing(doing)?;
        let keys = File::from(ours);
        let (screen, answers) = (keys.try_clone().doing(doing)?, keys.try_clone().doing(doing)?);
        let (sender, pieces) = unbounded_channel();
        // It ends when nobody holds the other end any more.
        std::thread::spawn(move || read(screen, answers, &sender));
        Ok((Self { keys, pieces, text: Vec::new(), read: Vec::new() }, theirs))
    }

    /// Presses keys; when that was done.
    pub(super) fn press(&mut self, keys: &str) -> Outcome<Instant> {
        let at = Instant::now();
        self.keys.write_all(keys.as_bytes()).doing("typing")?;
        Ok(at)
    }

    /// The end of what was written so far.
    pub(super) fn here(&mut self) -> Place {
        while let Ok(piece) = self.pieces.try_recv() {
            self.take(piece);
        }
        Place(self.text.len())
    }

    /// Waits until a text was written behind a place; when that was.
    pub(super) async fn until(&mut self, from: Place, wanted: &str) -> Outcome<Instant> {
        let ms_max = limits::BENCH_TERMINAL_MS_MAX;
        let waiting = tokio::time::timeout(Duration::from_millis(ms_max), self.find(from, wanted));
        match waiting.await {
            Ok(found) => found,
            Err(_) => {
                let shown = self.shown(from);
                Err(Error::Astray(format!("in {ms_max} ms never shown: {wanted}\n{shown}")))
            }
        }
    }

    /// The last rows of what was written behind a place.
    pub(super) fn shown(&self, from: Place) -> String {
        let text = String::from_utf8_lossy(&self.text[from.0..]);
        let rows: Vec<&str> = text.lines().collect();
        rows[rows.len().saturating_sub(usize::from(ROWS))..].join("\n")
    }

    async fn find(&mut self, from: Place, wanted: &str) -> Outcome<Instant> {
        let mut looked = from.0;
        loop {
            if let Some(at) = self.found(Place(looked), wanted) {
                return Ok(at);
            }
            looked = self.text.len().saturating_sub(wanted.len()).max(from.0);
            let piece = self.pieces.recv().await;
            let gone = || Error::Astray(format!("the program has gone before this: {wanted}"));
            self.take(piece.ok_or_else(gone)?);
        }
    }

    /// When a text was written behind a place.
    pub(super) fn found(&self, from: Place, wanted: &str) -> Option<Instant> {
        let wanted = wanted.as_bytes();
        let at = self.text[from.0..].windows(wanted.len()).position(|text| text == wanted)?;
        let end = from.0 + at + wanted.len();
        let piece = self.read.partition_point(|(read, _)| *read < end);
        self.read.get(piece).map(|(_, at)| *at)
    }

    fn take(&mut self, (at, text): Piece) {
        self.text.extend(text);
        self.read.push((self.text.len(), at));
    }
}

/// Reads until the other end is closed, which the kernel calls an error (EIO).
fn read(mut screen: File, mut answers: File, sender: &UnboundedSender<Piece>) {
    let mut plain = Plain::default();
    let mut bytes = vec![0; READ_BYTES];
    while let Ok(count @ 1..) = screen.read(&mut bytes) {
        let at = Instant::now();
        let (text, answer) = plain.take(&bytes[..count]);
        let answered = answers.write_all(answer.as_bytes());
        if answered.is_err() || sender.send((at, text)).is_err() {
            return;
        }
    }
}
