//! Markdown as rows of a terminal.
//!
//! Owns how it looks; what it means is pulldown-cmark's. All text goes into rows by
//! [`Row::push`], so that an entity that stands for a control character does nothing either.

mod table;

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::ops::Range;

use super::row::{self, Row};
use table::Table;

fn parser(source: &str) -> Parser<'_> {
    Parser::new_ext(
        source,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS,
    )
}

/// Where the blocks of a text stand in it: paragraphs, lists, tables and their like.
pub(crate) fn blocks(source: &str) -> Vec<Range<usize>> {
    let (mut blocks, mut depth) = (Vec::new(), 0_usize);
    for (event, range) in parser(source).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    blocks.push(range);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => blocks.push(range),
            _ => {}
        }
    }
    blocks
}

/// The rows of a text. Only those of code can be wider than so many columns.
pub(crate) fn rows(source: &str, columns: usize) -> Vec<Row> {
    let mut renderer = Renderer { columns, ..Renderer::default() };
    parser(source).for_each(|event| renderer.event(event));
    renderer.flush();
    renderer.rows
}

/// What stands before the rows of a quote or of an item of a list.
#[derive(Debug)]
struct Indent {
    /// Before the first row, until it was written.
    marker: Option<String>,
    /// Before all others.
    rest: &'static str,
    width: usize,
}

#[derive(Debug, Default)]
struct Renderer {
    columns: usize,
    rows: Vec<Row>,
    /// Inline text that has not ended.
    open: Row,
    styles: Vec<Style>,
    indents: Vec<Indent>,
    /// The number of the next item of each list that is open, if it has numbers.
    lists: Vec<Option<u64>>,
    code: Option<String>,
    table: Option<Table>,
    /// Where the links that are open lead, and how much text there was before.
    links: Vec<(String, String)>,
}

impl Renderer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                let style = self.style().fg_color(code().get_fg_color());
                self.inline(style, &text);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak if self.table.is_none() => self.flush(),
            Event::HardBreak => self.text(" "),
            Event::Rule => {
                self.gap();
                self.open.push(dim(), &"─".repeat(self.columns.min(40)));
                self.flush();
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                let bold = self.style().bold();
                let style = if level == HeadingLevel::H1 { bold.underline() } else { bold };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.gap();
                self.indents.push(Indent { marker: None, rest: "│ ", width: 2 });
            }
            Tag::CodeBlock(kind) => {
                self.gap();
                if let CodeBlockKind::Fenced(language) = &kind
                    && !language.is_empty()
                {
                    self.open.push(dim(), language);
                    self.flush();
                }
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.gap();
                }
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Table(_) => {
                self.gap();
                self.table = Some(Table::default());
            }
            Tag::Emphasis => self.styles.push(self.style().italic()),
            Tag::Strong => self.styles.push(self.style().bold()),
            Tag::Strikethrough => self.styles.push(self.style().strikethrough()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), String::new()));
                self.styles.push(self.style().underline());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.flush();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.indents.pop();
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                for line in code.lines() {
                    let mut row = self.prefix();
                    row.push(self::code(), &format!("  {}", line.replace('\t', "    ")));
                    self.rows.push(row);
                }
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush();
                self.indents.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.open);
                self.table.iter_mut().for_each(|table| table.cell(cell.clone()));
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                self.table.iter_mut().for_each(Table::end_row);
            }
            TagEnd::Table => {
                for row in self.table.take().unwrap_or_default().rows(self.room()) {
                    self.put(row);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some((to, text)) = self.links.pop().filter(|(to, text)| to != text) {
                    let shown = if text.is_empty() { to } else { format!(" ({to})") };
                    self.open.push(dim(), &shown);
                }
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        self.flush();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            Some(None) | None => "- ".to_owned(),
        };
        let width = row::width(&marker);
        self.indents.push(Indent { marker: Some(marker), rest: "", width });
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => self.inline(self.style(), text),
        }
    }

    fn inline(&mut self, style: Style, text: &str) {
        if let Some((_, said)) = self.links.last_mut() {
            said.push_str(text);
        }
        self.open.push(style, &text.replace('\t', " "));
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// An empty row before a block, where another one stands above it.
    fn gap(&mut self) {
        self.flush();
        let marked = self.indents.last().is_some_and(|indent| indent.marker.is_some());
        if !marked && self.rows.last().is_some_and(|row| !row.is_empty()) {
            let quoted = self.prefix();
            self.rows.push(if self.indents.is_empty() { Row::default() } else { quoted });
        }
    }

    /// Ends the inline text.
    fn flush(&mut self) {
        if !self.open.is_empty() {
            let row = std::mem::take(&mut self.open);
            row.wrapped(self.room()).into_iter().for_each(|row| self.put(row));
        }
    }

    fn room(&self) -> usize {
        let taken: usize = self.indents.iter().map(|indent| indent.width).sum();
        self.columns.saturating_sub(taken)
    }

    fn put(&mut self, row: Row) {
        let mut whole = self.prefix();
        whole.extend(row);
        self.rows.push(whole);
    }

    /// What stands before the next row.
    fn prefix(&mut self) -> Row {
        let mut row = Row::default();
        for indent in &mut self.indents {
            match indent.marker.take() {
                Some(marker) => row.push(dim(), &marker),
                None => {
                    let width = indent.width;
                    row.push(dim(), &format!("{:<width$}", indent.rest));
                }
            }
        }
        row
    }
}

fn code() -> Style {
    Style::new().fg_color(Some(AnsiColor::Cyan.into()))
}

fn dim() -> Style {
    Style::new().dimmed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::row::Paint;
    use expect_test::{Expect, expect};

    fn check(source: &str, columns: usize, expected: &Expect) {
        let lines = rows(source, columns);
        let lines = lines.iter().map(|row| row.painted(Paint::Plain).trim_end().to_owned() + "\n");
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn what_models_write_is_read_at_a_glance() {
        let source = "# Rounding\nBoth *failures* are **half a cent** off: `int` cuts towards zero.\n\n1. Look at [the report](lib/report.awk).\n2. Run it:\n   - once\n   - twice, and then a third time to be sure\n\n> Quoted\n> text.\n\n```awk\nreturn amount < 0 ? -int(0.5 - amount) : int(amount + 0.5)\n\nx\n```\n- [x] done\n\n| file | what |\n|---|---|\n| a.awk | **changed** |\n| longer.awk | new |\n\n---\nEnd &#27;[2J <b>html</b>";
        check(
            source,
            40,
            &expect![[r#"
                Rounding

                Both failures are half a cent off: int
                cuts towards zero.

                1. Look at the report (lib/report.awk).
                2. Run it:
                   - once
                   - twice, and then a third time to be
                     sure

                │ Quoted text.

                awk
                  return amount < 0 ? -int(0.5 - amount) : int(amount + 0.5)

                  x

                - [x] done

                file        what
                ──────────  ───────
                a.awk       changed
                longer.awk  new

                ────────────────────────────────────────

                End �[2J <b>html</b>
            "#]],
        );
    }

    #[test]
    fn blocks_stand_apart() {
        let source = "one\ntwo\n\n- a\n- b\n\n```\ncode\n\nmore\n```\nlast";
        let blocks: Vec<_> = blocks(source).into_iter().map(|range| &source[range]).collect();
        expect![[r#"
            [
                "one\ntwo\n",
                "- a\n- b\n\n",
                "```\ncode\n\nmore\n```",
                "last",
            ]
        "#]]
        .assert_debug_eq(&blocks);
    }

    #[test]
    fn colours_mark_what_is_meant() {
        let painted = rows("**a** `b`", 20)[0].painted(Paint::Styled);
        expect!["\u{1b}[1ma\u{1b}[0m \u{1b}[36mb\u{1b}[0m"].assert_eq(&painted);
    }
}
