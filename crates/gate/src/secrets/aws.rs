//! Requests that are signed with a key instead of showing it: AWS Signature Version 4
//! (docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
//!
//! Owns that a request which a sandbox signed with its placeholder is signed anew with the
//! secret. The sandbox's own signature is verified first: whatever it agrees with is what both
//! sides understand by the request.

use aws_lc_rs::{digest, hmac};
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue};
use hyper::http::request::Parts;

use super::encodings;
use crate::host::Target;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: &str = "x-amz-date";
const PAYLOAD: &str = "x-amz-content-sha256";
/// A body in signed pieces: each would have to be signed anew.
const PIECES: &str = "STREAMING-AWS4";

/// What a signature says that it is of.
#[derive(Debug)]
pub(crate) struct AwsSignature {
    key_id: String,
    /// Day, region, service and `aws4_request`.
    scope: String,
    signed: Vec<String>,
    signature: String,
    /// How the path is written in what is signed.
    path: PathForm,
}

/// S3 takes a path as it is sent; all others encode it once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathForm {
    Sent,
    Encoded,
}

impl AwsSignature {
    /// That of a request, if it has one.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let rest = value.strip_prefix(ALGORITHM)?;
        let field = |name: &str| {
            rest.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
        };
        let (key_id, scope) = field("Credential")?.split_once('/')?;
        let mut signed: Vec<String> =
            field("SignedHeaders")?.split(';').map(str::to_owned).collect();
        signed.sort();
        Some(Self {
            key_id: key_id.to_owned(),
            scope: scope.to_owned(),
            signed,
            signature: field("Signature")?.to_owned(),
            path: PathForm::Encoded,
        })
    }

    pub(crate) fn is_by(&self, key_id: &str) -> bool {
        self.key_id == key_id
    }

    /// Whether the body has to be read to know what was signed.
    pub(crate) fn needs_body(headers: &HeaderMap) -> bool {
        !headers.contains_key(PAYLOAD)
    }

    /// Looks whether it was made with a key. Gives it with what was found out on the way.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn verified(
        mut self,
        key: &str,
        head: &Parts,
        target: &Target,
        body: &[u8],
    ) -> Result<Self, &'static str> {
        let pieces = head.headers.get(PAYLOAD).and_then(|value| value.to_str().ok());
        if pieces.is_some_and(|payload| payload.starts_with(PIECES)) {
            return Err("its body is signed piece by piece, which is not done anew");
        }
        for path in [PathForm::Encoded, PathForm::Sent] {
            self.path = path;
            if self.sign(key, head, target, body).as_deref() == Some(self.signature.as_str()) {
                return Ok(self);
            }
        }
        Err("it is not signed with the placeholder of the secret")
    }

    /// The header for the request as it is now, signed with a key.
    pub(crate) fn header(
        &self,
        key: &str,
        head: &Parts,
        target: &Target,
        body: &[u8],
    ) -> Option<HeaderValue> {
        let signature = self.sign(key, head, target, body)?;
        let (id, scope, signed) = (&self.key_id, &self.scope, self.signed.join(";"));
        let text = format!(
            "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={signed}, Signature={signature}"
        );
        HeaderValue::try_from(text).ok()
    }

    fn sign(&self, key: &str, head: &Parts, target: &Target, body: &[u8]) -> Option<String> {
        let request = self.canonical(head, target, body)?;
        let date = head.headers.get(DATE)?.to_str().ok()?;
        let hash = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
        let text = format!("{ALGORITHM}\n{date}\n{}\n{hash}", self.scope);
        let mut key = format!("AWS4{key}").into_bytes();
        for part in self.scope.split('/') {
            key = mac(&key, part);
        }
        Some(hex(&mac(&key, &text)))
    }

    fn canonical(&self, head: &Parts, target: &Target, body: &[u8]) -> Option<String> {
        let path = match self.path {
            PathForm::Sent => head.uri.path().to_owned(),
            PathForm::Encoded => {
                head.uri.path().split('/').map(encodings::url).collect::<Vec<_>>().join("/")
            }
        };
        let mut query: Vec<String> = head.uri.query().map_or_else(Vec::new, |query| {
            let pair = |pair: &str| match pair.contains('=') {
                true => pair.to_owned(),
                false => format!("{pair}="),
            };
            query.split('&').map(pair).collect()
        });
        query.sort();
        let mut headers = String::new();
        for name in &self.signed {
            let values: Vec<String> = match name.as_str() == HOST.as_str() {
                true => vec![target.authority()],
                false => {
                    let values = head.headers.get_all(name).iter();
                    let text = |value: &HeaderValue| {
                        let words: Vec<_> = value.to_str().ok()?.split(' ').collect();
                        let words = words.into_iter().filter(|word| !word.is_empty());
                        Some(words.collect::<Vec<_>>().join(" "))
                    };
                    values.map(text).collect::<Option<_>>()?
                }
            };
            headers.push_str(&format!("{name}:{}\n", values.join(",")));
        }
        let payload = match head.headers.get(PAYLOAD) {
            Some(value) => value.to_str().ok()?.to_owned(),
            None => hex(digest::digest(&digest::SHA256, body).as_ref()),
        };
        let (method, query, signed) = (&head.method, query.join("&"), self.signed.join(";"));
        Some(format!("{method}\n{path}\n{query}\n{headers}\n{signed}\n{payload}"))
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;
    use crate::host::Host;
    use crate::network::Scheme;

    /// The example of the documentation, with the signature that it gives.
    #[test]
    fn the_documented_example_is_signed_as_it_is_there() {
        let credential = "AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request";
        let signature = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=content-type;host;x-amz-date, Signature={signature}"
        );
        let request = Request::builder()
            .uri("/?Action=ListUsers&Version=2010-05-08")
            .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
            .header("x-amz-date", "20150830T123600Z")
            .header("authorization", authorization);
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        let host = Host::parse("iam.amazonaws.com").unwrap();
        let target = Target { scheme: Scheme::Https, host, port: 443 };
        let found = AwsSignature::of(&head.headers).unwrap();
        assert!(found.is_by("AKIDEXAMPLE") && !found.is_by("AKID"));
        let key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let found = found.verified(key, &head, &target, b"").unwrap();
        let again = found.header(key, &head, &target, b"").unwrap();
        assert_eq!(Some(&again), head.headers.get(AUTHORIZATION));
        let other = AwsSignature::of(&head.headers).unwrap();
        other.verified("another key", &head, &target, b"").unwrap_err();
        // As a sandbox signs it, and what becomes of that.
        let by_sandbox = found.header("placeholder", &head, &target, b"").unwrap();
        assert_ne!(by_sandbox, again);
        head.headers.insert(AUTHORIZATION, by_sandbox);
        let found = AwsSignature::of(&head.headers).unwrap();
        let found = found.verified("placeholder", &head, &target, b"").unwrap();
        assert_eq!(found.header(key, &head, &target, b""), Some(again));
    }
}
