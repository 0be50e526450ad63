//! The secrets of a session: which words name them, and what programs are told of them.

use outrigger_engine::HostRules;
use outrigger_gate::{SealedSecret, SecretPlace};
use outrigger_policy::HostVerdict;
use outrigger_store::{Secrets, StoredSecret};
use std::collections::{BTreeMap, BTreeSet};

use super::words::named;
use crate::exit::{Failure, Kind, Outcome};

/// Whose the secrets of this machine are, as long as there is one organisation.
pub(crate) const ORGANISATION: &str = "org";

/// A secret that is kept.
#[derive(Debug, Clone)]
pub(crate) struct KeptSecret {
    pub(crate) stored: StoredSecret,
    pub(crate) sealed: SealedSecret,
}

/// All that are kept, by name.
pub(crate) async fn kept(secrets: &dyn Secrets) -> Outcome<Vec<KeptSecret>> {
    let all = secrets.secrets(ORGANISATION).await?;
    let read = |stored: StoredSecret| match serde_json::from_str(&stored.sealed) {
        Ok(sealed) => Ok(KeptSecret { stored, sealed }),
        Err(error) => {
            let text = format!("the secret {} can't be read: {error}", stored.name);
            Err(Failure::new(Kind::Storage, text)
                .hint(format!("`outrigger secrets set {}` sets it anew.", stored.name)))
        }
    };
    all.into_iter().map(read).collect()
}

/// Whether the secrets are there that words name.
pub(crate) async fn secrets_are_there(secrets: &dyn Secrets, words: &[String]) -> Outcome {
    let wanted: BTreeSet<&str> = named(words).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let kept = kept(secrets).await?;
    let is_missing = |name: &&str| !kept.iter().any(|secret| secret.stored.name == *name);
    match wanted.into_iter().find(is_missing) {
        None => Ok(()),
        Some(name) => Err(Failure::new(Kind::NotFound, format!("there is no secret {name}"))
            .hint(format!(
                "`outrigger secrets set {name} --for HOST` sets it, and asks for its value."
            ))
            .hint("`outrigger secrets ls` lists those that there are.")),
    }
}

/// The secrets of a session, as the rules have it now.
#[derive(Debug, Default)]
pub(super) struct SessionSecrets {
    pub(super) given: Vec<SealedSecret>,
    /// Which are not, and why, a sentence each.
    pub(super) withheld: Vec<String>,
}

/// Those of the words that are there. One that was revoked is not: programs see none then.
pub(super) async fn of_words(
    secrets: &dyn Secrets,
    words: &[String],
    rules: &HostRules,
) -> Result<SessionSecrets, String> {
    let mut all = SessionSecrets::default();
    let wanted: BTreeSet<&str> = named(words).collect();
    if wanted.is_empty() {
        return Ok(all);
    }
    let kept = kept(secrets).await.map_err(|failure| failure.message)?;
    for secret in kept.into_iter().filter(|it| wanted.contains(it.stored.name.as_str())) {
        match forbidden(rules, &secret) {
            None => all.given.push(secret.sealed),
            Some(why) => {
                all.withheld.push(format!("{} is not sent anywhere. {why}", secret.stored.name));
            }
        }
    }
    Ok(all)
}

/// Why a secret may not go to one of its places, if it may not.
fn forbidden(rules: &HostRules, secret: &KeptSecret) -> Option<String> {
    let mut grants = secret.sealed.terms.places.iter().map(|place| &place.grant);
    grants.find_map(|grant| {
        match rules.judge_secret(&secret.stored.name, &grant.host, grant.port) {
            HostVerdict::Forbid(why) => Some(why),
            HostVerdict::Permit | HostVerdict::Ask => None,
        }
    })
}

/// The variables by which programs find placeholders: each under the name of its secret, and
/// git as it asks for a password of a repository.
pub(super) fn variables(
    secrets: &[SealedSecret],
    placeholders: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let (mut settings, mut all) = (Vec::new(), placeholders);
    for secret in secrets {
        let key_id = secret.terms.places.iter().find_map(|place| place.aws_key_id.clone());
        if let Some(key_id) = key_id {
            all.insert("AWS_ACCESS_KEY_ID".to_owned(), key_id);
        }
        // git runs it with `get`, `store` or `erase` (gitcredentials(7)).
        let helper = format!(
            "!f() {{ test \"$1\" = get && printf 'username=x-access-token\\npassword=%s\\n' \"${}\"; }}; f",
            secret.terms.name
        );
        for url in repositories(&secret.terms.places) {
            settings.push((format!("credential.{url}.helper"), helper.clone()));
        }
    }
    if settings.is_empty() {
        return all;
    }
    all.insert("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
    all.insert("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned());
    for (number, (key, value)) in settings.into_iter().enumerate() {
        all.insert(format!("GIT_CONFIG_KEY_{number}"), key);
        all.insert(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    all
}

/// The repositories among places, in every spelling that is granted.
pub(crate) fn repositories(places: &[SecretPlace]) -> BTreeSet<String> {
    let places = places.iter().filter(|place| place.refs.is_some());
    let url = |place: &SecretPlace| {
        let (host, port) = (place.grant.host.clone(), place.grant.port);
        let authority = if port == 443 { host } else { format!("{host}:{port}") };
        let paths = place.grant.paths.clone().into_iter();
        paths.filter_map(move |path| {
            Some(format!("https://{authority}{}", path.strip_suffix("/info/refs")?))
        })
    };
    places.flat_map(url).collect()
}
