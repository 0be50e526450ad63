//! A session and its subagents as rows, while it goes on: what stays, and what is drawn again.
//!
//! Owns what of the live output a person sees. Pure: the same for a terminal, a pipe and a test.

use outrigger_agent::{Event, Outcome, Product, Record, Seq, SessionId, Work};
use outrigger_engine::LiveOutput;
use std::collections::BTreeMap;

use super::amounts::{count, seconds};
use super::inert;
use super::output_tail::OutputTail;
use super::row::{self, Row};
use super::text_stream::TextStream;
use super::timeline::{Line, Timeline, Tone};
use crate::limits;

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) columns: usize,
    /// Rows of a text that may be drawn again; on a terminal that can't, all but the last one
    /// are certain at once.
    pub(crate) open_rows_max: usize,
}

/// What is known of a session that is shown.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    timeline: Timeline,
    /// Of subagents.
    below: BTreeMap<SessionId, Below>,
    /// Where what is under way is shown too.
    live: Option<LiveView>,
}

/// What is known of a subagent.
#[derive(Debug, Default)]
struct Below {
    /// Its name, as far as it was told.
    agent: String,
    timeline: Timeline,
}

/// What is under way.
#[derive(Debug)]
struct LiveView {
    room: Room,
    /// The reply that is being written.
    reply: Option<(Seq, TextStream)>,
    tails: BTreeMap<Seq, OutputTail>,
    /// The command that printed last.
    newest: Option<Seq>,
    doing: ModelActivity,
    /// The last reply that was shown whole.
    shown: String,
}

/// What the model does.
#[derive(Debug, PartialEq, Eq)]
enum ModelActivity {
    Nothing,
    Thinking,
    Writing,
    Calling(String),
}

impl Transcript {
    /// One that shows all of what tools put out.
    pub(crate) fn in_full() -> Self {
        Self { timeline: Timeline::in_full(), ..Self::default() }
    }

    /// One that shows also what is under way.
    pub(crate) fn live_in(room: Room) -> Self {
        let live = LiveView {
            room,
            reply: None,
            tails: BTreeMap::new(),
            newest: None,
            doing: ModelActivity::Nothing,
            shown: String::new(),
        };
        Self { live: Some(live), ..Self::default() }
    }

    /// The terminal has another size now.
    pub(crate) fn resize(&mut self, room: Room) {
        self.live.iter_mut().for_each(|live| live.room = room);
    }

    /// Takes note of what happened before, to which what comes may refer.
    pub(crate) fn learn(&mut self, record: &Record) {
        drop(self.timeline.lines(record));
    }

    /// An event became durable: its rows.
    pub(crate) fn event(&mut self, record: &Record) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut told = false;
        if let (Event::Settled { effect, outcome, .. }, Some(live)) =
            (&record.event, &mut self.live)
        {
            let summary = matches!(self.timeline.work(*effect), Some(Work::Compact));
            (rows, told) = live.settled(*effect, outcome, summary);
        }
        let lines = self.timeline.lines(record);
        if !told {
            rows.extend(lines.iter().map(Row::of));
        }
        rows
    }

    /// Takes note of what a subagent did before.
    pub(crate) fn learn_below(&mut self, session: &SessionId, record: &Record) {
        drop(self.lines_below(session, record));
    }

    fn lines_below(&mut self, session: &SessionId, record: &Record) -> Vec<Line> {
        let below = self.below.entry(session.clone()).or_default();
        if let Event::Opened(spec) = &record.event {
            below.agent = spec.role.agent.clone().unwrap_or_default();
        }
        below.timeline.lines(record)
    }

    /// An event of a subagent became durable: what it does is shown, and what went wrong.
    pub(crate) fn event_below(&mut self, session: &SessionId, record: &Record) -> Vec<Row> {
        let lines = self.lines_below(session, record);
        let agent = self.below.get(session).map_or_else(String::new, |below| inert(&below.agent));
        let told = |line: &Line| matches!(line.tone, Tone::Step | Tone::Warning | Tone::Error);
        let row = |line: Line| {
            let text = format!("  ⎿ {agent}: {}", line.text.trim_start());
            Row::of(&Line::new(Tone::Detail, text))
        };
        lines.into_iter().filter(told).map(row).collect()
    }

    /// Something of an effect is under way: the rows that are to be told of at once.
    pub(crate) fn under_way(&mut self, effect: Seq, output: &LiveOutput) -> Vec<Row> {
        if let Some(row) = retrying(output) {
            return vec![row];
        }
        let summary = matches!(self.timeline.work(effect), Some(Work::Compact));
        match &mut self.live {
            Some(live) if !summary => live.take(effect, output),
            _ => Vec::new(),
        }
    }

    /// What is under way is told anew from its beginning: the rows that are to be told of that.
    pub(crate) fn begin_anew(&mut self) -> Vec<Row> {
        let Some(live) = &mut self.live else { return Vec::new() };
        live.tails.clear();
        live.newest = None;
        match live.reply.as_ref().map(|(effect, _)| *effect) {
            Some(effect) => live.take(effect, &LiveOutput::Attempt(2)),
            None => Vec::new(),
        }
    }

    /// The rows that have become certain since this was asked last.
    pub(crate) fn advance(&mut self) -> Vec<Row> {
        let Some(live) = &mut self.live else { return Vec::new() };
        let Room { columns, open_rows_max } = live.room;
        live.reply
            .as_mut()
            .map(|(_, text)| text.advance(columns, open_rows_max))
            .unwrap_or_default()
    }

    /// The rows that may still change.
    pub(crate) fn open(&self) -> Vec<Row> {
        let Some(live) = &self.live else { return Vec::new() };
        let mut rows: Vec<Row> = Vec::new();
        if let Some((_, text)) = &live.reply {
            rows.extend(text.open().iter().map(|row| row.cut(live.room.columns)));
        }
        if let Some(tail) = live.newest.and_then(|effect| live.tails.get(&effect)) {
            let shown = tail.rows(limits::TAIL_ROWS, live.room.columns);
            if let Some(more @ 1..) = tail.lines().checked_sub(shown.len() as u64) {
                let text = format!("  │ … {} before", count(more, "line"));
                rows.push(Row::new(row::style(Tone::Detail), &text));
            }
            rows.extend(shown);
        }
        rows
    }

    /// What has been under way for longest.
    pub(crate) fn waiting(&self) -> Option<(Seq, String)> {
        let (effect, what) = self.timeline.waiting()?;
        let of_model = matches!(self.timeline.work(effect), Some(Work::AskModel));
        let what = match self.live.as_ref().map(|live| &live.doing).filter(|_| of_model) {
            Some(ModelActivity::Thinking) => "the model thinks".to_owned(),
            Some(ModelActivity::Writing) => "the model writes".to_owned(),
            Some(ModelActivity::Calling(tool)) => format!("the model calls {}", inert(tool)),
            Some(ModelActivity::Nothing) | None => what,
        };
        Some((effect, what))
    }

    /// Whether this text was shown whole.
    pub(crate) fn has_shown(&self, text: &str) -> bool {
        self.live.as_ref().is_some_and(|live| !text.is_empty() && live.shown == text)
    }
}

impl LiveView {
    fn take(&mut self, effect: Seq, output: &LiveOutput) -> Vec<Row> {
        match output {
            LiveOutput::Attempt(attempt) => {
                self.doing = ModelActivity::Nothing;
                let before = self.reply.take().filter(|(of, _)| *of == effect && *attempt > 1);
                if before.is_some_and(|(_, text)| !text.text().is_empty()) {
                    let text = "! it begins again: what it wrote above does not count";
                    return vec![Row::of(&Line::new(Tone::Warning, text))];
                }
            }
            LiveOutput::Text(delta) => {
                self.doing = ModelActivity::Writing;
                match &mut self.reply {
                    Some((of, text)) if *of == effect => text.push(delta),
                    _ => {
                        let mut text = TextStream::default();
                        text.push(delta);
                        self.reply = Some((effect, text));
                    }
                }
            }
            LiveOutput::Thinking(_) => self.doing = ModelActivity::Thinking,
            LiveOutput::Calling(tool) => self.doing = ModelActivity::Calling(tool.clone()),
            LiveOutput::Output(bytes) => {
                self.tails.entry(effect).or_default().push(bytes);
                self.newest = Some(effect);
            }
            LiveOutput::Retrying { .. } => {}
        }
        Vec::new()
    }

    /// The rows of what came of an effect, and whether they tell all of it.
    fn settled(&mut self, effect: Seq, outcome: &Outcome, summary: bool) -> (Vec<Row>, bool) {
        self.tails.remove(&effect);
        self.newest = self.newest.filter(|newest| *newest != effect);
        let of_reply = self.reply.take_if(|(of, _)| *of == effect).map(|(_, text)| text);
        let columns = self.room.columns;
        match outcome {
            Outcome::Done(Product::Reply(_)) if summary => (Vec::new(), true),
            Outcome::Done(Product::Reply(reply)) => {
                self.doing = ModelActivity::Nothing;
                let text = reply.text();
                let mut rows = of_reply.unwrap_or_default().finish(&text, columns);
                if !text.trim().is_empty() {
                    rows.push(Row::default());
                }
                self.shown = text;
                (rows, true)
            }
            _ => {
                let begun = of_reply.map(|stream| {
                    let text = stream.text().to_owned();
                    stream.finish(&text, columns)
                });
                (begun.unwrap_or_default(), false)
            }
        }
    }
}

/// That the model will be asked again.
pub(crate) fn retrying(output: &LiveOutput) -> Option<Row> {
    let LiveOutput::Retrying { wait_ms, reason } = output else { return None };
    let wait = seconds(*wait_ms);
    let text = format!("! {}; asking again in {wait:.1} s", inert(reason));
    Some(Row::of(&Line::new(Tone::Warning, text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::row::Paint;
    use expect_test::expect;
    use serde_json::{Value, json};

    fn record(seq: u64, event: &Value) -> Record {
        serde_json::from_value(json!({ "seq": seq, "at_ms": seq, "event": event })).unwrap()
    }

    fn started(effect: u64) -> Value {
        let reserved = json!({ "steps": 1, "tokens": 0 });
        json!({ "started": { "effect": effect, "attempt": 1, "reserved": reserved, "place": null } })
    }

    fn settled(effect: u64, outcome: &Value) -> Value {
        let spent = json!({ "steps": 1, "tokens": 0 });
        json!({ "settled": { "effect": effect, "outcome": outcome, "spent": spent } })
    }

    fn reply(text: &str) -> Value {
        let origin = json!({ "api": "a", "provider": "p", "model": "m", "response_id": null });
        let usage = json!({ "input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0 });
        json!({ "done": { "reply": { "origin": origin, "parts": [{ "text": text }], "native": [], "fingerprint": "0".repeat(64), "stop": "end", "usage": usage } } })
    }

    /// Rows that stay as they are, rows that may change with a mark before them.
    struct Screen {
        transcript: Transcript,
        text: String,
    }

    impl Screen {
        fn new() -> Self {
            let room = Room { columns: 30, open_rows_max: 2 };
            Self { transcript: Transcript::live_in(room), text: String::new() }
        }

        fn rows(&mut self, mark: &str, rows: &[Row]) {
            for row in rows {
                self.text.push_str(&format!("{mark}{}\n", row.painted(Paint::Plain)));
            }
        }

        fn happened(&mut self, seq: u64, event: &Value) {
            let rows = self.transcript.event(&record(seq, event));
            self.rows("", &rows);
        }

        fn lives(&mut self, effect: u64, output: LiveOutput) {
            let mut rows = self.transcript.under_way(Seq(effect), &output);
            rows.extend(self.transcript.advance());
            self.rows("", &rows);
            let open = self.transcript.open();
            self.rows("~ ", &open);
            if let Some((_, what)) = self.transcript.waiting() {
                self.text.push_str(&format!("~ ({what})\n"));
            }
        }
    }

    #[test]
    fn text_and_output_are_shown_while_they_come() {
        let mut screen = Screen::new();
        screen.happened(1, &json!({ "proposed": "ask_model" }));
        screen.happened(2, &started(1));
        screen.lives(1, LiveOutput::Attempt(1));
        screen.lives(1, LiveOutput::Thinking("hm".to_owned()));
        screen.lives(1, LiveOutput::Text("One.\n\nTwo".to_owned()));
        screen.lives(1, LiveOutput::Attempt(2));
        screen.lives(1, LiveOutput::Text("I run\x1b[2J".to_owned()));
        screen.lives(1, LiveOutput::Text(" it.".to_owned()));
        screen.happened(3, &settled(1, &reply("I run\x1b[2J it.")));
        let work = json!({ "reply": 1, "index": 0, "call": "c", "tool": "execute", "arguments": "0".repeat(64) });
        screen.happened(4, &json!({ "proposed": { "call_tool": work } }));
        screen.happened(5, &started(4));
        screen.lives(
            4,
            LiveOutput::Output(
                (1..=9).map(|n| format!("line {n}\n")).collect::<String>().into_bytes(),
            ),
        );
        screen.happened(6, &settled(4, &json!({ "done": { "output": { "status": "ok", "text": "line 1\nline 2", "exit_code": 0 } } })));
        assert!(screen.transcript.has_shown("I run\x1b[2J it."));
        expect![[r#"
            ~ (waiting for the model)
            ~ (the model thinks)
            One.
            ~ 
            ~ Two
            ~ (the model writes)
            ! it begins again: what it wrote above does not count
            ~ (waiting for the model)
            ~ I run�[2J
            ~ (the model writes)
            ~ I run�[2J it.
            ~ (the model writes)
            I run�[2J it.

            ▸ execute
            ~   │ … 4 lines before
            ~   │ line 5
            ~   │ line 6
            ~   │ line 7
            ~   │ line 8
            ~   │ line 9
            ~ (execute)
              ✓ execute · exit 0 · 0.00 s
              │ line 1
              │ line 2
        "#]]
        .assert_eq(&screen.text);
    }
}
