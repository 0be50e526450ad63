//! Who of a provider's people is let in at all.

use std::collections::BTreeSet;

use crate::TokenClaims;

/// Who of a provider's people is let in at all. By itself: nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admission {
    /// Whoever the provider knows.
    pub everybody: bool,
    /// Values of the claim of groups.
    pub groups: BTreeSet<String>,
    /// Domains of e-mail addresses that the provider verified, in small letters.
    pub domains: BTreeSet<String>,
}

impl Admission {
    /// Whether somebody is let in. `groups`: the claim that has them.
    #[must_use]
    pub fn lets_in(&self, claims: &TokenClaims, groups: &str) -> bool {
        let email = claims.verified_email();
        let domain = email.as_deref().and_then(|email| email.rsplit_once('@')).map(|it| it.1);
        self.everybody
            || domain.is_some_and(|domain| self.domains.contains(domain))
            || claims.values(groups).into_iter().any(|group| self.groups.contains(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nobody_is_let_in_who_is_not_meant() {
        let claims = |verified: bool| {
            let said = json!({
                "email": "ada@Example.com", "email_verified": verified, "groups": ["ops"],
            });
            TokenClaims(serde_json::from_value(said).unwrap())
        };
        let of = |text: &str| BTreeSet::from([text.to_owned()]);
        let domain = |name| Admission { domains: of(name), ..Admission::default() };
        let group = |name| Admission { groups: of(name), ..Admission::default() };
        assert!(!Admission::default().lets_in(&claims(true), "groups"));
        assert!(Admission { everybody: true, ..Admission::default() }.lets_in(&claims(false), ""));
        assert!(domain("example.com").lets_in(&claims(true), "groups"));
        assert!(!domain("example.com").lets_in(&claims(false), "groups"));
        assert!(!domain("ample.com").lets_in(&claims(true), "groups"));
        assert!(group("ops").lets_in(&claims(false), "groups"));
        assert!(!group("ops").lets_in(&claims(false), "roles"));
    }
}
