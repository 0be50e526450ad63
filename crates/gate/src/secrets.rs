//! The secrets of a sandbox, and what is done with them in requests and answers.
//!
//! Owns where a placeholder is swapped for its secret, and that it goes nowhere else. The
//! rules that grant a place are in `rules`.

mod aws;
mod encodings;
mod fields;
mod headers;
mod replace;
mod shape;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use zeroize::Zeroizing;

use headers::PlacedSecret;
use shape::placeholder;

pub(crate) use aws::AwsSignature;
pub(crate) use replace::{Replacer, Replacing};

use crate::host::Target;
use crate::limits;
use crate::network::Grant;
use crate::rule::{RequestLine, Rule};
use crate::secret::{SealedSecret, SecretPlace};

/// A secret as the gate has it for one sandbox.
#[derive(Clone)]
pub(crate) struct HeldSecret {
    id: String,
    name: String,
    placeholder: String,
    value: Zeroizing<String>,
    places: Vec<HeldPlace>,
    ends_ms: Option<u64>,
    /// The secret with which a host was asked for it.
    minted_from: Option<String>,
    /// Makes placeholders of the sandbox.
    minter: Arc<Minter>,
}

/// What makes placeholders of a sandbox.
pub(crate) struct Minter {
    pub(crate) key: hmac::Key,
    pub(crate) sandbox: String,
}

#[derive(Debug, Clone)]
struct HeldPlace {
    rule: Rule,
    place: SecretPlace,
}

/// All of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    held: Vec<HeldSecret>,
    /// `None`: there are no secrets.
    replacers: Option<Replacers>,
}

/// What finds secrets on their way.
#[derive(Debug)]
struct Replacers {
    /// Placeholders, in what goes out.
    placeholders: Replacer,
    /// Secrets, in what comes in.
    values: Replacer,
}

/// What became of a request's head.
#[derive(Debug, Default)]
pub(crate) struct Swapped {
    /// The ids of the secrets that were put in.
    pub(crate) ids: Vec<String>,
    /// The refs that may be pushed with them, where the place is a repository.
    pub(crate) refs: Option<Vec<String>>,
    /// A signature to be made anew, and the place of the secret among those of the sandbox.
    pub(crate) signs: Option<(usize, AwsSignature)>,
}

/// Why a request with a placeholder is not sent, in words.
#[derive(Debug)]
pub(crate) struct Misplaced(pub(crate) String);

impl HeldSecret {
    pub(crate) fn new(
        secret: &SealedSecret,
        value: Zeroizing<String>,
        minter: Minter,
    ) -> Result<Self, String> {
        let placeholder = placeholder(&minter.key, &minter.sandbox, &secret.id, &value);
        let name = format!("secret {}", secret.terms.name);
        let places = secret.terms.places.iter().map(|place| {
            let grant = Grant { name: name.clone(), ..place.grant.clone() };
            Ok(HeldPlace { rule: Rule::new(&grant)?, place: place.clone() })
        });
        Ok(Self {
            id: secret.id.clone(),
            name: secret.terms.name.clone(),
            placeholder,
            value,
            places: places.collect::<Result<_, String>>()?,
            ends_ms: secret.terms.ends_ms,
            minted_from: None,
            minter: Arc::new(minter),
        })
    }

    /// A secret that a host answered with. `None`: it is too short to be told from other text.
    fn mint(&self, value: String) -> Option<Self> {
        let value = Zeroizing::new(value);
        let id = format!("{}\0{}", self.id, value.as_str());
        let placeholder = placeholder(&self.minter.key, &self.minter.sandbox, &id, &value);
        let plain = value.bytes().all(|byte| byte.is_ascii_graphic());
        // Its id is no secret: what it is made of is.
        let id = format!("{}/{placeholder}", self.id);
        let minted_from = Some(self.minted_from.clone().unwrap_or_else(|| self.id.clone()));
        let minted = Self { id, placeholder, value, minted_from, ..self.clone() };
        (plain && minted.placeholder.len() == minted.value.len()).then_some(minted)
    }

    fn has_ended(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.ends_ms.is_some_and(|end| now >= u128::from(end))
    }

    /// The place of a request, if it is one of the secret's. What is said of a repository holds
    /// for it, whatever is said of its host.
    fn place(&self, target: &Target, asked: RequestLine<'_>) -> Option<&SecretPlace> {
        let allowing = self.places.iter().filter(|it| it.rule.allows(target, asked));
        let place = allowing.max_by_key(|it| it.place.refs.is_some())?;
        let is_of_git = |it: &HeldPlace| it.place.refs.is_some() && it.rule.is_for(target);
        // Of a repository that has a place, another spelling of its path has none.
        if place.place.refs.is_none() && pushes(asked) && self.places.iter().any(is_of_git) {
            return None;
        }
        (!self.has_ended()).then_some(&place.place)
    }

    fn misplaced(&self, target: &Target) -> Misplaced {
        let (name, host) = (&self.name, target.authority());
        if self.has_ended() {
            return Misplaced(format!("the secret {name} has ended; it has to be set again."));
        }
        Misplaced(format!(
            "the placeholder of {name} is in a request to {host} where the secret is not sent; `outrigger secrets ls` shows where it is."
        ))
    }
}

fn content_type(head: &Parts) -> &str {
    let value = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// Whether a request is one of git's for a push, in any spelling.
fn pushes(asked: RequestLine<'_>) -> bool {
    let has = |text: &str| text.to_ascii_lowercase().contains("git-receive-pack");
    has(asked.path) || asked.query.is_some_and(has)
}

impl std::fmt::Debug for HeldSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldSecret").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Secrets {
    pub(crate) fn new(held: Vec<HeldSecret>) -> Result<Self, String> {
        if held.len() > limits::SECRETS_MAX {
            return Err(format!("a sandbox has at most {} secrets", limits::SECRETS_MAX));
        }
        if held.is_empty() {
            return Ok(Self::default());
        }
        let placeholder = |secret: &'_ HeldSecret| secret.placeholder.clone();
        let placeholders: Vec<_> = held.iter().map(placeholder).collect();
        let find = placeholders.iter().map(|it| (it.as_str(), ""));
        let values = held.iter().map(|it| (it.value.as_str(), it.placeholder.as_str()));
        let replacers =
            Replacers { placeholders: Replacer::new(find)?, values: Replacer::new(values)? };
        Ok(Self { held, replacers: Some(replacers) })
    }

    /// What they grant.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.held.iter().flat_map(|secret| secret.places.iter().map(|place| &place.rule))
    }

    /// What programs have instead, by the names of secrets.
    pub(crate) fn shown(&self) -> BTreeMap<String, String> {
        let given = self.held.iter().filter(|secret| secret.minted_from.is_none());
        given.map(|it| (it.name.clone(), it.placeholder.clone())).collect()
    }

    /// The others. `None`: there is no such secret.
    pub(crate) fn without(&self, id: &str) -> Option<Self> {
        let is_other =
            |secret: &&HeldSecret| secret.id != id && secret.minted_from.as_deref() != Some(id);
        let others: Vec<_> = self.held.iter().filter(is_other).cloned().collect();
        (others.len() < self.held.len()).then(|| Self::new(others).unwrap_or_default())
    }

    /// Those that were minted of one of these.
    pub(crate) fn minted_of(&self, secrets: &Self) -> Vec<HeldSecret> {
        let minted = self
            .held
            .iter()
            .filter(|secret| secret.minted_from.as_deref().is_some_and(|id| secrets.has(id)));
        minted.cloned().collect()
    }

    /// With more that were minted. The oldest of those make room.
    pub(crate) fn with(&self, minted: Vec<HeldSecret>) -> Result<Self, String> {
        let (old, given): (Vec<_>, Vec<_>) =
            self.held.iter().cloned().partition(|secret| secret.minted_from.is_some());
        let is_new = |secret: &HeldSecret| !minted.iter().any(|it| it.id == secret.id);
        let mut all: Vec<_> = old.into_iter().filter(is_new).chain(minted.clone()).collect();
        let room = limits::SECRETS_MAX.saturating_sub(given.len());
        all.drain(..all.len().saturating_sub(room));
        Self::new(given.into_iter().chain(all).collect())
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.held.iter().any(|secret| secret.id == id)
    }

    /// Finds placeholders in the body of a request. `None`: the sandbox has none.
    pub(crate) fn placeholders(&self) -> Option<&Replacer> {
        self.replacers.as_ref().map(|replacers| &replacers.placeholders)
    }

    /// Turns secrets in an answer back into their placeholders. `None`: the host gets none.
    pub(crate) fn values(&self, target: &Target) -> Option<&Replacer> {
        let sent = self.rules().any(|rule| rule.is_for(target));
        self.replacers.as_ref().filter(|_| sent).map(|replacers| &replacers.values)
    }

    /// Puts secrets into the head of a request where they belong.
    ///
    /// # Errors
    /// Where a placeholder is anywhere else.
    pub(crate) fn swap(&self, target: &Target, head: &mut Parts) -> Result<Swapped, Misplaced> {
        let mut swapped = Swapped::default();
        let Some(finder) = self.placeholders() else { return Ok(swapped) };
        let uri = head.uri.clone();
        let method = head.method.clone();
        let asked = RequestLine { method: method.as_str(), path: uri.path(), query: uri.query() };
        for (index, secret) in self.held.iter().enumerate() {
            let Some(place) = secret.place(target, asked) else { continue };
            if let Some(key_id) = &place.aws_key_id {
                let signature = AwsSignature::of(&head.headers).filter(|it| it.is_by(key_id));
                if let Some(signature) = signature {
                    swapped.ids.push(secret.id.clone());
                    swapped.signs = Some((index, signature));
                }
                continue;
            }
            swapped.refs = swapped.refs.or_else(|| place.refs.clone());
            let (placeholder, value) = (secret.placeholder.as_str(), secret.value.as_str());
            if headers::swap(PlacedSecret { placeholder, value, place }, head) {
                swapped.ids.push(secret.id.clone());
            }
        }
        let uri = head.uri.to_string();
        let names = head.headers.keys().map(|name| name.as_str().as_bytes());
        let values = head.headers.values().map(HeaderValue::as_bytes);
        let left = names.chain(values).chain([uri.as_bytes()]).find_map(|it| finder.first(it));
        match left.and_then(|index| self.held.get(index)) {
            Some(secret) => Err(secret.misplaced(target)),
            None => Ok(swapped),
        }
    }

    /// Whether a secret may be in the body of a request.
    pub(crate) fn reads_body(&self, target: &Target, head: &Parts) -> bool {
        fields::are_in(content_type(head))
            && self.placed(target, head).any(|(_, place)| !place.fields.is_empty())
    }

    /// Puts secrets into the fields of a body. Gives the body, and their ids.
    pub(crate) fn swap_body(
        &self,
        target: &Target,
        head: &Parts,
        body: &[u8],
    ) -> (Zeroizing<Vec<u8>>, Vec<String>) {
        let (mut body, mut ids) = (Zeroizing::new(body.to_vec()), Vec::new());
        for (secret, place) in self.placed(target, head) {
            let (placeholder, value) = (secret.placeholder.as_str(), secret.value.as_str());
            let placed = PlacedSecret { placeholder, value, place };
            if let Some(with) = fields::swap(placed, content_type(head), &body) {
                body = with;
                ids.push(secret.id.clone());
            }
        }
        (body, ids)
    }

    /// What an answer to a request with these secrets may have that is one itself: names in it.
    pub(crate) fn mints(&self, target: &Target, head: &Parts, ids: &[String]) -> Vec<String> {
        let placed = self.placed(target, head).filter(|(secret, _)| ids.contains(&secret.id));
        placed.flat_map(|(_, place)| place.mints.clone()).collect()
    }

    /// The secrets in an answer to a request with these.
    pub(crate) fn minted(&self, ids: &[String], names: &[String], body: &[u8]) -> Vec<HeldSecret> {
        let Some(secret) = self.held.iter().find(|secret| ids.contains(&secret.id)) else {
            return Vec::new();
        };
        fields::values(names, body).into_iter().filter_map(|value| secret.mint(value)).collect()
    }

    /// The secrets that may be in a request, each with its place.
    fn placed<'a>(
        &'a self,
        target: &'a Target,
        head: &'a Parts,
    ) -> impl Iterator<Item = (&'a HeldSecret, &'a SecretPlace)> {
        let (method, uri) = (head.method.as_str(), &head.uri);
        let asked = RequestLine { method, path: uri.path(), query: uri.query() };
        self.held.iter().filter_map(move |secret| Some((secret, secret.place(target, asked)?)))
    }

    /// Signs a request anew. `change` is what becomes of the head between the signature that
    /// came and the one that goes.
    pub(crate) fn sign(
        &self,
        (index, signature): (usize, AwsSignature),
        target: &Target,
        head: &mut Parts,
        body: &[u8],
        change: impl FnOnce(&mut Parts),
    ) -> Result<(), Misplaced> {
        let Some(secret) = self.held.get(index) else { return Ok(()) };
        let not = |why: &str| Misplaced(format!("the request is not signed anew: {why}."));
        let signature = signature.verified(&secret.placeholder, head, target, body).map_err(not)?;
        change(head);
        let value = signature.header(&secret.value, head, target, body);
        let value = value.ok_or_else(|| not("a header of it can't be read"))?;
        head.headers.insert(AUTHORIZATION, value);
        Ok(())
    }
}
