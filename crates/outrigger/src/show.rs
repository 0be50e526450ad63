//! What people and programs see of a session while it runs and afterwards.

pub(crate) mod amounts;
mod arguments;
mod inert;
mod patch;
mod question;
mod status;
mod timeline;
mod totals;

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use outrigger_agent::{Event, Record, Seq, SessionId};
use outrigger_engine::{LiveOutput, Warning};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

pub(crate) use amounts::count;
pub(crate) use arguments::arguments;
pub(crate) use inert::{inert, word};
pub(crate) use status::Status;
pub(crate) use timeline::{Line, Timeline, Tone};
pub(crate) use totals::Totals;

use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Json, Output};
use crate::limits;
use amounts::seconds;

/// Where steps are shown: on standard error for people, on standard output for programs.
#[derive(Debug)]
pub(crate) struct Screen {
    output: Output,
    /// Lines for people go there.
    stream: Stream,
    timeline: Timeline,
    /// Of subagents.
    below: BTreeMap<SessionId, Below>,
    status: Status,
}

/// What is known of a subagent.
#[derive(Debug, Default)]
struct Below {
    /// Its name, as far as it was told.
    agent: String,
    timeline: Timeline,
}

/// Where lines for people go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stderr,
    Stdout,
}

impl Screen {
    pub(crate) fn new(output: Output) -> Self {
        let wanted = output.json.is_none() && !output.quiet;
        let (timeline, status) = (Timeline::default(), Status::new(wanted));
        Self { output, stream: Stream::Stderr, timeline, below: BTreeMap::new(), status }
    }

    /// One whose lines are themselves what was asked for.
    pub(crate) fn on_stdout(output: Output) -> Self {
        Self { stream: Stream::Stdout, ..Self::new(output) }
    }

    /// One that shows all of what tools put out.
    pub(crate) fn in_full(mut self) -> Self {
        self.timeline = Timeline::in_full();
        self
    }

    pub(crate) fn is_json(&self) -> bool {
        self.output.json.is_some()
    }

    /// Takes note of what happened before, to which what comes may refer.
    pub(crate) fn learn(&mut self, record: &Record) {
        drop(self.timeline.lines(record));
    }

    /// An event became durable.
    pub(crate) fn event(&mut self, record: &Record) {
        let lines = self.timeline.lines(record);
        match self.output.json {
            // If it can't be written, the result can't be either, and that is told.
            Some(Json::Events) => drop(out(&of_record(record))),
            Some(Json::Object) => {}
            None if self.output.quiet => {}
            None => lines.iter().for_each(|line| self.print(line)),
        }
        self.status.wait_for(self.timeline.waiting());
    }

    /// Takes note of what a subagent did before.
    pub(crate) fn learn_below(&mut self, session: &SessionId, record: &Record) -> Vec<Line> {
        let below = self.below.entry(session.clone()).or_default();
        if let Event::Opened(spec) = &record.event {
            below.agent = spec.role.agent.clone().unwrap_or_default();
        }
        below.timeline.lines(record)
    }

    /// An event of a subagent became durable: what it does is shown, and what went wrong.
    pub(crate) fn event_below(&mut self, session: &SessionId, record: &Record) {
        if self.output.json.is_some() || self.output.quiet {
            return;
        }
        let lines = self.learn_below(session, record);
        let agent = self.below.get(session).map_or_else(String::new, |below| inert(&below.agent));
        let told = |line: &Line| matches!(line.tone, Tone::Step | Tone::Warning | Tone::Error);
        for line in lines.into_iter().filter(told) {
            let text = format!("  ⎿ {agent}: {}", line.text.trim_start());
            self.print(&Line::new(Tone::Detail, text));
        }
    }

    /// How often [`Self::tick`] is to be called.
    pub(crate) fn ticks(&self) -> tokio::time::Interval {
        let mut ticks = tokio::time::interval(Duration::from_millis(limits::STATUS_TICK_MS));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks
    }

    /// Time went by.
    pub(crate) fn tick(&self) {
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

    fn print(&self, line: &Line) {
        self.status.erase();
        match self.stream {
            Stream::Stderr => print(line),
            Stream::Stdout => drop(out(&styled(line))),
        }
    }

    /// Something is under way.
    pub(crate) fn live(&self, live: &LiveOutput) {
        if let LiveOutput::Retrying { wait_ms, reason } = live {
            let wait = seconds(*wait_ms);
            self.note(Tone::Warning, format!("! {}; asking again in {wait:.1} s", inert(reason)));
        }
    }

    /// Something went wrong beside the turn, which goes on.
    pub(crate) fn warning(&self, warning: &Warning) {
        let text = inert(&outrigger_engine::workspace::explain(warning));
        self.note(Tone::Warning, format!("! {text}"));
    }

    /// A line that is no event.
    pub(crate) fn note(&self, tone: Tone, text: impl Into<String>) {
        if self.tells() {
            self.print(&Line::new(tone, inert(&text.into())));
        }
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
            patch::lines(patch, most).iter().for_each(|line| self.print(line));
        }
    }

    /// All of a diff that a person answers for.
    pub(crate) fn whole_diff(&self, diff: &str) {
        if self.tells() {
            diff.lines().for_each(|text| self.print(&patch::line(text)));
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
    if json && !failure.is_told {
        // The exit code says it as well.
        drop(line(&json!({ "type": "error", "error": failure.object() })));
    }
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

fn print(line: &Line) {
    let mut stderr = AutoStream::auto(std::io::stderr());
    drop(writeln!(stderr, "{}", styled(line)));
}

fn styled(line: &Line) -> String {
    let style = style(line.tone);
    format!("{style}{}{style:#}", line.text)
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

/// A time, as the person's clock shows it.
pub(crate) fn when(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let local = at.map(|at| at.to_zoned(jiff::tz::TimeZone::system()));
    local.map_or_else(|| at_ms.to_string(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
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
            drop(Timeline::default().lines(&record));
        }
    }
}
