//! What people and programs see of a session while it runs and afterwards.

mod inert;
mod timeline;

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use outrigger_agent::Record;
use outrigger_engine::LiveOutput;
use serde_json::json;
use std::io::Write;

pub(crate) use inert::inert;
pub(crate) use timeline::{Line, Timeline, Tone, answer};

use crate::cli::{Json, Output};
use crate::exit::Failure;
use crate::limits;

/// Where steps are shown: on standard error for people, on standard output for programs.
#[derive(Debug)]
pub(crate) struct Screen {
    output: Output,
    timeline: Timeline,
}

impl Screen {
    pub(crate) fn new(output: Output) -> Self {
        Self { output, timeline: Timeline::default() }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.output.json.is_some()
    }

    /// An event became durable.
    pub(crate) fn event(&mut self, record: &Record) {
        let lines = self.timeline.lines(record);
        match self.output.json {
            Some(Json::Events) => line(&json!({ "type": "event", "record": record })),
            Some(Json::Object) => {}
            None if self.output.quiet => {}
            None => lines.iter().for_each(print),
        }
    }

    /// Something is under way.
    pub(crate) fn live(&mut self, live: &LiveOutput) {
        if let (LiveOutput::Retrying { wait_ms, reason }, None) = (live, self.output.json) {
            let text = format!("{}; asking again in {:.1} s", inert(reason), seconds(*wait_ms));
            print(&Line::new(Tone::Warning, text));
        }
    }

    /// A line that is no event.
    pub(crate) fn note(&self, tone: Tone, text: impl Into<String>) {
        if self.output.json.is_none() && !self.output.quiet {
            print(&Line::new(tone, text.into()));
        }
    }

    /// The patch, coloured, up to a limit.
    pub(crate) fn diff(&self, patch: &str) {
        if self.output.json.is_some() || self.output.quiet {
            return;
        }
        let lines: Vec<&str> = patch.lines().collect();
        for text in lines.iter().take(limits::DIFF_LINES_MAX) {
            let tone = match text.as_bytes().first() {
                Some(b'+') => Tone::Added,
                Some(b'-') => Tone::Removed,
                Some(b'@') => Tone::Detail,
                _ => Tone::Plain,
            };
            print(&Line::new(tone, inert(text)));
        }
        if let Some(more) = lines.len().checked_sub(limits::DIFF_LINES_MAX).filter(|more| *more > 0) {
            print(&Line::new(Tone::Detail, format!("[{more} more lines in the patch]")));
        }
    }

    /// The end: the answer alone on standard output, or one JSON object.
    pub(crate) fn result(&self, answer: &str, object: &serde_json::Value) {
        match self.output.json {
            Some(_) => line(object),
            None => out(&inert(answer)),
        }
    }
}

/// An error: for people on standard error, for programs as an object as well.
pub(crate) fn failure(failure: &Failure, json: bool) {
    print(&Line::new(Tone::Error, format!("error: {}", inert(&failure.message))));
    for hint in &failure.hints {
        print(&Line::new(Tone::Detail, format!("hint: {}", inert(hint))));
    }
    if json {
        let (code, exit) = (failure.kind, failure.kind as u8);
        line(&json!({
            "type": "error",
            "error": { "code": code, "exit_code": exit, "message": failure.message, "hints": failure.hints },
        }));
    }
}

/// One JSON value as a line of standard output.
pub(crate) fn line(value: &serde_json::Value) {
    out(&value.to_string());
}

/// A line of standard output. A reader that has gone is no error of ours.
pub(crate) fn out(text: &str) {
    let mut stdout = AutoStream::auto(std::io::stdout());
    drop(writeln!(stdout, "{text}").and_then(|()| stdout.flush()));
}

fn print(line: &Line) {
    let style = style(line.tone);
    let mut stderr = AutoStream::auto(std::io::stderr());
    drop(writeln!(stderr, "{style}{}{style:#}", line.text));
}

pub(crate) fn seconds(ms: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a duration for people")]
    let seconds = ms as f64 / 1_000.0;
    seconds
}

fn style(tone: Tone) -> Style {
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
