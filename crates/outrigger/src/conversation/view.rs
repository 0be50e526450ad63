//! The rows at the bottom of the terminal: what is under way, what is asked, what is written.

use anstyle::Style;

use super::Conversation;
use super::asked::Expects;
use super::exchange::Phase;
use crate::limits;
use crate::network::HostChoice;
use crate::show::row::{Paint, Row, style};
use crate::show::{Tone, count};

/// What is drawn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) rows: Vec<Row>,
    /// The row and the column of the cursor.
    pub(crate) cursor: (usize, usize),
}

impl Conversation {
    /// The rows, as many as fit.
    pub(crate) fn view(&self) -> View {
        let columns = self.size.room().columns;
        let rows_max = self.size.rows.saturating_sub(1).max(3);
        let mut below: Vec<Row> = Vec::new();
        below.extend(self.under_way());
        below.extend(self.question());
        for text in &self.queue {
            let text = text.lines().next().unwrap_or_default();
            below.push(Row::new(detail(), &format!("  then: {text}")));
        }
        let editor = self.editor.view(columns, limits::EDITOR_ROWS.min(rows_max / 2).max(1));
        let (row, column) = editor.cursor;
        let at = below.len() + row;
        below.extend(editor.rows);
        below.extend(self.menu());
        below.push(self.last_row());
        let open = self.transcript.open();
        let room = rows_max.saturating_sub(below.len());
        let skipped = open.len().saturating_sub(room);
        let open = &open[skipped..];
        let cut = (open.len() + below.len()).saturating_sub(rows_max);
        let rows = open.iter().chain(&below).skip(cut).map(|row| row.cut(columns));
        View { rows: rows.collect(), cursor: ((open.len() + at).saturating_sub(cut), column) }
    }

    /// What stands before the next line that is typed, where nothing can be drawn again.
    pub(crate) fn prompt(&self) -> String {
        let question = self.question();
        if let Some(away) = &self.away {
            return format!("! {away}\n");
        }
        match (&self.phase, &question[..]) {
            (_, [.., choices]) => format!("{}\n› ", choices.painted(Paint::Plain)),
            (Phase::Idle, []) => "› ".to_owned(),
            _ => String::new(),
        }
    }

    fn under_way(&self) -> Option<Row> {
        let (what, since_ms) = match (&self.phase, self.transcript.waiting(), self.step) {
            (Phase::Idle, _, _) => return None,
            (Phase::Busy { what, since_ms }, _, _) => (what.clone(), *since_ms),
            (Phase::Working { .. }, Some((_, what)), Some((_, since_ms))) => (what, since_ms),
            (Phase::Working { since_ms }, _, _) => ("working".to_owned(), *since_ms),
        };
        let seconds = self.now_ms.saturating_sub(since_ms) / 1_000;
        let stops = if self.is_working() { " · Esc stops it" } else { "" };
        let end = format!(" · {seconds} s{stops}");
        let room = self.size.room().columns.saturating_sub(end.chars().count());
        let begin = Row::new(style(Tone::Step), &format!("… {what}")).cut(room);
        Some(begin.with(detail(), &end))
    }

    fn question(&self) -> Vec<Row> {
        let Some(asked) = self.open_question() else { return self.host() };
        let strong = style(Tone::Warning);
        let title = Row::new(strong, &format!("? {}", asked.question.title()));
        let text = match asked.expects {
            Expects::Choice => asked.question.choices(),
            Expects::Reason => {
                "no; why? The model is told. Enter for no reason, Esc goes back".to_owned()
            }
            Expects::Instead => {
                "what is to be done instead? Enter sends it, Esc goes back".to_owned()
            }
        };
        let mut rows = vec![title, Row::new(Style::new().bold(), &format!("  {text}"))];
        if let Some(more @ 1..) = self.asked.len().checked_sub(1) {
            rows.push(Row::new(
                detail(),
                &format!("  and {} after it", count(more as u64, "more question")),
            ));
        }
        rows
    }

    fn host(&self) -> Vec<Row> {
        let Some(asked) = self.open_host() else { return Vec::new() };
        let text = HostChoice::shown(&asked.question);
        let title = Row::new(style(Tone::Warning), &format!("? {}", asked.title));
        vec![title, Row::new(Style::new().bold(), &format!("  {text}"))]
    }

    fn menu(&self) -> Vec<Row> {
        let Some(completion) = &self.completion else { return Vec::new() };
        let width =
            completion.offers.iter().map(|(text, _)| text.chars().count()).max().unwrap_or(0);
        let row = |(index, (text, what)): (usize, &(String, String))| {
            let chosen = index == completion.chosen;
            let style = if chosen { style(Tone::Step) } else { detail() };
            let mark = if chosen { "  ▸ " } else { "    " };
            Row::new(style, &format!("{mark}{text:<width$}  {what}"))
        };
        completion.offers.iter().enumerate().map(row).collect()
    }

    fn last_row(&self) -> Row {
        let leaving = self.leaving_until_ms.is_some_and(|until| self.now_ms < until);
        let text = if leaving {
            "  Ctrl-C again leaves; the session stays".to_owned()
        } else if let Some(away) = &self.away {
            return Row::new(style(Tone::Warning), &format!("  ! {away}"));
        } else if self.is_answer() {
            "  Enter answers".to_owned()
        } else if self.editor.is_empty() && self.is_asked() {
            "  a letter and Enter answer".to_owned()
        } else if self.is_working() && !self.editor.is_empty() {
            "  Enter says it now · Tab says it after the turn · Esc stops the step".to_owned()
        } else {
            format!("  {}", self.footer)
        };
        Row::new(detail(), &text)
    }
}

fn detail() -> Style {
    style(Tone::Detail)
}
