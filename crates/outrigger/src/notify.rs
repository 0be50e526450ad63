//! Tells whoever configured it that something waits for a person.
//!
//! Owns the two ways, a command and a webhook, and their time limits. The supervisor starts the
//! command, as it stands in the configuration. What is told is
//! told at least once and may be told again: the inbox is what counts. That nobody could
//! be told stops nothing.

use outrigger_gate::Grant;
use outrigger_model::endpoint;
use serde_json::Value;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;

use crate::config::Notify;
use crate::limits;
use crate::network::caller;
use crate::paths::Paths;
use crate::show::{Screen, Tone};
use crate::supervisor::{ProgramStreams, StartRequest};

/// Tells all that are configured; whether all of them were told.
pub(crate) async fn tell(paths: &Paths, notify: &Notify, what: &Value, screen: &Screen) -> bool {
    let limit = Duration::from_millis(limits::NOTIFY_MS_MAX);
    let mut all = true;
    let mut said = |way: &str, result: Result<Result<(), String>, tokio::time::error::Elapsed>| {
        let seconds = limit.as_secs();
        let why = match result {
            Ok(Ok(())) => return,
            Ok(Err(why)) => why,
            Err(_) => format!("it took more than {seconds} s"),
        };
        all = false;
        screen.note(Tone::Warning, format!("! nobody was told by {way}: {why}"));
    };
    if let Some(program) = notify.command.first() {
        let ran = tokio::time::timeout(limit, run(paths, what)).await;
        said(&format!("`{program}`"), ran);
    }
    if let Some(url) = &notify.webhook {
        said("the webhook", tokio::time::timeout(limit, post(paths, url, what)).await);
    }
    all
}

/// Gives the command the object on its standard input.
async fn run(paths: &Paths, what: &Value) -> Result<(), String> {
    let start = async {
        let (stdin, to) = std::io::pipe()?;
        let streams = ProgramStreams { stdin: stdin.into(), ..ProgramStreams::null()? };
        let program = paths.starter()?.start_program(StartRequest::Notify, streams).await?;
        Ok((program, Sender::from_owned_fd(to.into())?))
    };
    let started: std::io::Result<_> = start.await;
    let (mut program, mut to) = started.map_err(|error| error.to_string())?;
    // One that does not read what it is told may still do what it is for.
    drop(to.write_all(format!("{what}\n").as_bytes()).await);
    drop(to);
    let end = program.wait().await.map_err(|error| error.to_string())?;
    if end.success { Ok(()) } else { Err(end.status) }
}

/// By the gate. The address may hold a token: it is never shown.
async fn post(paths: &Paths, url: &str, what: &Value) -> Result<(), String> {
    let server = endpoint::address(url).ok_or("its address names no host")?;
    let grant = Grant { methods: vec!["POST".to_owned()], ..caller::grant(&server) };
    let called = caller::call_for(paths, vec![grant], Vec::new()).await;
    let (http, _) = called.map_err(|failure| failure.message)?;
    match http.post(url, &[], what.to_string(), 0).await?.status {
        200..=299 => Ok(()),
        status => Err(format!("it answered {status}")),
    }
}
