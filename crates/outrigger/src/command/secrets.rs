//! `outrigger secrets`: what commands may use and never see.

use clap::{Args, Subcommand};
use outrigger_gate::{SealedSecret, SecretValue};
use serde_json::{Value, json};

use crate::compose;
use crate::exit::Outcome;
use crate::flags::Output;
use crate::limits;
use crate::network::{self, KeptSecret, SecretKeeper, SecretUse, secret_value};
use crate::paths::Paths;
use crate::session::{self, now_ms};
use crate::show::{self, Screen, Tone, inert};
use crate::terminal::hidden_line;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Secrets {
    /// Keep a secret, and say where it is sent. Its value is asked for on a terminal, or read
    /// from standard input.
    Set(Box<Set>),
    /// List secrets: where each is sent, and until when. Their values nobody can show.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Show in full where a secret is sent.
    Grants {
        /// Its name.
        name: String,
        #[command(flatten)]
        output: Output,
    },
    /// Give a secret another value. Where it is sent stays, and so do placeholders.
    Rotate {
        /// Its name.
        name: String,
        #[command(flatten)]
        output: Output,
    },
    /// Forget a secret. What is under way with it ends.
    Revoke {
        /// Its name.
        name: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The variable in which commands look for it, for example `GITHUB_TOKEN`.
    name: String,
    /// Send it to this host, or beneath this URL: `api.example.com`, `example.com:8443`,
    /// `https://example.com/v1/*`. May be given several times.
    #[arg(long = "for", value_name = "WHERE", help_heading = "Where it is sent")]
    places: Vec<String>,
    /// Send it to this repository of git, to fetch and to push. May be given several times.
    #[arg(long, value_name = "URL", help_heading = "Where it is sent")]
    git: Vec<String>,
    /// Push these branches of `--git` and no others; `agent/*` if none is named.
    #[arg(long, value_name = "PATTERN", requires = "git", help_heading = "Where it is sent")]
    branch: Vec<String>,
    /// Only fetch from `--git`, push nothing.
    #[arg(long, requires = "git", conflicts_with = "branch", help_heading = "Where it is sent")]
    fetch_only: bool,
    /// Send it with these methods alone, for example `GET`.
    #[arg(long, value_name = "METHOD", requires = "places", help_heading = "Where it is sent")]
    method: Vec<String>,
    /// Send it in this header; in `Authorization`, and in any whose whole value it is, if none is
    /// named.
    #[arg(long, value_name = "NAME", requires = "places", help_heading = "Where it is sent")]
    header: Vec<String>,
    /// Send it as this parameter of the query as well.
    #[arg(long, value_name = "NAME", requires = "places", help_heading = "Where it is sent")]
    query: Vec<String>,
    /// Send it as this field of a form or of a JSON object as well, for example `client_secret`.
    #[arg(long, value_name = "NAME", requires = "places", help_heading = "Where it is sent")]
    field: Vec<String>,
    /// What has this name in a JSON answer to it is a secret too, for example `access_token`:
    /// commands get a placeholder of it, for the same hosts.
    #[arg(long, value_name = "NAME", requires = "places", help_heading = "Where it is sent")]
    mints: Vec<String>,
    /// It is the secret of this access key of AWS (`AKIA…`): requests to `--for` are signed with
    /// it. Commands have the id in AWS_ACCESS_KEY_ID.
    #[arg(long, value_name = "KEY_ID", requires = "places", conflicts_with_all = ["header", "query", "field", "mints", "git"], help_heading = "Where it is sent")]
    aws: Option<String>,
    /// It is what another system signs its messages to webhooks of agents with. It is sent
    /// nowhere.
    #[arg(long, conflicts_with_all = ["places", "git"])]
    webhook: bool,
    /// Stop sending it after so many days.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=limits::SECRET_DAYS_MAX))]
    days: Option<u64>,
    #[command(flatten)]
    output: Output,
}

impl Secrets {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Set(set) => set.output,
            Self::Ls { output }
            | Self::Grants { output, .. }
            | Self::Rotate { output, .. }
            | Self::Revoke { output, .. } => *output,
        }
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Secrets) -> Outcome<u8> {
    let output = asked.output();
    match asked {
        Secrets::Set(asked) => set(paths, *asked).await,
        Secrets::Ls { .. } => ls(paths, output).await,
        Secrets::Grants { name, .. } => grants(paths, &name, output).await,
        Secrets::Rotate { name, .. } => rotate(paths, &name, output).await,
        Secrets::Revoke { name, .. } => revoke(paths, &name, output).await,
    }
}

async fn set(paths: &Paths, asked: Set) -> Outcome<u8> {
    let output = asked.output;
    let (name, days) = (asked.name.clone(), asked.days);
    let terms = SecretUse::from(asked).terms(&name, days).map_err(|failure| {
        failure
            .hint(format!("To a service: `outrigger secrets set {name} --for api.example.com`."))
            .hint(format!("To a repository: `outrigger secrets set {name} --git https://github.com/OWNER/NAME`."))
    })?;
    let value = hidden_value(&name, output).await?;
    let store = compose::store(paths).await?;
    let keeper = SecretKeeper::new(paths, &*store.database, session::WHO);
    let kept = keeper.set(terms, value).await?;
    if kept.sealed.terms.verifies && kept.sealed.terms.places.is_empty() {
        let text = format!("● {name} is kept, and verifies what is sent to webhooks that name it");
        told(&kept, &text, output)?;
        return Ok(0);
    }
    let text = format!("● {name} is kept, and sent to {} alone", places_of(&kept.sealed));
    told(&kept, &text, output)?;
    let hint = format!(
        "  commands use it with `outrigger run --secret {name}`, or `/net secret:{name}` in a conversation"
    );
    Screen::new(output).note(Tone::Detail, hint);
    Ok(0)
}

impl From<Set> for SecretUse {
    fn from(set: Set) -> Self {
        Self {
            hosts: set.places,
            git: set.git,
            branches: set.branch,
            fetch_only: set.fetch_only,
            methods: set.method,
            headers: set.header,
            queries: set.query,
            fields: set.field,
            mints: set.mints,
            aws_key_id: set.aws,
            webhook: set.webhook,
        }
    }
}

/// The value, which nothing shows.
async fn hidden_value(name: &str, output: Output) -> Outcome<SecretValue> {
    let prompt = (!output.quiet).then(|| format!("the value of {name} (it is not shown): "));
    secret_value(name, hidden_line(prompt).await?)
}

async fn rotate(paths: &Paths, name: &str, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let keeper = SecretKeeper::new(paths, &*store.database, session::WHO);
    keeper.existing(name).await?;
    let kept = keeper.rotate(name, hidden_value(name, output).await?).await?;
    told(&kept, &format!("● {name} has another value now"), output)?;
    Ok(0)
}

async fn revoke(paths: &Paths, name: &str, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let kept = SecretKeeper::new(paths, &*store.database, session::WHO).revoke(name).await?;
    told(&kept, &format!("● {name} is forgotten, and sent nowhere any more"), output)?;
    Ok(0)
}

async fn ls(paths: &Paths, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let all = network::kept(&*store.database).await?;
    if output.json.is_some() {
        let secrets: Vec<Value> = all.iter().map(object).collect();
        show::line(&json!({ "type": "secrets", "secrets": secrets }))?;
        return Ok(0);
    }
    let width = all.iter().map(|secret| secret.stored.name.len()).max().unwrap_or(0);
    for secret in &all {
        let name = &secret.stored.name;
        let set = show::when(secret.stored.changed_ms);
        let ends = ends(&secret.sealed);
        show::row(&format!("{name:width$}  set {set}{ends}  {}", places_of(&secret.sealed)))?;
    }
    if all.is_empty() {
        let text = "no secrets; `outrigger secrets set NAME --for HOST` keeps one";
        Screen::new(output).note(Tone::Detail, text);
    }
    Ok(0)
}

async fn grants(paths: &Paths, name: &str, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let kept = SecretKeeper::new(paths, &*store.database, session::WHO).existing(name).await?;
    if output.json.is_some() {
        show::line(&object(&kept))?;
        return Ok(0);
    }
    for place in &kept.sealed.terms.places {
        let grant = &place.grant;
        let or = |all: &[String], none: &str| match all.is_empty() {
            true => none.to_owned(),
            false => all.join(" "),
        };
        let methods = or(&grant.methods, "any method");
        let paths = or(&grant.paths, "any path");
        let mut row = format!("{}:{}  {methods}  {paths}", grant.host, grant.port);
        if !grant.queries.is_empty() {
            row.push_str(&format!("  ?{}", grant.queries.join("&")));
        }
        if !place.headers.is_empty() {
            row.push_str(&format!("  in {}", place.headers.join(", ")));
        }
        if !place.fields.is_empty() {
            row.push_str(&format!("  as field {}", place.fields.join(", ")));
        }
        if !place.mints.is_empty() {
            row.push_str(&format!("  answered with {}", place.mints.join(", ")));
        }
        if let Some(id) = &place.aws_key_id {
            row.push_str(&format!("  signing as {id}"));
        }
        if !place.queries.is_empty() {
            row.push_str(&format!("  as ?{}=", place.queries.join("=, ?")));
        }
        if let Some(refs) = place.refs.as_ref().filter(|refs| !refs.is_empty()) {
            row.push_str(&format!("  pushing {}", refs.join(" ")));
        }
        show::row(&inert(&row))?;
    }
    Ok(0)
}

fn ends(secret: &SealedSecret) -> String {
    match secret.terms.ends_ms {
        None => String::new(),
        Some(ends) if ends <= now_ms() => "  ended".to_owned(),
        Some(ends) => format!("  until {}", show::when(ends)),
    }
}

/// Where it is sent, in a few words.
fn places_of(secret: &SealedSecret) -> String {
    inert(&network::places_of(secret).join(", "))
}

fn object(secret: &KeptSecret) -> Value {
    let KeptSecret { stored, sealed } = secret;
    json!({
        "type": "secret",
        "name": stored.name,
        "set_by": stored.set_by,
        "created_ms": stored.created_ms,
        "changed_ms": stored.changed_ms,
        "ends_ms": sealed.terms.ends_ms,
        "places": sealed.terms.places,
    })
}

fn told(secret: &KeptSecret, text: &str, output: Output) -> Outcome {
    Screen::new(output).note(Tone::Good, text);
    if output.json.is_some() {
        show::line(&object(secret))?;
    }
    Ok(())
}
