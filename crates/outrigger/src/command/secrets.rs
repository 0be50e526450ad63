//! `outrigger secrets`: what commands may use and never see.

use clap::{Args, Subcommand};
use outrigger_gate::{
    Scheme, SealedSecret, SecretPlace, SecretTerms, SecretValue, grant_of, ready,
};
use outrigger_store::{Secrets as _, StoredSecret};
use serde_json::{Value, json};

use crate::compose::{self, Store};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::network::{self, KeptSecret, ORGANISATION};
use crate::paths::Paths;
use crate::session::{self, now_ms};
use crate::show::{self, Screen, Tone, inert};
use crate::terminal::hidden_line;

/// What may be pushed with the secret of a repository, if nothing else is said.
const BRANCHES: &str = "agent/*";

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
    /// Stop sending it after so many days.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=36_500))]
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
    let (places, name, output) = (places(&asked)?, asked.name, asked.output);
    if places.is_empty() {
        let text = format!("{name} has to be sent somewhere: a secret goes where it is for alone");
        return Err(Failure::new(Kind::Usage, text)
            .hint(format!("To a service: `outrigger secrets set {name} --for api.example.com`."))
            .hint(format!("To a repository: `outrigger secrets set {name} --git https://github.com/OWNER/NAME`.")));
    }
    let ends_ms = asked.days.map(|days| now_ms() + days * 24 * 60 * 60 * 1000);
    let organisation = ORGANISATION.to_owned();
    let terms = SecretTerms { name: name.clone(), organisation, places, ends_ms };
    let value = value(&name, output).await?;
    let store = compose::store(paths).await?;
    let before = find(&store, &name).await?;
    // Another value for another place is another secret: what stood for it stands for nothing.
    let sealed = network::caller::gate(paths)?.seal(None, terms, value).await.map_err(failed)?;
    if let Some(before) = before {
        network::caller::gate(paths)?.revoke(&before.sealed.id).await.map_err(failed)?;
    }
    let kept = keep(&store, sealed).await?;
    let text = format!("● {name} is kept, and sent to {} alone", places_of(&kept.sealed));
    told(&kept, &text, output)?;
    let hint = format!(
        "  commands use it with `outrigger run --secret {name}`, or `/net secret:{name}` in a conversation"
    );
    Screen::new(output).note(Tone::Detail, hint);
    Ok(0)
}

/// Where it is sent, as it was said.
fn places(asked: &Set) -> Outcome<Vec<SecretPlace>> {
    let mut places = Vec::new();
    for said in &asked.places {
        let wrong = |why: String| Failure::new(Kind::Usage, format!("--for: {why}"));
        let plain = said.starts_with("http://");
        let before = places.len();
        for mut grant in grant_of(said).map_err(wrong)? {
            // In clear only where it was said so, and never over anybody else's network.
            if grant.scheme == Scheme::Http && !(plain && grant.private) {
                continue;
            }
            grant.methods = asked.method.iter().map(|it| it.to_ascii_uppercase()).collect();
            places.push(SecretPlace {
                grant,
                headers: asked.header.iter().map(|it| it.to_ascii_lowercase()).collect(),
                queries: asked.query.clone(),
                fields: asked.field.clone(),
                mints: asked.mints.clone(),
                aws_key_id: asked.aws.clone(),
                refs: None,
            });
        }
        if places.len() == before {
            let text = format!("--for {said}: a secret is sent over TLS alone");
            return Err(Failure::new(Kind::Usage, text).hint("Write https:// before it."));
        }
    }
    let branches: Vec<String> = match (asked.fetch_only, asked.branch.as_slice()) {
        (true, _) => Vec::new(),
        (false, []) => vec![BRANCHES.to_owned()],
        (false, named) => named.to_vec(),
    };
    let refs: Vec<_> = branches.iter().map(|branch| format!("refs/heads/{branch}")).collect();
    for url in &asked.git {
        let of_repository = ready::repository(url, &refs).ok_or_else(|| {
            let text = format!("--git {url}: this is not the address of a repository over HTTPS");
            Failure::new(Kind::Usage, text).hint(
                "For example `--git https://github.com/OWNER/NAME`; `git remote -v` shows it.",
            )
        })?;
        places.extend(of_repository);
    }
    Ok(places)
}

/// The value, which nothing shows.
async fn value(name: &str, output: Output) -> Outcome<SecretValue> {
    let prompt = (!output.quiet).then(|| format!("the value of {name} (it is not shown): "));
    let text = hidden_line(prompt).await?;
    SecretValue::new(text).map_err(|why| {
        Failure::new(Kind::Usage, format!("the value of {name} can't be used: {why}"))
    })
}

async fn find(store: &Store, name: &str) -> Outcome<Option<KeptSecret>> {
    let kept = network::kept(&*store.sqlite).await?;
    Ok(kept.into_iter().find(|secret| secret.stored.name == name))
}

async fn existing(store: &Store, name: &str) -> Outcome<KeptSecret> {
    find(store, name).await?.ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("there is no secret {name}"))
            .hint("`outrigger secrets ls` lists those that there are.")
    })
}

async fn keep(store: &Store, sealed: SealedSecret) -> Outcome<KeptSecret> {
    let text = serde_json::to_string(&sealed)
        .map_err(|error| Failure::from_error(Kind::Storage, &error))?;
    let now_ms = now_ms();
    let stored = StoredSecret {
        organisation: ORGANISATION.to_owned(),
        name: sealed.terms.name.clone(),
        sealed: text,
        set_by: session::WHO.to_owned(),
        created_ms: now_ms,
        changed_ms: now_ms,
    };
    store.sqlite.put_secret(stored.clone()).await?;
    Ok(KeptSecret { stored, sealed })
}

async fn rotate(paths: &Paths, name: &str, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let before = existing(&store, name).await?.sealed;
    let value = value(name, output).await?;
    let gate = network::caller::gate(paths)?;
    let sealed = gate.seal(Some(&before.id), before.terms, value).await.map_err(failed)?;
    let kept = keep(&store, sealed).await?;
    // The next command of each sandbox opens with the new value.
    gate.revoke(&before.id).await.map_err(failed)?;
    told(&kept, &format!("● {name} has another value now"), output)?;
    Ok(0)
}

async fn revoke(paths: &Paths, name: &str, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let kept = existing(&store, name).await?;
    store.sqlite.remove_secret(ORGANISATION, name).await?;
    network::caller::gate(paths)?.revoke(&kept.sealed.id).await.map_err(failed)?;
    told(&kept, &format!("● {name} is forgotten, and sent nowhere any more"), output)?;
    Ok(0)
}

async fn ls(paths: &Paths, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let all = network::kept(&*store.sqlite).await?;
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
    let kept = existing(&store, name).await?;
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

fn failed(error: outrigger_gate::Error) -> Failure {
    Failure::from_error(Kind::SandboxUnavailable, &error)
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
    let places = &secret.terms.places;
    let mut all = Vec::new();
    for url in network::repositories(places).iter().filter(|url| !url.ends_with(".git")) {
        let refs = places.iter().filter_map(|place| place.refs.as_ref());
        let refs = refs.max_by_key(|refs| refs.len()).filter(|refs| !refs.is_empty());
        let branch = |name: &String| name.trim_start_matches("refs/heads/").to_owned();
        let pushed = refs.map(|refs| refs.iter().map(branch).collect::<Vec<_>>().join(", "));
        all.push(match pushed {
            Some(branches) => format!("{url} (pushing {branches})"),
            None => format!("{url} (fetching)"),
        });
    }
    for place in places.iter().filter(|place| place.refs.is_none()) {
        let grant = &place.grant;
        let port = if grant.port == 443 { String::new() } else { format!(":{}", grant.port) };
        all.push(format!("{}{port}{}", grant.host, grant.paths.join(" ")));
    }
    inert(&all.join(", "))
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
