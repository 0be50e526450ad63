//! `outrigger audit` at a server: one session, which the server checks. Whoever does not trust
//! the server checks a proof, which needs neither.

use outrigger_api::AuditReport;
use serde_json::json;

use super::connection::{Remote, not_there};
use crate::command::audit::{Audit, Verify, execute as here, not_as_written};
use crate::exit::{Kind, Outcome};
use crate::show::amounts::count;
use crate::show::{self, Screen, Tone, inert};

pub(super) async fn execute(remote: &Remote, asked: Audit) -> Outcome<u8> {
    let Audit::Verify(asked) = asked else {
        return Err(not_there("a checkpoint or a proof"));
    };
    if asked.proof.is_some() {
        return here(&remote.paths, Audit::Verify(asked)).await;
    }
    let Verify { session: Some(name), against, key: None, output, proof: _ } = asked else {
        let only = "`outrigger audit verify --session ID` is asked of the server.";
        return Err(not_there("an audit of everything").hint(only));
    };
    if !against.is_empty() {
        return Err(not_there("--against"));
    }
    let session = remote.find(&name).await?.root();
    let mut screen = Screen::on_stdout(output);
    let path = format!("/v1/sessions/{session}/audit");
    let checking = remote.client.get::<AuditReport>(&path);
    let report = screen.during("checking", checking).await?;
    if screen.is_json() {
        let mut object = json!(report);
        object["type"] = json!("audit");
        object["ok"] = json!(report.clean);
        show::line(&object)?;
        return Ok(if report.clean { 0 } else { Kind::AuditFailed as u8 });
    }
    for fault in &report.faults {
        screen.note(Tone::Error, format!("✗ {}", inert(fault)));
    }
    let tone = if report.clean { Tone::Good } else { Tone::Plain };
    screen.note(tone, format!("session {session} with {} read", count(report.events, "event")));
    if report.uncovered > 0 {
        let text = format!("{} not covered by a checkpoint yet", count(report.uncovered, "event"));
        screen.note(Tone::Detail, text);
    }
    if report.clean { Ok(0) } else { Err(not_as_written(report.faults.len() as u64)) }
}
