//! The rows at the bottom of a terminal that are drawn again and again, below what stays.
//!
//! Owns where the cursor stands in them, also after the terminal was made narrower. Knows no
//! stream: it says what a terminal is to be sent. Uses ECMA-48's CUU, CUF, EL and ED alone, which
//! every terminal has that is not dumb.

use super::row::{Paint, Row};

/// The rows as they were drawn last.
#[derive(Debug, Default)]
pub(crate) struct Region {
    /// The width of each.
    widths: Vec<usize>,
    /// The row in which the cursor was left, and its column.
    cursor: (usize, usize),
}

impl Region {
    /// Whether nothing is drawn.
    pub(crate) fn is_empty(&self) -> bool {
        self.widths.is_empty()
    }

    /// Takes the rows away. The cursor then stands where the first one began.
    pub(crate) fn erased(&mut self, columns: usize) -> String {
        let text = match self.above(columns) {
            _ if self.widths.is_empty() => String::new(),
            0 if self.widths.len() == 1 => "\r\x1b[K".to_owned(),
            0 => "\r\x1b[J".to_owned(),
            up => format!("\r\x1b[{up}A\x1b[J"),
        };
        self.widths.clear();
        self.cursor = (0, 0);
        text
    }

    /// Draws these rows in the place of those of before, each cut to the width. The cursor is left at a place in them, or behind the last.
    pub(crate) fn drawn(
        &mut self,
        rows: &[Row],
        cursor: Option<(usize, usize)>,
        columns: usize,
        paint: Paint,
    ) -> String {
        // Of another size than they were made for, they would be broken.
        let room = columns.saturating_sub(1);
        let rows: Vec<Row> = rows.iter().map(|row| row.cut(room)).collect();
        let cursor = cursor.map(|(row, column)| (row, column.min(room)));
        let mut text = String::from("\r");
        let up = self.above(columns);
        if up > 0 {
            text.push_str(&format!("\x1b[{up}A"));
        }
        let reflowed = self.widths.iter().any(|width| *width > columns);
        if reflowed {
            text.push_str("\x1b[J");
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                text.push_str("\r\n");
            }
            text.push_str(&row.painted(paint));
            text.push_str("\x1b[K");
        }
        if rows.len() < self.widths.len() {
            text.push_str("\x1b[J");
        }
        self.widths = rows.iter().map(Row::width).collect();
        let last = rows.len().saturating_sub(1);
        let end = (last, self.widths.last().copied().unwrap_or(0));
        self.cursor = end;
        if let Some((row, column)) = cursor.filter(|(row, _)| *row <= last) {
            if last > row {
                text.push_str(&format!("\x1b[{}A", last - row));
            }
            text.push('\r');
            if column > 0 {
                text.push_str(&format!("\x1b[{column}C"));
            }
            self.cursor = (row, column);
        }
        text
    }

    /// How many rows of the terminal the cursor stands below the first one. What was drawn
    /// wider than the terminal is now was broken by it.
    fn above(&self, columns: usize) -> usize {
        let columns = columns.max(1);
        let (row, column) = self.cursor;
        let before = self.widths.iter().take(row);
        let broken: usize = before.map(|width| width.saturating_sub(1) / columns).sum();
        row + broken + column.saturating_sub(1) / columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn rows_take_the_place_of_rows_wherever_the_cursor_stood() {
        let mut region = Region::default();
        let rows = |texts: &[&str]| texts.iter().map(|text| Row::plain(text)).collect::<Vec<_>>();
        let mut sent = vec![region.drawn(&rows(&["one"]), None, 80, Paint::Plain)];
        sent.push(region.drawn(&rows(&["one", "two", "three"]), Some((1, 2)), 80, Paint::Plain));
        sent.push(region.drawn(&rows(&["1", "2"]), None, 80, Paint::Plain));
        sent.push(region.erased(80));
        sent.push(region.erased(80));
        expect![[r#"
            [
                "\rone\u{1b}[K",
                "\rone\u{1b}[K\r\ntwo\u{1b}[K\r\nthree\u{1b}[K\u{1b}[1A\r\u{1b}[2C",
                "\r\u{1b}[1A1\u{1b}[K\r\n2\u{1b}[K\u{1b}[J",
                "\r\u{1b}[1A\u{1b}[J",
                "",
            ]
        "#]]
        .assert_debug_eq(&sent);
    }

    #[test]
    fn a_terminal_that_got_narrower_has_broken_the_rows() {
        let mut region = Region::default();
        let wide = Row::plain(&"x".repeat(70));
        drop(region.drawn(&[wide.clone(), wide], None, 80, Paint::Plain));
        // Two rows of 70 are four of 40, and the cursor stands in the last.
        assert_eq!(region.erased(40), "\r\u{1b}[3A\u{1b}[J");
    }
}
