//! `outrigger keys`: who is let in by `outrigger serve`.

use clap::{Args, Subcommand, value_parser};
use outrigger_policy::Principal;
use outrigger_server::{NewKey, limits, new_key};
use outrigger_store::{KeyKind, Keys as StoredKeys, StoredKey};
use serde_json::json;

use crate::compose;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::session;
use crate::show::{self, Screen, Tone, inert};
use crate::signed_in::SignedIn;

const MILLISECONDS_OF_A_DAY: u64 = 24 * 3_600 * 1_000;

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make a link that logs one browser in, once, within 15 minutes.
    Link(Link),
    /// Make a key for a program, which sends it as `Authorization: Bearer KEY`. It is shown this
    /// once.
    Create(CreateKey),
    /// List keys and browsers that are logged in.
    Ls(KeyList),
    /// Let nobody in with a key any more.
    Revoke(RevokeKey),
}

#[derive(Debug, Args)]
pub(crate) struct Link {
    /// By which address the browser reaches the server.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7373")]
    url: String,
    #[command(flatten)]
    of: KeyOwner,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// What it is for, so that people know it again.
    #[arg(value_name = "LABEL")]
    label: String,
    /// After so many days it lets nobody in.
    #[arg(long, value_name = "N", default_value_t = limits::BEARER_MS_DEFAULT / MILLISECONDS_OF_A_DAY, value_parser = value_parser!(u64).range(1..=3_650))]
    days: u64,
    #[command(flatten)]
    of: KeyOwner,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct KeyOwner {
    /// Who comes with it, by the name that rules have for them: their sessions are theirs alone.
    #[arg(long, value_name = "NAME", value_parser = person)]
    person: Option<String>,
}

/// A person as rules write them.
fn person(said: &str) -> Result<String, String> {
    let name = said.strip_prefix("person:").unwrap_or(said);
    match format!("person:{name}").parse() {
        Ok(Principal::Person(_)) => Ok(format!("person:{name}")),
        Ok(_) | Err(_) => Err("a name has letters, digits and `._-`".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct KeyList {
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeKey {
    /// The key, as `outrigger keys ls` names it.
    #[arg(required_unless_present = "person", conflicts_with = "person")]
    id: Option<String>,
    /// All keys of this person, who is also forgotten where they came by a provider of logins:
    /// whoever logs in under that name next has it.
    #[arg(long, value_name = "NAME", value_parser = person)]
    person: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Keys {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Link(asked) => asked.output,
            Self::Create(asked) => asked.output,
            Self::Ls(asked) => asked.output,
            Self::Revoke(asked) => asked.output,
        }
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Keys) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let keys = &*store.database;
    let make = async |kind, owner: &KeyOwner, label: &str, lives_ms| {
        let of = (kind, owner.person.as_deref().unwrap_or(session::WHO), label);
        let made = new_key(keys, of, (session::now_ms(), lives_ms)).await;
        made.map_err(|error| Failure::new(Kind::Storage, error.detail))
    };
    match asked {
        Keys::Link(asked) => {
            let made = make(KeyKind::Link, &asked.of, "a link", limits::LINK_MS_MAX).await?;
            let url = asked.url.trim_end_matches('/');
            let link = format!("{url}/login?token={}", made.secret);
            given(&made, &link, asked.output)
        }
        Keys::Create(asked) => {
            let made =
                make(KeyKind::Bearer, &asked.of, &asked.label, asked.days * MILLISECONDS_OF_A_DAY)
                    .await?;
            given(&made, &made.secret, asked.output)
        }
        Keys::Ls(asked) => ls(&keys.keys(session::now_ms()).await?, asked.output),
        Keys::Revoke(asked) => revoke(paths, keys, &asked).await,
    }
}

async fn revoke(paths: &Paths, keys: &dyn StoredKeys, asked: &RevokeKey) -> Outcome<u8> {
    let (ids, forgotten) = match (&asked.id, &asked.person) {
        (Some(id), _) => (vec![id.clone()], false),
        (None, person) => {
            let is_theirs = |key: &StoredKey| Some(&key.person) == person.as_ref();
            let all = keys.keys(session::now_ms()).await?.into_iter();
            let ids = all.filter(is_theirs).map(|key| key.id).collect();
            // First the keys: without its account a name would be anybody's who has one of them.
            (ids, person.is_some())
        }
    };
    let mut revoked = Vec::new();
    for id in ids {
        if keys.remove_key(&id).await? {
            revoked.push(id);
        }
    }
    let name = asked.person.as_deref().unwrap_or_default();
    let forgotten = forgotten && SignedIn::forget(paths, name)?;
    if revoked.is_empty() && !forgotten {
        let what = asked.id.as_deref().map(|id| format!("`{}`", inert(id)));
        let text = format!("there is no key {}", what.unwrap_or_else(|| format!("of {name}")));
        return Err(Failure::new(Kind::NotFound, text)
            .hint("`outrigger keys ls` lists those that there are."));
    }
    let screen = Screen::new(asked.output);
    for id in &revoked {
        screen.note(Tone::Good, format!("● {id} is revoked"));
        if asked.output.json.is_some() {
            show::line(&json!({ "type": "revoked", "id": id }))?;
        }
    }
    if forgotten {
        screen.note(Tone::Good, format!("● {name} is forgotten, and the name is free"));
    }
    Ok(0)
}

/// A key on standard output, where it is shown once.
fn given(made: &NewKey, secret: &str, output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        let mut object = object(&made.stored);
        object["secret"] = json!(secret);
        show::line(&object)?;
    } else {
        show::out(secret)?;
    }
    let until = show::when(made.stored.expires_ms);
    Screen::new(output).note(Tone::Detail, format!("  key {}, good until {until}", made.stored.id));
    Ok(0)
}

fn ls(keys: &[StoredKey], output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        let keys: Vec<_> = keys.iter().map(object).collect();
        show::line(&json!({ "type": "keys", "keys": keys }))?;
        return Ok(0);
    }
    for key in keys {
        let (kind, until) = (key.kind.name(), show::when(key.expires_ms));
        let label = inert(&key.label).replace(['\n', '\t'], " ");
        show::row(&format!("{}  {kind:<7}  {}  until {until}  {label}", key.id, key.person))?;
    }
    if keys.is_empty() {
        Screen::new(output)
            .note(Tone::Detail, "nobody is let in yet: `outrigger serve` makes a link");
    }
    Ok(0)
}

fn object(key: &StoredKey) -> serde_json::Value {
    json!({
        "type": "key",
        "id": key.id,
        "kind": key.kind.name(),
        "person": key.person,
        "label": key.label,
        "created_ms": key.created_ms,
        "expires_ms": key.expires_ms,
    })
}
