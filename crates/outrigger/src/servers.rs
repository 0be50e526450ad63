//! The servers that a person logged in to, and the one that commands go to.
//!
//! Owns their keys, in a file of the data directory that no harness may read (`confinement`).

use outrigger_client::ServerClient;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::exit::{Failure, Kind, Outcome};
use crate::json_file;
use crate::paths::Paths;

/// What stands for this machine wherever a server is named.
pub(crate) const LOCAL: &str = "local";

/// The variable with a key, for a server that nobody logged in to.
const KEY: &str = "OUTRIGGER_KEY";

/// What is done about a file that can't be read.
const MEND: &str = "Delete the file, and log in anew with `outrigger login URL`.";

/// The servers, by the names that the person has for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Servers {
    /// The one that commands go to where nobody says another; this machine if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) servers: BTreeMap<String, KnownServer>,
}

/// A server that a person logged in to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownServer {
    pub(crate) url: String,
    /// As whom.
    pub(crate) person: String,
    pub(crate) key: String,
}

fn place(paths: &Paths) -> PathBuf {
    paths.data().join("servers.json")
}

/// All of them.
pub(crate) fn read(paths: &Paths) -> Outcome<Servers> {
    json_file::load(&place(paths), MEND)
}

/// Changes them.
pub(crate) fn change(paths: &Paths, change: impl FnOnce(&mut Servers) -> Outcome) -> Outcome {
    json_file::change(paths, &place(paths), MEND, change).map(drop)
}

/// The server that a command goes to: the one that was asked for by name or address, else the
/// one that was chosen before. Nothing for this machine.
pub(crate) fn chosen(paths: &Paths, asked: Option<&str>) -> Outcome<Option<ServerClient>> {
    let servers = read(paths)?;
    let Some(name) = asked.map(str::to_owned).or_else(|| servers.current.clone()) else {
        return Ok(None);
    };
    if name == LOCAL {
        return Ok(None);
    }
    let by_address = || servers.servers.values().find(|server| server.url == name);
    if let Some(known) = servers.servers.get(&name).or_else(by_address) {
        return Ok(Some(ServerClient::new(&known.url, &known.key)?));
    }
    let unknown = || {
        let text = format!("you are logged in to no server `{name}`");
        Failure::new(Kind::Auth, text)
            .hint("`outrigger login URL` logs in; `outrigger context ls` lists where you are.")
            .hint(format!("Programs name a URL, and have their key in {KEY}."))
    };
    match std::env::var(KEY).ok().filter(|_| name.contains("://")) {
        Some(key) => Ok(Some(ServerClient::new(&name, &key)?)),
        None => Err(unknown()),
    }
}
