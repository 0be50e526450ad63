//! Sets secrets, rotates and revokes them: the gate seals, the store keeps what was sealed.

use outrigger_gate::{SealedSecret, SecretTerms, SecretValue};
use outrigger_store::{Secrets, StoredSecret};
use zeroize::Zeroizing;

use super::caller;
use super::secrets::{KeptSecret, ORGANISATION, kept, repositories};
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::session::now_ms;

/// Keeps secrets, on behalf of a person.
pub(crate) struct SecretKeeper<'a> {
    paths: &'a Paths,
    secrets: &'a dyn Secrets,
    who: &'a str,
}

impl<'a> SecretKeeper<'a> {
    pub(crate) fn new(paths: &'a Paths, secrets: &'a dyn Secrets, who: &'a str) -> Self {
        Self { paths, secrets, who }
    }

    pub(crate) async fn existing(&self, name: &str) -> Outcome<KeptSecret> {
        self.find(name).await?.ok_or_else(|| {
            Failure::new(Kind::NotFound, format!("there is no secret {name}"))
                .hint("`outrigger secrets ls` lists those that there are.")
        })
    }

    /// Whether a message was signed with a secret.
    pub(crate) async fn verifies(
        &self,
        name: &str,
        message: &[u8],
        signature: &[u8],
    ) -> Outcome<bool> {
        let secret = self.existing(name).await?.sealed;
        let verified = caller::gate(self.paths)?.verify(&secret, message, signature).await;
        verified.map_err(failed)
    }

    /// Keeps a secret under its name, instead of the one that had it.
    pub(crate) async fn set(&self, terms: SecretTerms, value: SecretValue) -> Outcome<KeptSecret> {
        let before = self.find(&terms.name).await?;
        let gate = caller::gate(self.paths)?;
        // Another value for another place is another secret: what stood for it stands for nothing.
        let sealed = gate.seal(None, terms, value).await.map_err(failed)?;
        if let Some(before) = before {
            gate.revoke(&before.sealed.id).await.map_err(failed)?;
        }
        self.keep(sealed).await
    }

    /// Gives it another value. Where it is sent stays, and so do placeholders.
    pub(crate) async fn rotate(&self, name: &str, value: SecretValue) -> Outcome<KeptSecret> {
        let before = self.existing(name).await?.sealed;
        let gate = caller::gate(self.paths)?;
        let sealed = gate.seal(Some(&before.id), before.terms, value).await.map_err(failed)?;
        let kept = self.keep(sealed).await?;
        // The next command of each sandbox opens with the new value.
        gate.revoke(&before.id).await.map_err(failed)?;
        Ok(kept)
    }

    /// Forgets it.
    pub(crate) async fn revoke(&self, name: &str) -> Outcome<KeptSecret> {
        let kept = self.existing(name).await?;
        self.secrets.remove_secret(ORGANISATION, name).await?;
        caller::gate(self.paths)?.revoke(&kept.sealed.id).await.map_err(failed)?;
        Ok(kept)
    }

    async fn find(&self, name: &str) -> Outcome<Option<KeptSecret>> {
        Ok(kept(self.secrets).await?.into_iter().find(|secret| secret.stored.name == name))
    }

    async fn keep(&self, sealed: SealedSecret) -> Outcome<KeptSecret> {
        let text = serde_json::to_string(&sealed)
            .map_err(|error| Failure::from_error(Kind::Storage, &error))?;
        let now_ms = now_ms();
        let stored = StoredSecret {
            organisation: ORGANISATION.to_owned(),
            name: sealed.terms.name.clone(),
            sealed: text,
            set_by: self.who.to_owned(),
            created_ms: now_ms,
            changed_ms: now_ms,
        };
        self.secrets.put_secret(stored.clone()).await?;
        Ok(KeptSecret { stored, sealed })
    }
}

/// A value that can be sent.
pub(crate) fn secret_value(name: &str, text: Zeroizing<String>) -> Outcome<SecretValue> {
    SecretValue::new(text).map_err(|why| {
        Failure::new(Kind::Usage, format!("the value of {name} can't be used: {why}"))
    })
}

fn failed(error: outrigger_gate::Error) -> Failure {
    let kind = match error {
        outrigger_gate::Error::Refused(_) => Kind::Usage,
        _ => Kind::SandboxUnavailable,
    };
    Failure::from_error(kind, &error)
}

/// Where a secret is sent, in a few words each.
pub(super) fn places_of(secret: &SealedSecret) -> Vec<String> {
    let places = &secret.terms.places;
    let mut all = Vec::new();
    if secret.terms.verifies {
        all.push("nowhere: it verifies webhooks".to_owned());
    }
    for url in repositories(places).iter().filter(|url| !url.ends_with(".git")) {
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
    all
}
