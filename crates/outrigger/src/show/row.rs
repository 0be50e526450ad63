//! Rows of a terminal: text in styles, as wide as it is drawn.
//!
//! Owns that nothing reaches a row but through [`inert`], and how a row is broken where a
//! terminal is narrower. Must never hold a line break.

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthChar;

use super::inert;
use super::timeline::{Line, Tone};
use crate::limits;

/// Text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    style: Style,
    text: String,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Row {
    spans: Vec<Span>,
    /// Columns that stand before what of it goes on in a further row.
    hang: usize,
    /// Whether nobody copies it as it is, so that it may be broken between words.
    is_prose: bool,
}

/// Whether what is drawn has colours and weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Styled,
    Plain,
}

impl Row {
    /// A row of one style.
    pub(crate) fn new(style: Style, text: &str) -> Self {
        Self::default().with(style, text)
    }

    /// A row without a style.
    pub(crate) fn plain(text: &str) -> Self {
        Self::new(Style::new(), text)
    }

    /// A line of a session, one row for each line of its text.
    pub(crate) fn of(line: &Line) -> Self {
        let text = line.text.trim_start();
        let indent = line.text.len() - text.len();
        Self::new(style(line.tone), &line.text).hanging(indent + 2)
    }

    /// A row of what is said beside a session, made harmless.
    pub(crate) fn note(tone: Tone, text: &str) -> Self {
        Self { is_prose: true, ..Self::of(&Line::new(tone, inert(text))) }
    }

    /// As it stands on a terminal: prose is broken between words, and all else by the terminal.
    pub(crate) fn settled(&self, columns: usize) -> Vec<Self> {
        if self.is_prose { self.wrapped(columns) } else { vec![self.clone()] }
    }

    /// The row, and more of it.
    pub(crate) fn with(mut self, style: Style, text: &str) -> Self {
        self.push(style, text);
        self
    }

    /// What goes on in a further row stands so far in.
    pub(crate) fn hanging(mut self, hang: usize) -> Self {
        self.hang = hang;
        self
    }

    /// Appends text, made harmless.
    pub(crate) fn push(&mut self, style: Style, text: &str) {
        let text = inert(text).replace('\n', " ");
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.spans.push(Span { style, text }),
        }
    }

    /// Appends what another row has.
    pub(crate) fn extend(&mut self, other: Self) {
        self.spans.extend(other.spans);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.iter().all(|span| span.text.is_empty())
    }

    /// Columns that it takes.
    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    /// What a terminal is sent for it.
    pub(crate) fn painted(&self, paint: Paint) -> String {
        let mut text = String::new();
        for span in &self.spans {
            let style = span.style;
            match paint {
                Paint::Styled => text.push_str(&format!("{style}{}{style:#}", span.text)),
                Paint::Plain => text.push_str(&span.text),
            }
        }
        text
    }

    /// The beginning of it, with a mark if that is not all.
    pub(crate) fn cut(&self, columns: usize) -> Self {
        if self.width() <= columns {
            return self.clone();
        }
        let chars = self.chars();
        let end = fitting(&chars, columns.saturating_sub(1));
        let mut row = of_chars(&chars[..end]);
        row.spans.push(Span { style: Style::new().dimmed(), text: "…".to_owned() });
        row
    }

    /// Broken into rows that fit, between words where there are any.
    pub(crate) fn wrapped(&self, columns: usize) -> Vec<Self> {
        let columns = columns.max(limits::COLUMNS_MIN);
        if self.width() <= columns {
            return vec![self.clone()];
        }
        let chars = self.chars();
        let hang = self.hang.min(columns / 2);
        let (mut rows, mut at) = (Vec::new(), 0);
        while at < chars.len() {
            let room = if rows.is_empty() { columns } else { columns - hang };
            let rest = &chars[at..];
            let fits = fitting(rest, room).max(1);
            let space = rest[..fits].iter().rposition(|(char, _)| *char == ' ');
            let (end, next) = if fits == rest.len() {
                (fits, fits)
            } else if rest[fits].0 == ' ' {
                (fits, fits + 1)
            } else {
                // A space within the indentation is no place between words.
                let begun = rest.iter().position(|(char, _)| *char != ' ').unwrap_or(0);
                match space.filter(|space| *space > begun) {
                    Some(space) => (space, space + 1),
                    None => (fits, fits),
                }
            };
            let mut row = Self::default();
            if !rows.is_empty() && hang > 0 {
                row.push(Style::new(), &" ".repeat(hang));
            }
            row.extend(of_chars(&rest[..end]));
            rows.push(row);
            at += next;
        }
        rows
    }

    fn chars(&self) -> Vec<(char, Style)> {
        let spans = self.spans.iter();
        spans.flat_map(|span| span.text.chars().map(|char| (char, span.style))).collect()
    }
}

/// How many of them fit. What takes no column belongs to what stands before it.
fn fitting(chars: &[(char, Style)], columns: usize) -> usize {
    let mut taken = 0;
    let over = chars.iter().position(|(char, _)| {
        taken += columns_of(*char);
        taken > columns
    });
    over.unwrap_or(chars.len())
}

fn of_chars(chars: &[(char, Style)]) -> Row {
    let mut row = Row::default();
    for (char, style) in chars {
        match row.spans.last_mut() {
            Some(last) if last.style == *style => last.text.push(*char),
            _ => row.spans.push(Span { style: *style, text: char.to_string() }),
        }
    }
    row
}

/// Columns of a text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Columns of a character; of a tab, as many as it can take.
pub(crate) fn columns_of(char: char) -> usize {
    if char == '\t' { 8 } else { char.width().unwrap_or(0) }
}

/// How a line of that kind looks.
pub(crate) fn style(tone: Tone) -> Style {
    let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => Style::new().bold(),
        Tone::Detail => Style::new().dimmed(),
        Tone::Good | Tone::Added => color(AnsiColor::Green),
        Tone::Removed => color(AnsiColor::Red),
        Tone::Warning => color(AnsiColor::Yellow),
        Tone::Error => color(AnsiColor::Red).bold(),
        Tone::Step => color(AnsiColor::Cyan),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(row: &Row, columns: usize, expected: &Expect) {
        let rows = row.wrapped(columns);
        assert!(rows.iter().all(|row| row.width() <= columns), "{rows:?}");
        let lines = rows.iter().map(|row| row.painted(Paint::Plain) + "\n");
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn rows_are_broken_between_words_and_hang() {
        let row = Row::plain("- one two three four-and-a-half five").hanging(2);
        check(
            &row,
            16,
            &expect![[r#"
            - one two three
              four-and-a-hal
              f five
        "#]],
        );
        check(
            &Row::plain("日本語のテキスト"),
            11,
            &expect![[r#"
            日本語のテ
            キスト
        "#]],
        );
    }

    #[test]
    fn a_style_goes_on_in_the_next_row_and_nothing_acts() {
        let bold = Style::new().bold();
        let row = Row::plain("a ").with(bold, "bold\x1b[2J text that goes on");
        let painted: Vec<_> =
            row.wrapped(14).iter().map(|row| row.painted(Paint::Styled)).collect();
        expect![[r#"
            [
                "a \u{1b}[1mbold�[2J\u{1b}[0m",
                "\u{1b}[1mtext that goes\u{1b}[0m",
                "\u{1b}[1mon\u{1b}[0m",
            ]
        "#]]
        .assert_debug_eq(&painted);
        assert_eq!(row.cut(6).painted(Paint::Plain), "a bol…");
    }
}
