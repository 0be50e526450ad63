//! One login, from where the browser is sent to what it brings back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// A login that a browser began. All that it has to prove later is made of one secret, which only
/// the browser keeps: nothing waits here for those who never come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginAttempt {
    /// Comes back with the browser: whose login it is.
    pub state: String,
    /// Stands in the ID token: of which login it is.
    pub nonce: String,
    /// Shown where the code is exchanged: who began (RFC 7636).
    pub verifier: String,
}

impl LoginAttempt {
    /// The login of a secret.
    #[must_use]
    pub fn of(secret: &str) -> Self {
        // Digests of one secret with different beginnings say nothing of each other.
        let part = |what: &str| {
            URL_SAFE_NO_PAD.encode(Sha256::digest(format!("outrigger login {what} {secret}")))
        };
        Self { state: part("state"), nonce: part("nonce"), verifier: part("verifier") }
    }

    /// What the provider is told of the verifier beforehand (`S256`).
    pub(crate) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(&self.verifier))
    }
}

/// Where a browser is to be sent.
#[derive(Debug, Clone, Copy)]
pub struct AuthorizationRequest<'a> {
    /// The login.
    pub attempt: &'a LoginAttempt,
    /// Where the browser comes back, to the letter as the provider knows it.
    pub redirect_uri: &'a str,
}

/// What a browser brought back.
#[derive(Debug, Clone, Copy)]
pub struct CodeExchange<'a> {
    /// The login that it began.
    pub attempt: &'a LoginAttempt,
    /// Where it came back.
    pub redirect_uri: &'a str,
    /// The code.
    pub code: &'a str,
    /// Who the provider says that it is, if it says so (RFC 9207).
    pub issuer: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_a_secret_does_not_tell_it() {
        let (one, other) = (LoginAttempt::of("a"), LoginAttempt::of("b"));
        let all = [&one.state, &one.nonce, &one.verifier, &other.state, &other.verifier];
        let different: std::collections::BTreeSet<_> = all.into_iter().collect();
        assert_eq!(different.len(), 5);
        assert!((43..=128).contains(&one.verifier.len()), "RFC 7636, 4.1");
        // The example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let known = LoginAttempt { verifier, ..one };
        assert_eq!(known.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
