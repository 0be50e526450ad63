//! Secrets in the head of a request.
//!
//! Owns which text of a head is a placeholder and is swapped: a word of its own in a header
//! that the place names, the user or the password of `Basic` (RFC 7617), or a whole parameter.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use zeroize::Zeroizing;

use super::encodings;
use crate::secret::SecretPlace;

/// A secret and what stands for it, in a place where it is sent.
#[derive(Clone, Copy)]
pub(super) struct PlacedSecret<'a> {
    pub(super) placeholder: &'a str,
    pub(super) value: &'a str,
    pub(super) place: &'a SecretPlace,
}

/// Puts a secret where its placeholder is. Gives whether it was anywhere.
pub(super) fn swap(secret: PlacedSecret<'_>, head: &mut Parts) -> bool {
    let mut swapped = false;
    for (name, value) in &mut head.headers {
        if let Some(with) = in_header(secret, name, value) {
            *value = with;
            swapped = true;
        }
    }
    if let Some(uri) = in_query(secret, &head.uri) {
        head.uri = uri;
        swapped = true;
    }
    swapped
}

fn in_header(
    secret: PlacedSecret<'_>,
    name: &HeaderName,
    value: &HeaderValue,
) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    let usual = secret.place.headers.is_empty();
    let words = secret.place.headers.iter().any(|it| name.as_str() == it)
        || (usual && *name == AUTHORIZATION);
    let with = match () {
        () if words => in_words(secret, text).or_else(|| in_basic(secret, text))?,
        () if usual && text == secret.placeholder => Zeroizing::new(secret.value.to_owned()),
        () => return None,
    };
    let mut with = HeaderValue::try_from(with.as_str()).ok()?;
    with.set_sensitive(true);
    Some(with)
}

/// The text with the secret, where the placeholder is a word of its own.
fn in_words(secret: PlacedSecret<'_>, text: &str) -> Option<Zeroizing<String>> {
    let (before, after) = text.split_once(secret.placeholder)?;
    let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let whole = !before.ends_with(part) && !after.starts_with(part);
    whole.then(|| Zeroizing::new(format!("{before}{}{after}", secret.value)))
}

fn in_basic(secret: PlacedSecret<'_>, text: &str) -> Option<Zeroizing<String>> {
    let (scheme, encoded) = text.split_once(' ')?;
    let bytes = STANDARD.decode(encoded.trim()).ok().map(Zeroizing::new)?;
    let said = std::str::from_utf8(&bytes).ok()?;
    let (user, password) = said.split_once(':')?;
    let of = |part: &str| part == secret.placeholder;
    if !scheme.eq_ignore_ascii_case("basic") || !(of(user) || of(password)) {
        return None;
    }
    let with = |part: &str| {
        Zeroizing::new(if of(part) { secret.value.to_owned() } else { part.to_owned() })
    };
    let said = Zeroizing::new(format!("{}:{}", *with(user), *with(password)));
    Some(Zeroizing::new(format!("Basic {}", STANDARD.encode(said.as_bytes()))))
}

fn in_query(secret: PlacedSecret<'_>, uri: &Uri) -> Option<Uri> {
    let mut found = false;
    let pairs = uri.query()?.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value))
            if value == secret.placeholder && secret.place.queries.iter().any(|it| it == name) =>
        {
            found = true;
            format!("{name}={}", encodings::url(secret.value))
        }
        _ => pair.to_owned(),
    });
    let pairs = Zeroizing::new(pairs.collect::<Vec<_>>().join("&"));
    let path = Zeroizing::new(format!("{}?{}", uri.path(), *pairs));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path.as_str()).ok()?);
    Uri::from_parts(parts).ok().filter(|_| found)
}
