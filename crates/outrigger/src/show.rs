//! What people and programs see of a session while it runs and afterwards.

pub(crate) mod amounts;
mod arguments;
mod inert;
mod markdown;
mod output_tail;
mod patch;
mod picture;
mod question;
pub(crate) mod region;
pub(crate) mod row;
mod status;
mod text_stream;
mod timeline;
mod totals;
mod transcript;
mod typed_lines;

use anstream::AutoStream;
use outrigger_agent::{Record, Seq, SessionId};
use outrigger_engine::{LiveOutput, Warning};
use outrigger_sandbox::End;
use serde_json::json;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tokio::sync::Mutex;

pub(crate) use amounts::{count, when};
pub(crate) use arguments::{arguments, file_text};
pub(crate) use inert::{escaped, inert, word};
pub(crate) use output_tail::OutputTail;
pub(crate) use picture::picture;
pub(crate) use status::{Status, is_dumb};
pub(crate) use timeline::{Line, Tone};
pub(crate) use totals::Totals;
pub(crate) use transcript::{Room, Transcript, retrying};
pub(crate) use typed_lines::Lines;

use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Json, Output};
use crate::limits;
use row::{Paint, Row};

/// Where steps are shown: on standard error for people, on standard output for programs.
#[derive(Debug)]
pub(crate) struct Screen {
    output: Output,
    /// Lines for people go there.
    stream: Stream,
    transcript: Transcript,
    status: Status,
    /// What whoever sits at the terminal types.
    lines: Mutex<Lines>,
}

/// Where lines for people go.
#[derive(Debug)]
enum Stream {
    Stderr,
    Stdout,
    /// They are kept, for who shows them.
    Kept(RefCell<Vec<Row>>),
}

impl Screen {
    pub(crate) fn new(output: Output) -> Self {
        let wanted = output.json.is_none() && !output.quiet;
        let status = Status::new(wanted);
        let transcript = match wanted && std::io::stderr().is_terminal() {
            true => Transcript::live_in(status.room()),
            false => Transcript::default(),
        };
        let lines = Mutex::default();
        Self { output, stream: Stream::Stderr, transcript, status, lines }
    }

    /// One whose lines are themselves what was asked for.
    pub(crate) fn on_stdout(output: Output) -> Self {
        let transcript = Transcript::default();
        Self { stream: Stream::Stdout, transcript, ..Self::new(output) }
    }

    /// One of those that shows on a terminal what the model said, too.
    pub(crate) fn with_replies(self) -> Self {
        match std::io::stdout().is_terminal() {
            true => Self { transcript: Transcript::live_in(self.status.room()), ..self },
            false => self,
        }
    }

    /// One that keeps what it is told, and shows nothing.
    pub(crate) fn keeping() -> Self {
        let silent = Self::new(Output { json: None, quiet: true });
        let output = Output { json: None, quiet: false };
        Self { stream: Stream::Kept(RefCell::default()), output, ..silent }
    }

    /// What was kept since this was asked last.
    pub(crate) fn kept(&self) -> Vec<Row> {
        match &self.stream {
            Stream::Kept(rows) => std::mem::take(&mut *rows.borrow_mut()),
            Stream::Stderr | Stream::Stdout => Vec::new(),
        }
    }

    /// One that shows all of what tools put out.
    pub(crate) fn in_full(mut self) -> Self {
        self.transcript = Transcript::in_full();
        self
    }

    pub(crate) fn is_json(&self) -> bool {
        self.output.json.is_some()
    }

    /// Takes note of what happened before, to which what comes may refer.
    pub(crate) fn learn(&mut self, record: &Record) {
        self.transcript.learn(record);
    }

    /// An event became durable.
    pub(crate) fn event(&mut self, record: &Record) {
        let rows = self.transcript.event(record);
        match self.output.json {
            // If it can't be written, the result can't be either, and that is told.
            Some(Json::Events) => drop(out(&of_record(record))),
            Some(Json::Object) => {}
            None if self.output.quiet => {}
            None => self.print(&rows),
        }
        self.status.wait_for(self.transcript.waiting());
        self.status.open(self.transcript.open());
    }

    /// Takes note of what a subagent did before.
    pub(crate) fn learn_below(&mut self, session: &SessionId, record: &Record) {
        self.transcript.learn_below(session, record);
    }

    /// An event of a subagent became durable: what it does is shown, and what went wrong.
    pub(crate) fn event_below(&mut self, session: &SessionId, record: &Record) {
        let rows = self.transcript.event_below(session, record);
        if self.tells() {
            self.print(&rows);
        }
    }

    /// How often [`Self::tick`] is to be called.
    pub(crate) fn ticks(&self) -> tokio::time::Interval {
        let mut ticks = tokio::time::interval(Duration::from_millis(limits::STATUS_TICK_MS));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks
    }

    /// Time went by.
    pub(crate) fn tick(&mut self) {
        self.transcript.resize(self.status.room());
        self.status.show();
    }

    /// Says what is under way, if it takes long.
    pub(crate) async fn during<T>(&mut self, what: &str, work: impl Future<Output = T>) -> T {
        self.watching(|| what.to_owned(), work).await
    }

    /// Says what is under way, in words that change while it goes on, if it takes long.
    pub(crate) async fn watching<T>(
        &mut self,
        what: impl Fn() -> String,
        work: impl Future<Output = T>,
    ) -> T {
        self.status.wait_for(Some((Seq::default(), what())));
        let mut ticks = self.ticks();
        tokio::pin!(work);
        let done = loop {
            tokio::select! {
                biased;
                done = &mut work => break done,
                _ = ticks.tick() => {
                    self.status.wait_for(Some((Seq::default(), what())));
                    self.tick();
                }
            }
        };
        self.status.wait_for(None);
        done
    }

    fn print(&self, rows: &[Row]) {
        if rows.is_empty() {
            return;
        }
        self.status.erase();
        for row in rows {
            match &self.stream {
                Stream::Stderr => print(row),
                Stream::Stdout => drop(out(&row.painted(Paint::Styled))),
                Stream::Kept(rows) => rows.borrow_mut().push(row.clone()),
            }
        }
    }

    fn print_line(&self, line: &Line) {
        self.print(&[Row::of(line)]);
    }

    /// What is under way is told anew from its beginning.
    pub(crate) fn begin_anew(&mut self) {
        let rows = self.transcript.begin_anew();
        if self.tells() {
            self.print(&rows);
        }
    }

    /// Something is under way, of an effect of the session, or of a subagent's.
    pub(crate) fn live(&mut self, effect: Option<Seq>, live: &LiveOutput) {
        let mut rows = match effect {
            Some(effect) => self.transcript.under_way(effect, live),
            None => retrying(live).into_iter().collect(),
        };
        rows.extend(self.transcript.advance());
        if self.tells() {
            self.print(&rows);
        }
        self.status.wait_for(self.transcript.waiting());
        self.status.open(self.transcript.open());
    }

    /// Something went wrong beside the turn, which goes on.
    pub(crate) fn warning(&self, warning: &Warning) {
        let text = inert(&outrigger_engine::workspace::explain(warning));
        self.note(Tone::Warning, format!("! {text}"));
    }

    /// A line that is no event.
    pub(crate) fn note(&self, tone: Tone, text: impl Into<String>) {
        if self.tells() {
            self.print_line(&Line::new(tone, inert(&text.into())));
        }
    }

    /// Whether what is noted is only kept.
    fn keeps(&self) -> bool {
        matches!(self.stream, Stream::Kept(_))
    }

    /// Whether a person reads what is noted.
    pub(crate) fn tells(&self) -> bool {
        self.output.json.is_none() && !self.output.quiet
    }

    /// A patch of many files, coloured, up to a limit.
    pub(crate) fn patch(&self, patch: &[u8]) {
        let most = (limits::DIFF_LINES_MAX, limits::DIFF_BYTES_MAX);
        self.some_of_patch(patch, most);
    }

    /// All of a patch, but for what is no text.
    pub(crate) fn whole_patch(&self, patch: &[u8]) {
        self.some_of_patch(patch, (usize::MAX, usize::MAX));
    }

    fn some_of_patch(&self, patch: &[u8], most: (usize, usize)) {
        if self.tells() {
            self.print(&patch::lines(patch, most).iter().map(Row::of).collect::<Vec<_>>());
        }
    }

    /// All of a diff that a person answers for.
    pub(crate) fn whole_diff(&self, diff: &str) {
        if self.tells() {
            self.print(&diff_rows(diff, usize::MAX));
        }
    }

    /// The end: the answer alone on standard output, or one JSON object.
    ///
    /// # Errors
    /// If nobody will read it because it can't be written.
    pub(crate) fn result(&self, answer: &str, object: &serde_json::Value) -> Outcome {
        self.status.erase();
        match self.output.json {
            Some(_) => out(&object.to_string()),
            // Where both are one terminal, it stands there already.
            None if self.transcript.has_shown(answer) && std::io::stdout().is_terminal() => Ok(()),
            None => out(&inert(answer)),
        }
    }
}

/// An error: for people on standard error, for programs as an object as well.
pub(crate) fn failure(failure: &Failure, json: bool) {
    let (tone, what) = match failure.kind.is_pause() {
        true => (Tone::Warning, "paused"),
        false => (Tone::Error, "error"),
    };
    let say = |tone, text: &str| print(&Row::of(&Line::new(tone, inert(text))));
    say(tone, &format!("{what}: {}", failure.message));
    for hint in &failure.hints {
        say(Tone::Detail, &format!("hint: {hint}"));
    }
    if json && !failure.is_told {
        // The exit code says it as well.
        drop(line(&json!({ "type": "error", "error": failure.object() })));
    }
}

/// Markdown as rows that fit the terminal that standard output is.
pub(crate) fn markdown_rows(text: &str) -> Vec<Row> {
    markdown::rows(text, columns().unwrap_or(limits::COLUMNS_DEFAULT).saturating_sub(1))
}

/// A diff, coloured, up to a limit.
pub(crate) fn diff_rows(diff: &str, lines_max: usize) -> Vec<Row> {
    patch::lines(diff.as_bytes(), (lines_max, usize::MAX)).iter().map(Row::of).collect()
}

/// An event for programs, on one line. What providers said stands there as it came, also
/// where a value could not hold it: nested too deep, or with half a character.
fn of_record(record: &Record) -> String {
    #[derive(serde::Serialize)]
    struct EventLine<'a> {
        r#type: &'static str,
        record: &'a Record,
    }
    let shown = serde_json::to_string(&EventLine { r#type: "event", record });
    // Within a string of JSON a line break is escaped.
    shown.expect("an event is plain data").replace(['\n', '\r'], " ")
}

/// One JSON value as a line of standard output.
pub(crate) fn line(value: &serde_json::Value) -> Outcome {
    out(&value.to_string())
}

/// How a command was ended that did not exit, which had so many seconds. Nothing for one that
/// did.
pub(crate) fn killed(end: End, seconds: u64) -> Option<String> {
    match end {
        End::Exited(_) => None,
        End::Signalled(signal) => Some(format!("ended by signal {signal}")),
        End::OutOfMemory => Some("killed: the sandbox's memory is used up".to_owned()),
        End::Deadline => Some(format!("killed: still running after {seconds} s")),
        End::Killed => Some("killed".to_owned()),
        End::DiskFull => Some("killed: the sandbox's disk is full".to_owned()),
    }
}

/// A line of standard output, cut to the width of the terminal if it is one.
pub(crate) fn row(text: &str) -> Outcome {
    match columns() {
        Some(columns) => out(&timeline::cut(&inert(text), columns - 1)),
        None => out(&inert(text)),
    }
}

/// A line of standard output, cut to the width of the terminal if it is one; where it is cut
/// it says how much is not shown.
pub(crate) fn counted_row(text: &str) -> Outcome {
    let text = &inert(text);
    let chars = text.chars().count();
    let Some(columns) = columns().filter(|columns| chars >= *columns) else { return out(text) };
    let room = columns.saturating_sub(limits::MORE_CHARS + 1);
    out(&format!("{} {} more characters", timeline::cut(text, room), chars - room.min(chars)))
}

/// The width of the terminal that standard output is, if it is one.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Whether standard output goes anywhere.
pub(crate) fn is_heard() -> bool {
    std::fs::read_link("/proc/self/fd/1").map_or(true, |file| file.as_os_str() != "/dev/null")
}

/// A line of standard output. A reader that has gone is no error of ours.
pub(crate) fn out(text: &str) -> Outcome {
    let mut stdout = AutoStream::auto(std::io::stdout());
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Kind::Storage, format!("standard output can't be written: {error}")))
        }
        _ => Ok(()),
    }
}

fn print(row: &Row) {
    let mut stderr = AutoStream::auto(std::io::stderr());
    drop(writeln!(stderr, "{}", row.painted(Paint::Styled)));
}

/// Warnings of one kind in a line each, as many as somebody reads.
pub(crate) fn warnings(kind: &str, all: &[impl std::fmt::Display]) -> Vec<String> {
    let told = all.iter().take(limits::WARNINGS_MAX);
    let mut lines: Vec<_> = told.map(|what| format!("! {kind}{what}")).collect();
    if let Some(more) = all.len().checked_sub(lines.len()).filter(|more| *more > 0) {
        lines.push(format!("! {kind}{more} more"));
    }
    lines
}

/// What was not copied, and why.
pub(crate) fn not_copied(left_out: &[String]) -> Vec<String> {
    warnings("not copied: ", left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Journals of before hold what providers said as it came.
    #[test]
    fn an_event_is_shown_whatever_a_provider_said() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        for native in [r#"{"text":\n "\ud800"}"#.replace("\\n", "\n"), deep] {
            let reply = format!(
                r#"{{"origin":{{"api":"a","provider":"p","model":"m","response_id":null}},"parts":[],"native":[{native}],"fingerprint":"{}","stop":"end","usage":{{"input_tokens":1,"output_tokens":1,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0}}}}"#,
                "0".repeat(64)
            );
            let record = format!(
                r#"{{"seq":3,"at_ms":1,"event":{{"settled":{{"effect":1,"outcome":{{"done":{{"reply":{reply}}}}},"spent":{{"steps":1,"tokens":1}}}}}}}}"#
            );
            let record: Record = serde_json::from_str(&record).unwrap();
            let shown = of_record(&record);
            assert!(shown.starts_with(r#"{"type":"event","record":{"seq":3,"#), "{shown}");
            assert!(shown.contains(&native.replace('\n', " ")) && !shown.contains('\n'));
            drop(Transcript::default().event(&record));
        }
    }
}
