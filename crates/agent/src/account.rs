//! Accounts above the session, and why an effect is withheld although the rules permit it.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::{Digest, Measure};

/// Names an account that sessions are charged to: `org`, or `user:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccountId(String);

impl AccountId {
    /// The one that everything is charged to.
    #[must_use]
    pub fn organisation() -> Self {
        Self("org".to_owned())
    }

    /// A user's. A principal such as `person:ada` is the user `ada`; one whose name is none
    /// of an account goes by the digest of it.
    #[must_use]
    pub fn user(principal: &str) -> Self {
        let name = principal.strip_prefix("person:").unwrap_or(principal);
        let digest = || Self(format!("user:{}", Digest::of(name.as_bytes())));
        Self::parse(&format!("user:{name}")).unwrap_or_else(digest)
    }

    /// Reads `org` or `user:NAME`, of at most 256 bytes. Nothing for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.strip_prefix("user:").unwrap_or(if text == "org" { text } else { "" });
        let plain = !name.is_empty() && text.len() <= 256 && !name.contains(char::is_control);
        plain.then(|| Self(text.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a user's.
    #[must_use]
    pub fn is_user(&self) -> bool {
        self.0 != "org"
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why an effect that the rules permit is not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// The account that stands against it; nothing for the session's own budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// What stands against it.
    pub cause: Cause,
}

/// What stands against an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It does not fit into the limit.
    Limit(Measure),
    /// It fits, and crosses a limit from which on a person is asked.
    Soft(Measure),
    /// Money is limited, and nobody said what the model costs.
    Unpriced,
    /// A person stopped everything of the account.
    Stopped {
        /// Why.
        reason: String,
    },
}

impl Shortfall {
    /// The rule that asks where a soft limit is crossed, as people see it.
    pub const RULE: &'static str = "budget.soft";

    /// Of the session's own budget.
    #[must_use]
    pub fn of_session(cause: Cause) -> Self {
        Self { account: None, cause }
    }

    /// The name of the level: an account, or `session`.
    #[must_use]
    pub fn level(&self) -> &str {
        self.account.as_ref().map_or("session", AccountId::as_str)
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match &self.account {
            None => "the session".to_owned(),
            Some(account) => format!("`{account}`"),
        };
        match &self.cause {
            Cause::Limit(measure) => {
                write!(f, "the next step would exceed the limit on the {} of {of}", measure.words())
            }
            Cause::Soft(measure) => {
                write!(f, "the next step crosses the soft limit on the {} of {of}", measure.words())
            }
            Cause::Unpriced => {
                write!(f, "the money of {of} is limited, and the model's price is not known")
            }
            Cause::Stopped { reason } if reason.is_empty() => write!(f, "{of} was stopped"),
            Cause::Stopped { reason } => write!(f, "{of} was stopped: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, reads) in [
            ("org", true),
            ("user:ada", true),
            ("user:", false),
            ("", false),
            ("ada", false),
            ("team:a", false),
            ("user:a\nb", false),
        ] {
            assert_eq!(AccountId::parse(text).is_some(), reads, "{text:?}");
        }
        assert_eq!(AccountId::user("person:ada").as_str(), "user:ada");
        for principal in ["", "person:", "person:a\nb", &"long".repeat(99)] {
            let account = AccountId::user(principal);
            assert_eq!(AccountId::parse(account.as_str()), Some(account), "{principal:?}");
        }
        assert_ne!(AccountId::user("a\nb"), AccountId::user("a\nc"));
    }
}
