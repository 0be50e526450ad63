//! `outrigger secrets`: what commands may use and never see.

use clap::{Args, Subcommand};
use outrigger_api::{SecretGrant, SecretInfo, SetSecret};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::compose;
use crate::exit::{Failure, Outcome};
use crate::flags::Output;
use crate::limits;
use crate::network::{self, SecretKeeper, SecretUse, secret_value};
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
        Secrets::Set(asked) => {
            let (name, said) = asked.said();
            let terms = SecretUse::from(said.clone());
            let terms = terms.terms(&name, said.days).map_err(|failure| example(failure, &name))?;
            let value = secret_value(&name, hidden_value(&name, output).await?)?;
            let store = compose::store(paths).await?;
            let keeper = SecretKeeper::new(paths, &*store.database, session::WHO);
            told_set(&keeper.set(terms, value).await?.into(), output)?;
        }
        Secrets::Ls { .. } => {
            let store = compose::store(paths).await?;
            let all = network::kept(&*store.database).await?.into_iter().map(Into::into);
            print_secrets(&all.collect::<Vec<_>>(), output)?;
        }
        Secrets::Grants { name, .. } => {
            let store = compose::store(paths).await?;
            let keeper = SecretKeeper::new(paths, &*store.database, session::WHO);
            print_grants(&keeper.existing(&name).await?.into(), output)?;
        }
        Secrets::Rotate { name, .. } => {
            let store = compose::store(paths).await?;
            let keeper = SecretKeeper::new(paths, &*store.database, session::WHO);
            keeper.existing(&name).await?;
            let value = secret_value(&name, hidden_value(&name, output).await?)?;
            told_rotated(&keeper.rotate(&name, value).await?.into(), output)?;
        }
        Secrets::Revoke { name, .. } => {
            let store = compose::store(paths).await?;
            let keeper = SecretKeeper::new(paths, &*store.database, session::WHO);
            told_revoked(&keeper.revoke(&name).await?.into(), output)?;
        }
    }
    Ok(0)
}

impl Set {
    /// Its name, and what is said of it; its value is asked for behind that.
    pub(super) fn said(self) -> (String, SetSecret) {
        let said = SetSecret {
            value: String::new(),
            hosts: self.places,
            git: self.git,
            branches: self.branch,
            fetch_only: self.fetch_only,
            methods: self.method,
            headers: self.header,
            queries: self.query,
            fields: self.field,
            mints: self.mints,
            aws_key_id: self.aws,
            webhook: self.webhook,
            days: self.days,
        };
        (self.name, said)
    }
}

/// How it is said where a secret is sent.
pub(super) fn example(failure: Failure, name: &str) -> Failure {
    failure
        .hint(format!("To a service: `outrigger secrets set {name} --for api.example.com`."))
        .hint(format!(
            "To a repository: `outrigger secrets set {name} --git https://github.com/OWNER/NAME`."
        ))
}

/// The value, which nothing shows.
pub(super) async fn hidden_value(name: &str, output: Output) -> Outcome<Zeroizing<String>> {
    let prompt = (!output.quiet).then(|| format!("the value of {name} (it is not shown): "));
    hidden_line(prompt).await
}

pub(super) fn told_set(secret: &SecretInfo, output: Output) -> Outcome {
    let name = &secret.name;
    if secret.grants.is_empty() {
        let text = format!("● {name} is kept, and verifies what is sent to webhooks that name it");
        return told(secret, &text, output);
    }
    told(secret, &format!("● {name} is kept, and sent to {} alone", places_of(secret)), output)?;
    let hint = format!(
        "  commands use it with `outrigger run --secret {name}`, or `/net secret:{name}` in a conversation"
    );
    Screen::new(output).note(Tone::Detail, hint);
    Ok(())
}

pub(super) fn told_rotated(secret: &SecretInfo, output: Output) -> Outcome {
    told(secret, &format!("● {} has another value now", secret.name), output)
}

pub(super) fn told_revoked(secret: &SecretInfo, output: Output) -> Outcome {
    let text = format!("● {} is forgotten, and sent nowhere any more", secret.name);
    told(secret, &text, output)
}

pub(super) fn print_secrets(all: &[SecretInfo], output: Output) -> Outcome {
    if output.json.is_some() {
        let secrets: Vec<Value> = all.iter().map(object).collect();
        return show::line(&json!({ "type": "secrets", "secrets": secrets }));
    }
    let width = all.iter().map(|secret| secret.name.len()).max().unwrap_or(0);
    for secret in all {
        let name = &secret.name;
        let set = show::when(secret.changed_ms);
        show::row(&format!("{name:width$}  set {set}{}  {}", ends(secret), places_of(secret)))?;
    }
    if all.is_empty() {
        let text = "no secrets; `outrigger secrets set NAME --for HOST` keeps one";
        Screen::new(output).note(Tone::Detail, text);
    }
    Ok(())
}

pub(super) fn print_grants(secret: &SecretInfo, output: Output) -> Outcome {
    if output.json.is_some() {
        return show::line(&object(secret));
    }
    secret.grants.iter().try_for_each(|grant| show::row(&inert(&row(grant))))
}

/// A place in a line.
fn row(grant: &SecretGrant) -> String {
    let or = |all: &[String], none: &str| match all.is_empty() {
        true => none.to_owned(),
        false => all.join(" "),
    };
    let methods = or(&grant.methods, "any method");
    let paths = or(&grant.paths, "any path");
    let mut row = format!("{}:{}  {methods}  {paths}", grant.host, grant.port);
    let mut more = |before: &str, all: &[String], between: &str| {
        if !all.is_empty() {
            row.push_str(&format!("  {before}{}", all.join(between)));
        }
    };
    more("?", &grant.required_queries, "&");
    more("in ", &grant.headers, ", ");
    more("as field ", &grant.fields, ", ");
    more("answered with ", &grant.mints, ", ");
    more("signing as ", grant.aws_key_id.as_slice(), "");
    let queries: Vec<String> = grant.queries.iter().map(|name| format!("?{name}=")).collect();
    more("as ", &queries, ", ");
    more("pushing ", grant.refs.as_deref().unwrap_or_default(), " ");
    row
}

fn ends(secret: &SecretInfo) -> String {
    match secret.ends_ms {
        None => String::new(),
        Some(ends) if ends <= now_ms() => "  ended".to_owned(),
        Some(ends) => format!("  until {}", show::when(ends)),
    }
}

/// Where it is sent, in a few words.
fn places_of(secret: &SecretInfo) -> String {
    inert(&secret.places.join(", "))
}

fn object(secret: &SecretInfo) -> Value {
    let mut object = json!(secret);
    object["type"] = json!("secret");
    object
}

fn told(secret: &SecretInfo, text: &str, output: Output) -> Outcome {
    Screen::new(output).note(Tone::Good, text);
    if output.json.is_some() {
        show::line(&object(secret))?;
    }
    Ok(())
}
