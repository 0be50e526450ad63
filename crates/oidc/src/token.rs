//! What an ID token has to be to be believed (OpenID Connect Core 1.0, 3.1.3.7).

use jsonwebtoken::{Header, Validation, decode, decode_header};
use serde_json::{Map, Value};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::claims::TokenClaims;
use crate::keys::{ALGORITHMS, IssuerKeys};
use crate::{Error, limits};

/// What an ID token has to say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenTerms<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) nonce: &'a str,
}

fn refused(why: impl Into<String>) -> Error {
    Error::Token(why.into())
}

/// How a token says that it is signed.
pub(crate) fn header(token: &str) -> Result<Header, Error> {
    let unreadable = |error: jsonwebtoken::errors::Error| refused(format!("its head: {error}"));
    let header = decode_header(token).map_err(unreadable)?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(refused(format!(
            "it is authenticated by {:?}, which is no signature by a public key",
            header.alg
        )));
    }
    if header.crit.is_some() {
        return Err(refused("it says that something has to be understood which nobody knows"));
    }
    Ok(header)
}

/// What a token says, if one of these keys signed it and it is for us, of now, and of this login.
pub(crate) fn verify(
    token: &str,
    header: &Header,
    keys: &IssuerKeys,
    terms: TokenTerms<'_>,
) -> Result<TokenClaims, Error> {
    let key = keys.key(header).ok_or_else(|| refused("it is signed by no key of the provider"))?;
    let mut validation = Validation::new(header.alg);
    validation.leeway = limits::CLOCK_SECONDS_MAX;
    validation.validate_nbf = true;
    validation.set_issuer(&[terms.issuer]);
    validation.set_audience(&[terms.client_id]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let read = decode::<Map<String, Value>>(token, &key, &validation);
    let claims = TokenClaims(read.map_err(|error| refused(error.to_string()))?.claims);
    check(&claims, terms)?;
    Ok(claims)
}

/// What the library does not look at.
fn check(claims: &TokenClaims, terms: TokenTerms<'_>) -> Result<(), Error> {
    // One issuer, and not a list in which it is.
    if claims.text("iss") != Some(terms.issuer) {
        return Err(refused("it is of another issuer"));
    }
    if claims.text("nonce") != Some(terms.nonce) {
        return Err(refused("it is of another login (`nonce`)"));
    }
    let audiences = claims.0.get("aud").and_then(Value::as_array).map_or(1, Vec::len);
    match claims.text("azp") {
        Some(party) if party == terms.client_id => {}
        None if audiences == 1 => {}
        Some(_) | None => return Err(refused("it is for another client (`azp`)")),
    }
    let issued = claims.0.get("iat").and_then(Value::as_f64);
    let issued = issued.ok_or_else(|| refused("it does not say when it was made (`iat`)"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if issued > now.as_secs_f64() + limits::CLOCK_SECONDS_MAX as f64 {
        return Err(refused("it was made in the future (`iat`): are both clocks right?"));
    }
    if claims.subject().is_empty() {
        return Err(refused("it is of nobody (`sub`)"));
    }
    Ok(())
}
