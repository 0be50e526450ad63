//! `outrigger egress`: what sandboxes reached, over all sessions.

use clap::{Args, Subcommand};
use outrigger_agent::{EgressFlow, EgressReport, Event, Record, Seq, SessionId};
use outrigger_store::{Journal, SessionRow, load_all};
use serde_json::json;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::exit::Outcome;
use crate::flags::Output;
use crate::paths::Paths;
use crate::show::amounts::{count, size};
use crate::show::{self, Screen, Tone, inert};
use crate::{compose, limits, session};

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Egress {
    /// List what commands reached and what was refused to them, the newest last.
    Ls(EgressQuery),
    /// Follow it: what comes from now on, until it is interrupted.
    Tail(EgressQuery),
}

#[derive(Debug, Args)]
pub(crate) struct EgressQuery {
    /// The session, or the beginning of its name; the newest ones if none is named.
    session: Option<String>,
    /// Only what was refused.
    #[arg(long)]
    refused: bool,
    #[command(flatten)]
    output: Output,
}

impl Egress {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls(which) | Self::Tail(which) => which.output,
        }
    }
}

/// A flow, and where it is from.
struct EgressLine {
    session: SessionId,
    at_ms: u64,
    report: Arc<EgressReport>,
}

pub(crate) async fn execute(paths: &Paths, asked: Egress) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    of_journals(&*store.journal, asked).await
}

/// What the sessions of a journal reached, on this machine or at a server.
pub(super) async fn of_journals(journal: &dyn Journal, asked: Egress) -> Outcome<u8> {
    let (which, follows) = match asked {
        Egress::Ls(which) => (which, false),
        Egress::Tail(which) => (which, true),
    };
    let screen = Screen::new(which.output);
    let mut seen = HashMap::new();
    let mut lines = news(journal, &which, &mut seen).await?;
    if !follows {
        lines.sort_by_key(|line| line.at_ms);
        let shown = lines.iter().map(|line| print(&which, line)).sum::<Outcome<usize>>()?;
        if shown == 0 {
            screen.note(Tone::Detail, "nothing was reached, and nothing refused");
        }
        return Ok(0);
    }
    screen.note(Tone::Detail, "waiting for what commands reach; Ctrl-C ends it");
    loop {
        tokio::time::sleep(Duration::from_millis(limits::EGRESS_POLL_MS)).await;
        for line in news(journal, &which, &mut seen).await? {
            print(&which, &line)?;
        }
    }
}

/// What came since it was looked at last.
async fn news(
    journal: &dyn Journal,
    which: &EgressQuery,
    seen: &mut HashMap<SessionId, Seq>,
) -> Outcome<Vec<EgressLine>> {
    let mut rows: Vec<SessionRow> = Vec::new();
    match &which.session {
        Some(name) => rows.push(session::find(journal, name).await?),
        None => {
            session::walk(journal, |row| {
                rows.push(row);
                match rows.len() < limits::EGRESS_SESSIONS_MAX {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            })
            .await?;
        }
    }
    let mut lines = Vec::new();
    for row in rows {
        let after = seen.get(&row.session).copied().unwrap_or(Seq(0));
        if row.head > after {
            load_all(journal, &row.session, after, |Record { seq, at_ms, event }| {
                seen.insert(row.session.clone(), seq);
                if let Event::Reached(report) = event {
                    lines.push(EgressLine { session: row.session.clone(), at_ms, report });
                }
            })
            .await?;
        }
    }
    Ok(lines)
}

/// Gives how many flows were shown.
fn print(which: &EgressQuery, line: &EgressLine) -> Outcome<usize> {
    let flows = line.report.flows.iter();
    let flows: Vec<_> = flows.filter(|flow| !which.refused || flow.refusal.is_some()).collect();
    for flow in &flows {
        if which.output.json.is_some() {
            show::line(&json!({
                "type": "flow",
                "session": line.session.as_str(),
                "sandbox": line.report.sandbox,
                "effect": line.report.effect.0,
                "at_ms": line.at_ms,
                "flow": flow,
            }))?;
        } else {
            let when = show::when(line.at_ms);
            show::row(&format!("{when}  {}  {}", line.session, inert(&words(flow))))?;
        }
    }
    Ok(flows.len())
}

fn words(flow: &EgressFlow) -> String {
    if let Some(refusal) = &flow.refusal {
        return format!("! {refusal}");
    }
    let grant = flow.grant.as_deref().unwrap_or("-");
    format!(
        "{}:{}  by {grant}  {}  {} sent, {} received",
        flow.host,
        flow.port,
        count(flow.requests, "request"),
        size(flow.sent_bytes),
        size(flow.received_bytes)
    )
}
