//! The end of what a command prints, while it prints it.
//!
//! Owns that any amount of it costs the same: what is not at the end is counted and let go.

use std::collections::VecDeque;

use super::row;
use super::row::Row;
use super::timeline::Tone;
use crate::limits;

/// The end of an output.
#[derive(Debug, Default)]
pub(crate) struct OutputTail {
    /// Whole lines, the newest last.
    lines: VecDeque<String>,
    /// The line that has not ended yet.
    open: Vec<u8>,
    /// Whole lines that there were.
    count: u64,
}

impl OutputTail {
    /// Takes in what came next.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if let Some(skipped) = rest.len().checked_sub(limits::TAIL_BYTES_MAX) {
            let (gone, end) = rest.split_at(skipped);
            let ended = gone.iter().filter(|byte| **byte == b'\n').count() as u64;
            if ended > 0 {
                self.count += ended;
                self.open.clear();
            }
            rest = end;
        }
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..end]);
            let line = self.take_open();
            self.lines.push_back(line);
            if self.lines.len() > limits::TAIL_LINES_MAX {
                self.lines.pop_front();
            }
            self.count += 1;
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = limits::TAIL_LINE_BYTES_MAX.saturating_sub(self.open.len());
        self.open.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn take_open(&mut self) -> String {
        line(&std::mem::take(&mut self.open))
    }

    /// The last rows, each in one row of the terminal.
    pub(crate) fn rows(&self, rows_max: usize, columns: usize) -> Vec<Row> {
        let detail = row::style(Tone::Detail);
        let of = |text: String| Row::new(detail, "  │ ").with(detail, &text).cut(columns);
        self.last(rows_max).map(of).collect()
    }

    /// The last lines.
    pub(crate) fn last(&self, lines_max: usize) -> impl Iterator<Item = String> {
        let open = (!self.open.is_empty()).then(|| line(&self.open));
        let lines = self.lines.len() + usize::from(open.is_some());
        let all = self.lines.iter().cloned().chain(open);
        all.skip(lines.saturating_sub(lines_max))
    }

    /// Lines that there were, with the one that goes on.
    pub(crate) fn lines(&self) -> u64 {
        self.count + u64::from(!self.open.is_empty())
    }
}

/// A line as a terminal would show it that returns its carriage: what was written over is gone.
fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\r');
    text.rsplit('\r').next().unwrap_or_default().replace('\t', "    ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::row::Paint;

    fn shown(tail: &OutputTail) -> Vec<String> {
        tail.rows(3, 12).iter().map(|row| row.painted(Paint::Plain)).collect()
    }

    #[test]
    fn the_end_is_shown_in_whatever_pieces_it_comes() {
        let mut tail = OutputTail::default();
        for piece in ["one\ntw", "o\n", "10 %\r50 %\r", "99 %", "\r\nlong", " and longer\x1b[H"] {
            tail.push(piece.as_bytes());
        }
        assert_eq!(shown(&tail), ["  │ two", "  │ 99 %", "  │ long an…"]);
        assert_eq!(tail.lines(), 4);
    }

    #[test]
    fn what_is_not_at_the_end_is_only_counted() {
        let mut tail = OutputTail::default();
        tail.push("0123456789abcdef\n".repeat(300_000).as_bytes());
        tail.push(b"last");
        assert_eq!(tail.lines(), 300_001);
        assert_eq!(shown(&tail)[2], "  │ last");
        assert!(tail.lines.len() <= limits::TAIL_LINES_MAX);
    }
}
