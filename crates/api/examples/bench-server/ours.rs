//! Our own server: its world, and what a client does with a session of it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Client;
use crate::limits;
use crate::load::Followed;
use crate::model::{self, Replies};
use crate::process::{self, Process};

/// The model that rules ask a person about.
pub(crate) const ASKS: &str = "asks";
const RULES: &str = r#"@id("asks")
@approvable("anyone")
forbid (principal, action == Action::"ask_model", resource == Model::"MODEL");
"#;

/// A data directory with its configuration, and the program.
#[derive(Debug)]
pub(crate) struct World {
    program: PathBuf,
    home: TempDir,
    key: String,
}

impl World {
    /// One in which the program was never started.
    pub(crate) async fn new(program: &Path, model: SocketAddr) -> io::Result<Self> {
        let home = tempfile::tempdir()?;
        fs::create_dir(home.path().join("project"))?;
        fs::write(home.path().join("rules.cedar"), RULES.replace("MODEL", ASKS))?;
        let config = format!(
            "[model]\nprovider = \"openai-chat\"\nname = \"{}\"\nbase_url = \"http://{model}/v1\"\n\
             [policy]\nfiles = [\"rules.cedar\"]\n",
            model::WORKS,
        );
        fs::write(home.path().join("config.toml"), config)?;
        let mut world = Self { program: program.to_owned(), home, key: String::new() };
        let (_, said) =
            Process::start(world.command(&["keys", "create", "bench", "--json"])).await?;
        let said: Value = serde_json::from_str(&said)?;
        let key = said["secret"].as_str().ok_or_else(|| io::Error::other("no key was made"))?;
        key.clone_into(&mut world.key);
        Ok(world)
    }

    fn command(&self, args: &[&str]) -> tokio::process::Command {
        let home = self.home.path();
        let mut command = process::command(&self.program, &home.join("project"), home);
        command.env("OUTRIGGER_DATA_DIR", home.join("data"));
        command.env("OUTRIGGER_CONFIG", home.join("config.toml")).args(args);
        command
    }

    /// Starts a server, at an address or a free one.
    pub(crate) async fn serve(&self, at: Option<SocketAddr>) -> io::Result<(Process, Client)> {
        let at = at.map_or_else(|| "127.0.0.1:0".to_owned(), |at| at.to_string());
        let command = self.command(&["serve", "--json", "--listen", &at]);
        let (process, said) = Process::start(command).await?;
        let said: Value = serde_json::from_str(&said)?;
        let server = said["url"].as_str().and_then(|url| url.strip_prefix("http://")?.parse().ok());
        let server = server.ok_or_else(|| io::Error::other("no address is said"))?;
        let client = Client { server, key: Some(self.key.clone()) };
        client.ask(("GET", "/readyz"), None, None).await?;
        Ok((process, client))
    }
}

/// Opens a session, once however often it takes; its name.
pub(crate) async fn open(client: &Client, key: &str, model: &str) -> io::Result<String> {
    let body = json!({ "text": "Look, and say what there is.", "model": model });
    loop {
        let header = Some(("idempotency-key", key));
        match client.json(("POST", "/v1/sessions"), header, Some(&body)).await {
            Ok((201, made)) => return Ok(made["id"].as_str().unwrap_or_default().to_owned()),
            Ok((status, problem)) if problem["retryable"] != true => {
                return Err(io::Error::other(format!("no session: {status} {problem}")));
            }
            Ok(_) | Err(_) => pause().await,
        }
    }
}

/// Says something more in a session.
pub(crate) async fn say(client: &Client, session: &str) -> io::Result<()> {
    let path = format!("/v1/sessions/{session}/messages");
    match client.json(("POST", &path), None, Some(&json!({ "text": "Once more." }))).await? {
        (202, _) => Ok(()),
        (status, problem) => Err(io::Error::other(format!("{path}: {status} {problem}"))),
    }
}

/// What may be otherwise in a moment.
async fn pause() {
    // poll: a server that is not there says nothing
    tokio::time::sleep(Duration::from_millis(limits::START_PAUSE_MS)).await;
}

/// Follows a session to its next answer, as often as its stream breaks.
pub(crate) async fn follow(
    client: &Client,
    mut followed: Followed,
    replies: &Replies,
) -> io::Result<Followed> {
    let path = format!("/v1/sessions/{}/stream", followed.session);
    loop {
        let last = followed.events.len().to_string();
        let stream = client.ask(("GET", &path), Some(("last-event-id", &last)), None).await;
        let Ok(mut stream) = stream else {
            pause().await;
            continue;
        };
        if stream.status != 200 {
            return Err(io::Error::other(format!("{path}: {}", stream.status)));
        }
        let connected_ms = now_ms();
        while let Ok(Some(frame)) = stream.frame().await {
            let now_ms = now_ms();
            followed.frames += 1;
            if frame.name != "event" {
                continue;
            }
            followed.arrived.push(tokio::time::Instant::now());
            let event: Value = serde_json::from_str(&frame.data)?;
            // Places are dense.
            let expected = followed.events.len() as u64 + 1;
            if frame.id != Some(expected) || event["seq"] != expected {
                return Err(io::Error::other(format!("{path}: {expected} expected, got {event}")));
            }
            followed.events.push(digest(&event));
            let at_ms = event["at_ms"].as_f64().unwrap_or_default();
            if at_ms >= connected_ms {
                followed.commit_ms.push(now_ms - at_ms);
            }
            followed.reply_ms.extend(replies.since(&frame.data));
            if event["type"] == "turn_ended" {
                return Ok(followed);
            }
        }
    }
}

/// Looks whether the journal has what a follower was given and nothing else: so many messages and
/// answers, and every call once.
pub(crate) async fn check(client: &Client, followed: &Followed, turns: usize) -> io::Result<()> {
    let session = &followed.session;
    let mut all = Vec::new();
    loop {
        let path = format!("/v1/sessions/{session}/events?after={}", all.len());
        let mut page = client.get(&path).await?;
        all.extend(page["data"].as_array_mut().map(std::mem::take).unwrap_or_default());
        if page["more"] != true {
            break;
        }
    }
    let digests: Vec<u64> = all.iter().take(followed.events.len()).map(digest).collect();
    let count = |kind: &str, value: &str| all.iter().filter(|it| it[kind] == value).count();
    let calls = count("effect_kind", "tool");
    let said = (count("type", "said"), count("type", "turn_ended"), calls);
    if digests != followed.events || said != (turns, turns, turns * limits::CALLS) {
        let text = format!("{session}: messages, ends and calls are {said:?}, or events differ");
        return Err(io::Error::other(text));
    }
    Ok(())
}

/// What an event is, whole.
fn digest(event: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.to_string().hash(&mut hasher);
    hasher.finish()
}

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3
}
