//! What a turn costs: a model call and a tool call, all of it durable.
//!
//! Processor time is that of the harness's process alone, all of its threads, with
//! one listener that follows the session as `outrigger run` does. A turn lasts from
//! one question to the model to the next, when everything of it is on disk. The
//! first of a session is not counted, because it makes the sandbox.

use outrigger_agent::{Event, Outcome as Effect, Product, Status, ToolOutput};
use outrigger_engine::{Host, Notice};
use outrigger_model::Model;
use std::sync::Arc;

use crate::error::{Error, ErrorContext, Outcome};
use crate::figure::{Figure, median};
use crate::harness::Harness;
use crate::home::Home;
use crate::marks::{MarkedClient, Marks};
use crate::sizes;

/// What one turn cost.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Which turn of its session, from 2.
    number: u64,
    cpu_ms: f64,
    wall_ms: f64,
}

/// What the turns cost.
#[derive(Debug)]
pub(crate) struct Turns(Vec<Turn>);

impl Turns {
    pub(crate) fn cpu(&self) -> Figure {
        Figure::of("turn/cpu", "ms", self.0.iter().map(|turn| turn.cpu_ms).collect())
    }

    pub(crate) fn wall(&self) -> Figure {
        Figure::of("turn/wall", "ms", self.0.iter().map(|turn| turn.wall_ms).collect())
    }

    /// Median processor time of the first and of the last turns of the sessions.
    pub(crate) fn growth_cpu_ms(&self) -> (f64, f64) {
        let of = |wanted: &dyn Fn(u64) -> bool| {
            let wanted = self.0.iter().filter(|turn| wanted(turn.number));
            median(wanted.map(|turn| turn.cpu_ms).collect())
        };
        let last = sizes::TURNS - sizes::TURNS_COMPARED;
        (of(&|number| number <= sizes::TURNS_COMPARED), of(&|number| number > last))
    }
}

/// Runs the sessions, one after the other.
pub(crate) async fn measure(port: u16) -> Outcome<Turns> {
    let marks = Marks::default();
    let wrapped =
        |client| Arc::new(MarkedClient { client, marks: marks.clone() }) as Arc<dyn Model>;
    let home = Home::new()?;
    let harness = Harness::open(home.path(), port, sizes::TURNS, wrapped).await?;
    let mut turns = Vec::new();
    for number in 0..sizes::SESSIONS {
        let steps = follow(&harness, number).await?;
        // The last mark is the question after the last turn.
        let marks = marks.take();
        if steps != sizes::TURNS || marks.len() as u64 != sizes::TURNS + 1 {
            let text = format!("{steps} turns were seen instead of {}", sizes::TURNS);
            return Err(Error::Astray(text));
        }
        turns.extend((1..).zip(marks.windows(2)).skip(1).map(|(number, marks)| Turn {
            number,
            cpu_ms: marks[1].cpu_ms - marks[0].cpu_ms,
            wall_ms: (marks[1].at - marks[0].at).as_secs_f64() * 1e3,
        }));
    }
    harness.close().await?;
    Ok(Turns(turns))
}

/// Follows a session to its end, and counts the steps that did what they should:
/// a turn whose command did not run would be cheap.
async fn follow(harness: &Harness, number: u64) -> Outcome<u64> {
    let mut notices = harness.engine.feed().listen();
    let mut steps = 0;
    let session = harness.begin(number).await?;
    let parked = harness.host.parked(&session);
    tokio::pin!(parked);
    loop {
        tokio::select! {
            biased;
            notice = notices.recv() => {
                let (_, notice) = notice.doing("following a session")?;
                if let Some(output) = settled(&notice) {
                    steps += 1;
                    let text = format!("step {steps}\n");
                    if output.status != Status::Ok || !output.text.starts_with(&text) {
                        return Err(Error::Astray(format!("step {steps} gave {:?}", output.text)));
                    }
                }
            }
            park = &mut parked => {
                park.doing("driving a session")?;
                harness.answered(&session).await?;
                return Ok(steps);
            }
        }
    }
}

fn settled(notice: &Notice) -> Option<&ToolOutput> {
    let Notice::Appended(record) = notice else { return None };
    match &record.event {
        Event::Settled { outcome: Effect::Done(Product::Output(output)), .. } => Some(output),
        _ => None,
    }
}
