//! opencode's server, as it comes from npm: what it needs, and what a client does with it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Client;
use crate::load::Followed;
use crate::model::{self, Replies};
use crate::process::{self, Process};

/// A directory for it, and the program.
#[derive(Debug)]
pub(crate) struct World {
    program: PathBuf,
    home: TempDir,
    config: String,
}

impl World {
    /// One in which it was never started.
    pub(crate) fn new(program: &Path, model: SocketAddr) -> io::Result<Self> {
        let home = tempfile::tempdir()?;
        fs::create_dir(home.path().join("project"))?;
        let models = [model::WORKS, model::ANSWERS].map(|name| (name.to_owned(), json!({})));
        let models: serde_json::Map<String, Value> = models.into_iter().collect();
        let config = json!({
            "provider": { "bench": {
                "npm": "@ai-sdk/openai-compatible",
                "options": { "baseURL": format!("http://{model}/v1"), "apiKey": "none" },
                "models": models,
            } },
            "model": format!("bench/{}", model::WORKS),
            "small_model": format!("bench/{}", model::ANSWERS),
            "autoupdate": false,
            "share": "disabled",
        });
        Ok(Self { program: program.to_owned(), home, config: config.to_string() })
    }

    /// Starts a server.
    pub(crate) async fn serve(&self, at: Option<SocketAddr>) -> io::Result<(Process, Client)> {
        let home = self.home.path();
        let mut command = process::command(&self.program, &home.join("project"), home);
        command.env("OPENCODE_CONFIG_CONTENT", &self.config);
        // Nothing but the loopback is reached.
        command.env("OPENCODE_DISABLE_MODELS_FETCH", "true");
        let port = at.map_or(0, |at| at.port()).to_string();
        command.args(["serve", "--pure", "--port", &port]);
        let (mut process, mut said) = Process::start(command).await?;
        while !said.contains("http://") {
            said = process.line().await?;
        }
        let server = said.rsplit_once("http://").and_then(|(_, at)| at.trim().parse().ok());
        let server = server.ok_or_else(|| io::Error::other(format!("no address: {said}")))?;
        Ok((process, Client { server, key: None }))
    }
}

/// Opens a session, unless there is one, and says something in it; its name.
pub(crate) async fn say(client: &Client, session: Option<String>) -> io::Result<String> {
    let session = match session {
        Some(session) => session,
        None => {
            let (status, made) = client.json(("POST", "/session"), None, Some(&json!({}))).await?;
            let none = || io::Error::other(format!("no session: {status} {made}"));
            made["id"].as_str().ok_or_else(none)?.to_owned()
        }
    };
    let body = json!({ "parts": [{ "type": "text", "text": "Look, and say what there is." }] });
    let path = format!("/session/{session}/prompt_async");
    match client.json(("POST", &path), None, Some(&body)).await? {
        (200..300, _) => Ok(session),
        (status, problem) => Err(io::Error::other(format!("{path}: {status} {problem}"))),
    }
}

/// Follows all sessions, which are in one stream, until so many have their answer.
pub(crate) async fn follow(
    client: &Client,
    sessions: usize,
    replies: &Replies,
) -> io::Result<Followed> {
    let mut followed = Followed::default();
    let mut stream = client.ask(("GET", "/event"), None, None).await?;
    let mut idle = HashSet::new();
    while idle.len() < sessions {
        let Some(frame) = stream.frame().await? else {
            return Err(io::Error::other("the stream ended"));
        };
        followed.frames += 1;
        let event: Value = serde_json::from_str(&frame.data)?;
        let (kind, properties) = (event["type"].as_str().unwrap_or_default(), &event["properties"]);
        match kind {
            "message.part.updated" if properties["part"]["time"]["end"].is_number() => {
                followed.reply_ms.extend(replies.since(&frame.data));
            }
            "session.idle" => {
                idle.insert(properties["sessionID"].to_string());
            }
            _ => {}
        }
    }
    Ok(followed)
}

/// Whether a session has its answer.
pub(crate) async fn is_answered(client: &Client, session: &str) -> io::Result<bool> {
    let messages = client.get(&format!("/session/{session}/message")).await?;
    let last = messages.as_array().and_then(|all| all.last());
    Ok(last.is_some_and(|last| last["info"]["finish"] == "stop"))
}
