//! `outrigger login`, `logout` and `context`: the servers that commands go to.

use clap::{Args, Subcommand};
use outrigger_api::{BeginLogin, DeviceLogin, LoginState, PollLogin, ServerInfo};
use outrigger_client::ServerClient;
use serde_json::json;
use std::io::IsTerminal;
use std::time::Duration;
use zeroize::Zeroizing;

use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::servers::{self, KnownServer, LOCAL};
use crate::show::{self, Screen, Tone, inert};
use crate::terminal::hidden_line;

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The server's address, for example `https://agents.example.com`.
    #[arg(value_name = "URL")]
    url: String,
    /// What it is called here, instead of by its host.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Type a key of `outrigger keys create` instead of saying yes in a browser. Where standard
    /// input is no terminal, the key is read from it.
    #[arg(long)]
    key: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// The server, by its name here; without, the one that commands go to.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Context {
    /// List the servers that you are logged in to.
    Ls(ContextList),
    /// Let commands go to a server from now on, or stay on this machine.
    Use(UseContext),
}

#[derive(Debug, Args)]
pub(crate) struct ContextList {
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct UseContext {
    /// The server, by its name here; `local` for this machine.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    output: Output,
}

impl Context {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls(asked) => asked.output,
            Self::Use(asked) => asked.output,
        }
    }
}

/// Takes a key, tries it, and keeps it. Commands go to the server from then on.
pub(crate) async fn login(paths: &Paths, asked: Login) -> Outcome<u8> {
    let url = asked.url.trim_end_matches('/').to_owned();
    let host = url.split_once("://").map_or(url.as_str(), |(_, host)| host);
    let name = asked.name.clone().unwrap_or_else(|| host.to_owned());
    if name == LOCAL || name.is_empty() || name.contains(|it: char| it.is_whitespace()) {
        return Err(Failure::new(Kind::Usage, "a server is not called like that: try --name"));
    }
    // What is wrong with the address is told before a key is asked for.
    ServerClient::new(&url, "")?;
    let mut screen = Screen::new(asked.output);
    let key = match std::io::stdin().is_terminal() && !asked.key {
        true => let_in(&ServerClient::new(&url, "")?, &mut screen).await?,
        false => hidden_line(Some(format!("key for {url}: "))).await?,
    };
    let key = key.trim();
    if key.is_empty() {
        return Err(Failure::new(Kind::Usage, "no key was given")
            .hint("It is typed, or comes on standard input: `outrigger login URL < FILE`."));
    }
    let info: ServerInfo = ServerClient::new(&url, key)?.get("/v1/server").await?;
    let known = KnownServer { url: url.clone(), person: info.person.clone(), key: key.to_owned() };
    servers::change(paths, |servers| {
        servers.servers.insert(name.clone(), known);
        servers.current = Some(name.clone());
        Ok(())
    })?;
    if asked.output.json.is_some() {
        show::line(
            &json!({ "type": "logged_in", "name": name, "url": url, "person": info.person }),
        )?;
    }
    screen.note(Tone::Good, format!("● logged in to {url} as {}", info.person));
    screen.note(
        Tone::Detail,
        "  Sessions are begun there from now on; `outrigger context use local` is for this machine.",
    );
    Ok(0)
}

/// Waits until a person who is logged in to the page says that this program is theirs. Gives its
/// key.
async fn let_in(client: &ServerClient, screen: &mut Screen) -> Outcome<Zeroizing<String>> {
    let system = rustix::system::uname();
    let user = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    let label = format!("outrigger of {user} on {}", system.nodename().to_string_lossy());
    let begun: DeviceLogin = client.post("/v1/login/device", &BeginLogin { label }).await?;
    let DeviceLogin { device_code, code, url, poll_seconds, .. } = begun;
    screen.note(Tone::Plain, "Open this address in a browser that is logged in to the server:");
    screen.note(Tone::Strong, format!("  {url}"));
    screen.note(Tone::Plain, format!("It shows the code {code}: say there that it is yours."));
    let waiting = async {
        loop {
            tokio::time::sleep(Duration::from_secs(poll_seconds.clamp(1, 60))).await;
            let asked = PollLogin { device_code: device_code.clone() };
            match client.post("/v1/login/device/key", &asked).await {
                Ok(LoginState::Waiting) => {}
                Ok(LoginState::Granted { key, .. }) => return Ok(Zeroizing::new(key)),
                Ok(LoginState::Refused) => {
                    return Err(Failure::new(Kind::Denied, "it was refused in the browser"));
                }
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
    };
    screen.during("waiting for you in the browser", waiting).await
}

/// Gives up the key, here and at the server.
pub(crate) async fn logout(paths: &Paths, asked: Logout) -> Outcome<u8> {
    let servers = servers::read(paths)?;
    let name = asked.name.or(servers.current).unwrap_or_default();
    let known = servers.servers.get(&name).ok_or_else(|| none(&name))?;
    let screen = Screen::new(asked.output);
    // One that nobody reaches any more is given up all the same.
    let revoked =
        ServerClient::new(&known.url, &known.key)?.command("/v1/logout", &json!({})).await;
    if let Err(error) = revoked {
        let text = format!("! the key is not revoked there: {}", Failure::from(error).message);
        screen.note(Tone::Warning, text);
    }
    servers::change(paths, |servers| {
        servers.servers.remove(&name);
        servers.current.take_if(|current| *current == name);
        Ok(())
    })?;
    screen.note(Tone::Good, format!("● logged out of {}", known.url));
    if asked.output.json.is_some() {
        show::line(&json!({ "type": "logged_out", "name": name }))?;
    }
    Ok(0)
}

pub(crate) fn context(paths: &Paths, asked: Context) -> Outcome<u8> {
    match asked {
        Context::Ls(asked) => list(&servers::read(paths)?, asked.output),
        Context::Use(UseContext { name, output }) => {
            servers::change(paths, |servers| {
                if name != LOCAL && !servers.servers.contains_key(&name) {
                    return Err(none(&name));
                }
                servers.current = Some(name.clone()).filter(|name| name != LOCAL);
                Ok(())
            })?;
            if output.json.is_some() {
                show::line(&json!({ "type": "context", "current": name }))?;
            }
            let place = if name == LOCAL { "stay on this machine" } else { "go to it" };
            Screen::new(output).note(Tone::Good, format!("● {name}: commands {place} from now on"));
            Ok(0)
        }
    }
}

fn list(servers: &servers::Servers, output: Output) -> Outcome<u8> {
    let current = servers.current.as_deref().unwrap_or(LOCAL);
    if output.json.is_some() {
        let all = servers.servers.iter().map(
            |(name, server)| json!({ "name": name, "url": server.url, "person": server.person }),
        );
        let all: Vec<_> = all.collect();
        show::line(&json!({ "type": "contexts", "current": current, "servers": all }))?;
        return Ok(0);
    }
    let mark = |name: &str| if name == current { '*' } else { ' ' };
    show::row(&format!("{} {LOCAL}  this machine", mark(LOCAL)))?;
    for (name, KnownServer { url, person, .. }) in &servers.servers {
        show::row(&inert(&format!("{} {name}  {url}  {person}", mark(name))))?;
    }
    Ok(0)
}

fn none(name: &str) -> Failure {
    let text = match name {
        "" => "you are logged in to no server".to_owned(),
        name => format!("you are logged in to no server `{}`", inert(name)),
    };
    Failure::new(Kind::NotFound, text)
        .hint("`outrigger context ls` lists them; `outrigger login URL` adds one.")
}
