//! Where a secret is sent, as people say it.

use outrigger_gate::{Scheme, SecretPlace, SecretTerms, grant_of, ready};

use super::secrets::ORGANISATION;
use crate::exit::{Failure, Kind, Outcome};
use crate::session::now_ms;

/// What may be pushed with the secret of a repository, if nothing else is said.
const BRANCHES: &str = "agent/*";

/// What a secret is for.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretUse {
    /// Hosts, or URLs beneath which it is sent.
    pub(crate) hosts: Vec<String>,
    /// Repositories, to fetch and to push.
    pub(crate) git: Vec<String>,
    /// What is pushed there; [`BRANCHES`] if none is named.
    pub(crate) branches: Vec<String>,
    /// Nothing is pushed.
    pub(crate) fetch_only: bool,
    /// With these methods alone.
    pub(crate) methods: Vec<String>,
    /// In these headers alone.
    pub(crate) headers: Vec<String>,
    /// As these parameters of the query, too.
    pub(crate) queries: Vec<String>,
    /// As these fields of a body, too.
    pub(crate) fields: Vec<String>,
    /// Fields of an answer that are secrets, too.
    pub(crate) mints: Vec<String>,
    /// The access key of AWS that it is the secret of.
    pub(crate) aws_key_id: Option<String>,
    /// The gate says with it whether a message to a webhook was signed with it.
    pub(crate) webhook: bool,
}

impl SecretUse {
    /// As the gate has it.
    pub(crate) fn terms(&self, name: &str, days: Option<u64>) -> Outcome<SecretTerms> {
        Ok(SecretTerms {
            name: name.to_owned(),
            organisation: ORGANISATION.to_owned(),
            places: self.places()?,
            ends_ms: days.map(|days| now_ms() + days * 24 * 60 * 60 * 1000),
            verifies: self.webhook,
        })
    }

    fn places(&self) -> Outcome<Vec<SecretPlace>> {
        let mut places = Vec::new();
        for said in &self.hosts {
            places.extend(self.host(said)?);
        }
        let branches: Vec<String> = match (self.fetch_only, self.branches.as_slice()) {
            (true, _) => Vec::new(),
            (false, []) => vec![BRANCHES.to_owned()],
            (false, named) => named.to_vec(),
        };
        let refs: Vec<_> = branches.iter().map(|branch| format!("refs/heads/{branch}")).collect();
        for url in &self.git {
            let of_repository = ready::repository(url, &refs).ok_or_else(|| {
                let text = format!("{url}: this is not the address of a repository over HTTPS");
                Failure::new(Kind::Usage, text)
                    .hint("For example https://github.com/OWNER/NAME; `git remote -v` shows it.")
            })?;
            places.extend(of_repository);
        }
        if places.is_empty() && !self.webhook {
            let text = "it has to be sent somewhere: a secret goes where it is for alone";
            return Err(Failure::new(Kind::Usage, text));
        }
        Ok(places)
    }

    fn host(&self, said: &str) -> Outcome<Vec<SecretPlace>> {
        let wrong = |why: String| Failure::new(Kind::Usage, format!("{said}: {why}"));
        let plain = said.starts_with("http://");
        let mut places = Vec::new();
        for mut grant in grant_of(said).map_err(wrong)? {
            // In clear only where it was said so, and never over anybody else's network.
            if grant.scheme == Scheme::Http && !(plain && grant.private) {
                continue;
            }
            grant.methods = self.methods.iter().map(|it| it.to_ascii_uppercase()).collect();
            places.push(SecretPlace {
                grant,
                headers: self.headers.iter().map(|it| it.to_ascii_lowercase()).collect(),
                queries: self.queries.clone(),
                fields: self.fields.clone(),
                mints: self.mints.clone(),
                aws_key_id: self.aws_key_id.clone(),
                refs: None,
            });
        }
        if places.is_empty() {
            return Err(wrong("a secret is sent over TLS alone".to_owned())
                .hint("Write https:// before it."));
        }
        Ok(places)
    }
}
