//! What a provider says of a person.
//!
//! Owns the name that a person has here. It can't become the name of somebody who did not come by
//! the provider unless that name was written down in the provider's form: a name that people make
//! up has neither `@` nor `/`.

use serde_json::{Map, Value};

use crate::{Error, limits};

/// What a provider says of a person: verified, and still from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenClaims(pub(crate) Map<String, Value>);

/// Which claim names a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameClaim {
    /// `email`, where the provider says that it verified it: `ada@example.com`.
    Email,
    /// `preferred_username`, behind the host of the issuer: `id.example.com/ada`.
    PreferredUsername,
    /// `sub`, behind the host of the issuer.
    Subject,
}

impl TokenClaims {
    pub(crate) fn text(&self, claim: &str) -> Option<&str> {
        self.0.get(claim).and_then(Value::as_str)
    }

    /// Who it is, as the provider alone knows them, for ever.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.text("sub").unwrap_or_default()
    }

    /// The address that the provider says it verified, in small letters.
    #[must_use]
    pub fn verified_email(&self) -> Option<String> {
        let is_verified = match self.0.get("email_verified")? {
            Value::Bool(is) => *is,
            // Some providers write it so.
            Value::String(is) => is == "true",
            _ => false,
        };
        let email = self.text("email").filter(|_| is_verified)?.to_ascii_lowercase();
        let (user, domain) = email.rsplit_once('@')?;
        let is_plain = !user.is_empty() && !domain.is_empty() && !email.contains('/');
        (is_plain && !user.contains('@')).then_some(email)
    }

    /// The values of a claim of texts: that of this name, or else what is within, as
    /// `realm_access.roles` is.
    #[must_use]
    pub fn values(&self, claim: &str) -> Vec<&str> {
        let within = || {
            let mut parts = claim.split('.');
            let first = self.0.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(part))
        };
        match self.0.get(claim).or_else(within) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(all)) => {
                all.iter().filter_map(Value::as_str).take(limits::GROUPS_MAX).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The name of the person here. `host`: of the issuer.
    ///
    /// # Errors
    /// [`Error::Claims`] if the provider does not say it, or says what can't be a name.
    pub fn name(&self, claim: NameClaim, host: &str) -> Result<String, Error> {
        let name = match claim {
            NameClaim::Email => self.verified_email().ok_or_else(|| {
                let text = "the provider says no e-mail address that it verified (`email`, `email_verified`), and that is what people are called by here";
                Error::Claims(text.to_owned())
            })?,
            NameClaim::PreferredUsername => {
                let said = self.text("preferred_username").filter(|said| !said.is_empty());
                let said = said.ok_or_else(|| {
                    Error::Claims("the provider says no `preferred_username`".to_owned())
                })?;
                format!("{host}/{said}")
            }
            NameClaim::Subject => format!("{host}/{}", self.subject()),
        };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b',' && byte != b'"';
        if name.len() > limits::NAME_BYTES_MAX || !name.bytes().all(is_plain) {
            let text = format!(
                "the provider calls this person by a name that can't be one here: at most {} letters, digits and punctuation of ASCII, without spaces, commas and quotation marks",
                limits::NAME_BYTES_MAX
            );
            return Err(Error::Claims(text));
        }
        Ok(name)
    }

    /// Whether something is said under a name.
    pub(crate) fn has(&self, claim: &str) -> bool {
        let first = claim.split('.').next().unwrap_or(claim);
        self.0.contains_key(claim) || self.0.contains_key(first)
    }

    /// Adds what else the provider says of the same person. What was signed stays.
    pub(crate) fn add(&mut self, more: Map<String, Value>) {
        for (name, value) in more {
            self.0.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn claims(value: Value) -> TokenClaims {
        TokenClaims(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_name_is_of_the_providers_form_or_there_is_none() {
        let mut text = String::new();
        for said in [
            json!({ "email": "Ada@Example.com", "email_verified": true }),
            json!({ "email": "ada@example.com", "email_verified": "true" }),
            json!({ "email": "ada@example.com", "email_verified": false }),
            json!({ "email": "ada@example.com" }),
            json!({ "email": "local", "email_verified": true }),
            json!({ "email": "id.example/ada@x", "email_verified": true }),
            json!({ "email": "a@b@example.com", "email_verified": true }),
            json!({ "email": "a b@example.com", "email_verified": true }),
            json!({ "sub": "1", "preferred_username": "local" }),
            json!({ "sub": "1", "preferred_username": "ada@example.com" }),
            json!({ "sub": "1", "preferred_username": "группа" }),
            json!({ "sub": "1", "preferred_username": "" }),
        ] {
            let claims = claims(said);
            let claim = match claims.subject() {
                "" => NameClaim::Email,
                _ => NameClaim::PreferredUsername,
            };
            let name = claims.name(claim, "id.example").unwrap_or_else(|_| "-".to_owned());
            text += &format!("{name}\n");
        }
        expect![[r#"
            ada@example.com
            ada@example.com
            -
            -
            -
            -
            -
            -
            id.example/local
            id.example/ada@example.com
            -
            -
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn groups_are_where_the_claim_says() {
        let claims = claims(json!({
            "groups": ["/ops", 7, "law"], "one": "x", "https://a.example/groups": ["y"],
            "realm_access": { "roles": ["admin"] }, "odd": { "a": 1 },
        }));
        assert_eq!(claims.values("groups"), ["/ops", "law"]);
        assert_eq!(claims.values("one"), ["x"]);
        assert_eq!(claims.values("https://a.example/groups"), ["y"]);
        assert_eq!(claims.values("realm_access.roles"), ["admin"]);
        assert!(claims.values("odd").is_empty() && claims.values("none.at.all").is_empty());
    }
}
