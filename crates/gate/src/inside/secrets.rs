//! Secrets on their way through one request.
//!
//! Owns the order: a placeholder is swapped after the request was granted and before anything
//! is sent, what goes out has none left, and what comes back has no secret.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use hyper::http::request::Parts;

use super::answer::Denial;
use super::push;
use super::session::{Permission, Session};
use super::sieve::{Passage, Sieve, SieveWay, replace};
use crate::flow::Refusal;
use crate::host::Target;
use crate::limits;
use crate::rules::Rules;
use crate::secrets::{AwsSignature, Misplaced, Replacing};

/// Looks after the secrets of a request.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    session: &'a Session,
    passage: Passage,
    /// The secrets that were put in, and what in the answer is a secret by them.
    ids: Vec<String>,
    mints: Vec<String>,
}

impl From<Misplaced> for Denial {
    fn from(misplaced: Misplaced) -> Self {
        Self::new(Refusal::Secret, StatusCode::FORBIDDEN, misplaced.0)
    }
}

impl<'a> Guard<'a> {
    pub(super) fn new(session: &'a Session, permission: &Permission, target: &Target) -> Self {
        let sandbox = Arc::clone(&session.sandbox);
        let rules = Arc::clone(&permission.rules);
        let (target, misplaced) = (target.clone(), Arc::default());
        let passage = Passage { sandbox, rules, target, misplaced, mints: false };
        Self { session, passage, ids: Vec::new(), mints: Vec::new() }
    }

    /// Puts secrets into a request. Gives what was read of its body for that.
    pub(super) async fn begin(
        &mut self,
        head: &mut Parts,
        body: &mut Incoming,
    ) -> Result<Vec<Bytes>, Denial> {
        let rules = Arc::clone(&self.passage.rules);
        let secrets = &rules.secrets;
        if secrets.placeholders().is_none() {
            return Ok(Vec::new());
        }
        let asked = head.clone();
        let path = head.uri.path().to_owned();
        let swapped = secrets.swap(&self.passage.target, head)?;
        self.ids = swapped.ids;
        let mut pieces = Vec::new();
        if secrets.reads_body(&self.passage.target, &asked) {
            let read = whole(body).await?.concat();
            let (read, ids) = secrets.swap_body(&self.passage.target, &asked, &read);
            self.ids.extend(ids);
            head.headers.insert(CONTENT_LENGTH, read.len().into());
            pieces.push(Bytes::from(read.to_vec()));
        }
        self.are_granted()?;
        self.mints = secrets.mints(&self.passage.target, &asked, &self.ids);
        let looked_through = secrets.values(&self.passage.target).is_some();
        let change = |head: &mut Parts| {
            if looked_through {
                // What is encoded can't be looked through.
                head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            }
        };
        if let Some(signs) = swapped.signs {
            if pieces.is_empty() && AwsSignature::needs_body(&head.headers) {
                pieces = whole(body).await?;
            }
            secrets.sign(signs, &self.passage.target, head, &pieces.concat(), change)?;
            return Ok(pieces);
        }
        change(head);
        match swapped.refs {
            Some(refs) if push::is_push(&head.method, &path) => {
                push::check(head, body, &refs).await
            }
            _ => Ok(pieces),
        }
    }

    /// Remembers which secrets the connection has to do with. They may have been revoked before
    /// they were seen with it.
    fn are_granted(&self) -> Result<(), Denial> {
        self.session.targets.add_secrets(self.ids.clone());
        let rules = self.session.sandbox.rules();
        let all = |rules: Arc<Rules>| self.ids.iter().all(|id| rules.secrets.has(id));
        if rules.is_some_and(all) {
            return Ok(());
        }
        let words = "a secret of this request was revoked.";
        Err(Denial::new(Refusal::Secret, StatusCode::FORBIDDEN, words))
    }

    /// Takes the secrets that an answer has for the sandbox. Gives what was read of it.
    pub(super) async fn take_minted(
        &mut self,
        headers: &HeaderMap,
        body: &mut Incoming,
    ) -> Result<Vec<Bytes>, Denial> {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if self.mints.is_empty() || !kind.is_some_and(|kind| kind.contains("json")) {
            return Ok(Vec::new());
        }
        let pieces = whole(body).await?;
        let minted = self.passage.rules.secrets.minted(&self.ids, &self.mints, &pieces.concat());
        // From here on all of the sandbox's connections know them.
        let failed = |words: String| Denial::new(Refusal::Limit, StatusCode::BAD_GATEWAY, words);
        let sandbox = &self.session.sandbox;
        let Some(rules) = sandbox.rules() else {
            let words = "the network of this sandbox is closed.";
            return Err(Denial::new(Refusal::NotGranted, StatusCode::FORBIDDEN, words));
        };
        let rules = rules.with(minted).map_err(failed)?;
        self.passage.rules = sandbox.change(rules);
        self.passage.mints = true;
        Ok(pieces)
    }

    /// What a request's body passes through, if there is something to look for.
    pub(super) fn outside(&self) -> Option<Sieve> {
        self.passage.rules.secrets.placeholders()?;
        Some(self.sieve(SieveWay::Outside))
    }

    /// What an answer's body passes through, after its head did.
    pub(super) fn inside(&self, headers: &mut HeaderMap) -> Result<Option<Sieve>, Denial> {
        let Some(values) = self.passage.rules.secrets.values(&self.passage.target) else {
            return Ok(None);
        };
        let encoded = headers.get_all(CONTENT_ENCODING).iter().any(|value| value != "identity");
        if encoded {
            let words = format!(
                "{} answers in an encoding that can't be looked through for secrets.",
                self.passage.target.host
            );
            return Err(Denial::new(Refusal::Malformed, StatusCode::BAD_GATEWAY, words));
        }
        if replace(values, headers) {
            self.passage.count(Refusal::Echo);
        }
        Ok(Some(self.sieve(SieveWay::Inside)))
    }

    fn sieve(&self, way: SieveWay) -> Sieve {
        Sieve { way, passage: self.passage.clone(), replacing: Replacing::default() }
    }

    /// Whether the body ended the request.
    pub(super) fn misplaced(&self) -> Option<Denial> {
        self.passage.misplaced.load(Ordering::Relaxed).then(|| {
            let words = "the placeholder of a secret is in the body of the request.";
            Denial::new(Refusal::Secret, StatusCode::FORBIDDEN, words)
        })
    }
}

/// All of a body: it has to be signed, or has fields that are secrets.
async fn whole(body: &mut Incoming) -> Result<Vec<Bytes>, Denial> {
    let (mut pieces, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(Denial::malformed("the body breaks off.")) };
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > limits::SIGNED_BODY_BYTES_MAX {
            let words = "the body is longer than what is read whole for the sake of a secret.";
            return Err(Denial::new(Refusal::Limit, StatusCode::PAYLOAD_TOO_LARGE, words));
        }
        pieces.push(data);
    }
    Ok(pieces)
}
