//! The text of a model as it arrives: what is certain goes into the scrollback, the rest is
//! drawn again.
//!
//! Owns which rows were given out, so that none comes twice and none is missed, also where
//! pieces were.

use super::markdown;
use super::row::Row;
use crate::limits;

/// The text of one reply.
#[derive(Debug, Default)]
pub(crate) struct TextStream {
    text: String,
    /// Up to where the blocks were given out whole.
    closed: usize,
    /// Rows of the block after them that were given out.
    given: usize,
    /// Whether anything was given out at all.
    begun: bool,
    /// Rows that may still change.
    open: Vec<Row>,
}

impl TextStream {
    /// More of it.
    pub(crate) fn push(&mut self, delta: &str) {
        self.text.push_str(delta);
    }

    /// All of it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The rows that have become certain. At most so many others stay open.
    pub(crate) fn advance(&mut self, columns: usize, open_max: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let rest = &self.text[self.closed..];
        // A line that has not ended may still be of the block above it: a table's next row
        // begins like a paragraph.
        let ended = rest.rfind('\n').map_or(0, |at| at + 1);
        let is_apart = rest[..ended].ends_with("\n\n");
        let blocks = markdown::blocks(rest);
        let certain = blocks.iter().rev().find(|block| block.start < ended || is_apart);
        let mut last = certain.map_or(0, |block| block.start);
        if rest.len() - last > limits::OPEN_TEXT_BYTES_MAX {
            last = rest.len();
        }
        if last > 0 {
            let end = self.closed + last;
            self.close(end, columns, &mut rows);
        }
        let open = markdown::rows(&self.text[self.closed..], columns);
        let certain = open.len().saturating_sub(open_max).max(self.given.min(open.len()));
        if certain > self.given {
            self.begin_block(&mut rows);
            rows.extend_from_slice(&open[self.given..certain]);
            self.given = certain;
        }
        self.open = open[self.given.min(open.len())..].to_vec();
        if self.given == 0 && self.begun && !self.open.is_empty() {
            self.open.insert(0, Row::default());
        }
        rows
    }

    /// The rows that may still change.
    pub(crate) fn open(&self) -> &[Row] {
        &self.open
    }

    /// The rows that are left, now that all of the text is known. Pieces may have been missed.
    pub(crate) fn finish(mut self, whole: &str, columns: usize) -> Vec<Row> {
        let common = self.text.bytes().zip(whole.bytes()).take_while(|(a, b)| a == b).count();
        let mut rows = Vec::new();
        if common < self.closed || (common < self.text.len() && self.given > 0) {
            // What was shown is not how it begins: all of it once more, to be whole.
            self = Self { begun: self.begun, ..Self::default() };
        }
        self.text = whole.to_owned();
        let end = self.text.len();
        self.close(end, columns, &mut rows);
        rows
    }

    /// Gives out everything up to a place at which a block ends.
    fn close(&mut self, end: usize, columns: usize, rows: &mut Vec<Row>) {
        let all = markdown::rows(&self.text[self.closed..end], columns);
        let left = all.get(self.given..).unwrap_or_default();
        if !left.is_empty() {
            self.begin_block(rows);
            rows.extend_from_slice(left);
        }
        (self.closed, self.given) = (end, 0);
        self.open.clear();
    }

    /// Between two blocks stands an empty row.
    fn begin_block(&mut self, rows: &mut Vec<Row>) {
        if self.given == 0 && self.begun {
            rows.push(Row::default());
        }
        self.begun = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::row::Paint;
    use expect_test::expect;

    fn lines(rows: &[Row]) -> Vec<String> {
        rows.iter().map(|row| row.painted(Paint::Plain)).collect()
    }

    const TEXT: &str = "First *words* of it\nall.\n\n- one\n- two\n\n```\na\nb\nc\nd\n```\n| f | g |\n|---|---|\n| h | i |\n\nEnd.";

    #[test]
    fn in_whatever_pieces_it_comes_it_is_the_same_in_the_end() {
        let whole = lines(&TextStream::default().finish(TEXT, 12));
        for size in [1, 2, 3, 7, 100] {
            let (mut stream, mut got) = (TextStream::default(), Vec::new());
            for piece in TEXT.as_bytes().chunks(size) {
                stream.push(std::str::from_utf8(piece).unwrap());
                got.extend(stream.advance(12, 2));
            }
            got.extend(stream.finish(TEXT, 12));
            assert_eq!(lines(&got), whole, "{size}");
        }
        expect![[r#"
            [
                "First words",
                "of it all.",
                "",
                "- one",
                "- two",
                "",
                "  a",
                "  b",
                "  c",
                "  d",
                "",
                "f  g",
                "─  ─",
                "h  i",
                "",
                "End.",
            ]
        "#]]
        .assert_debug_eq(&whole);
    }

    #[test]
    fn what_may_change_is_kept_back_and_what_was_missed_comes() {
        let mut stream = TextStream::default();
        stream.push("One.\n\nTwo **bo");
        assert_eq!(lines(&stream.advance(20, 4)), ["One."]);
        assert_eq!(lines(stream.open()), ["", "Two **bo"]);
        // The piece `ld** and` was missed.
        stream.push(" more");
        drop(stream.advance(20, 4));
        let rest = stream.finish("One.\n\nTwo **bold** and more", 20);
        assert_eq!(lines(&rest), ["", "Two bold and more"]);
    }
}
