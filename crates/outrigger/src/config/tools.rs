//! `[tools.NAME]`: servers outside whose tools a session has, and what is known of them.
//!
//! What a tool does to the world is said here and nowhere else: what its server says of it
//! is not believed. A stronger file's table of a name takes the place of the weaker one's
//! whole, so that no key reaches an address that it was not meant for.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::collections::{BTreeMap, BTreeSet};

use super::range::Whole;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// A name of a server, which becomes part of names of tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerName(pub(crate) String);

impl<'de> Deserialize<'de> for ServerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let max = limits::SERVER_NAME_CHARS_MAX;
        let fits = (1..=max).contains(&name.len()) && name.bytes().all(plain);
        // Two underscores stand between the parts of a tool's name.
        if !fits || name.contains("__") || name.starts_with('_') || name.ends_with('_') {
            return Err(D::Error::custom(format!(
                "invalid name `{}`, expected 1 to {max} characters of a-z 0-9 and single _ within",
                name.escape_debug().take(60).collect::<String>()
            )));
        }
        Ok(Self(name))
    }
}

/// One table.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerFile {
    pub(crate) url: Option<String>,
    pub(crate) token_env: Option<String>,
    pub(crate) headers_env: BTreeMap<String, String>,
    pub(crate) allow: Option<BTreeSet<String>>,
    pub(crate) read_only: BTreeSet<String>,
    pub(crate) idempotent: BTreeSet<String>,
    pub(crate) concurrent: bool,
    pub(crate) timeout_seconds_max: Option<Whole<1, 3_600>>,
    pub(crate) result_bytes_max: Option<Whole<1_000, 1_000_000>>,
}

/// A server as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) token_env: Option<String>,
    pub(crate) headers_env: BTreeMap<String, String>,
    /// `None`: all that it has.
    pub(crate) allow: Option<BTreeSet<String>>,
    pub(crate) read_only: BTreeSet<String>,
    pub(crate) idempotent: BTreeSet<String>,
    pub(crate) concurrent: bool,
    pub(crate) timeout_ms: u64,
    pub(crate) result_bytes_max: usize,
}

impl Server {
    fn of(ServerName(name): ServerName, file: ServerFile) -> Outcome<Self> {
        let Some(url) = file.url else {
            return Err(wrong(&name, "has no `url`"));
        };
        if let Some(both) = file.read_only.intersection(&file.idempotent).next() {
            return Err(wrong(
                &name,
                &format!("says of `{both}` that it only reads and that it acts"),
            ));
        }
        if let Some(allow) = &file.allow
            && let Some(other) =
                file.read_only.union(&file.idempotent).find(|tool| !allow.contains(*tool))
        {
            return Err(wrong(&name, &format!("speaks of `{other}`, which `allow` leaves out")));
        }
        let timeout_ms = file.timeout_seconds_max.map(|it| it.get() * 1_000);
        let result = file.result_bytes_max.map(|it| it.get() as usize);
        Ok(Self {
            name,
            url,
            token_env: file.token_env,
            headers_env: file.headers_env,
            allow: file.allow,
            read_only: file.read_only,
            idempotent: file.idempotent,
            concurrent: file.concurrent,
            timeout_ms: timeout_ms.unwrap_or(limits::OUTSIDE_MS_DEFAULT),
            result_bytes_max: result.unwrap_or(outrigger_tools::limits::OUTSIDE_BYTES_DEFAULT),
        })
    }
}

/// Puts a stronger file's servers among the weaker ones'.
pub(crate) fn absorb(
    all: &mut BTreeMap<String, Server>,
    files: BTreeMap<ServerName, ServerFile>,
) -> Outcome {
    for (name, file) in files {
        let server = Server::of(name, file)?;
        all.insert(server.name.clone(), server);
    }
    let max = limits::SERVERS_MAX;
    if all.len() > max {
        let text = format!("{} servers of tools are configured, {max} are the most", all.len());
        return Err(Failure::new(Kind::Usage, text));
    }
    Ok(())
}

fn wrong(name: &str, what: &str) -> Failure {
    Failure::new(Kind::Usage, format!("[tools.{name}] {what}"))
        .hint("docs/how-to/outside-tools.md shows how a server is configured.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn read(text: &str) -> Result<BTreeMap<String, Server>, String> {
        let files = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let mut all = BTreeMap::new();
        absorb(&mut all, files).map_err(|failure| failure.message)?;
        Ok(all)
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut said = String::new();
        for text in [
            "[git__hub]\nurl = 'x'",
            "[\"Git Hub\"]\nurl = 'x'",
            "[a]",
            "[a]\nurl = 'x'\nread_only = ['t']\nidempotent = ['t']",
            "[a]\nurl = 'x'\nallow = ['u']\nread_only = ['t']",
            "[a]\nurl = 'x'\ntimeout_seconds_max = 0",
            "[a]\nurl = 'x'\ntoken = 'secret'",
        ] {
            let error = read(text).unwrap_err();
            said += &format!("{}\n", error.lines().next().unwrap_or_default());
        }
        expect![[r#"
            invalid name `git__hub`, expected 1 to 24 characters of a-z 0-9 and single _ within
            invalid name `Git Hub`, expected 1 to 24 characters of a-z 0-9 and single _ within
            [tools.a] has no `url`
            [tools.a] says of `t` that it only reads and that it acts
            [tools.a] speaks of `t`, which `allow` leaves out
            invalid value: integer `0`, expected a whole number from 1 to 3600
            unknown field `token`, expected one of `url`, `token_env`, `headers_env`, `allow`, `read_only`, `idempotent`, `concurrent`, `timeout_seconds_max`, `result_bytes_max`
        "#]].assert_eq(&said);
    }

    #[test]
    fn a_stronger_table_takes_the_place_of_a_weaker_one_whole() {
        let mut all = read("[a]\nurl = 'https://one'\ntoken_env = 'KEY'").unwrap();
        absorb(&mut all, toml::from_str("[a]\nurl = 'https://two'").unwrap()).unwrap();
        assert_eq!((all["a"].url.as_str(), &all["a"].token_env), ("https://two", &None));
    }
}
