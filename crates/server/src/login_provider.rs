//! What the server asks of whoever knows where people have accounts.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::RequestError;

/// Knows people by an account that they have elsewhere.
#[async_trait]
pub trait LoginProvider: Send + Sync + Debug {
    /// What people call it, if there is one: it stands on a button.
    fn name(&self) -> Option<&str>;

    /// Where a browser is sent that begins to log in. The secret is the browser's alone: all that
    /// it proves when it comes back is made of it.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    async fn begin(&self, secret: &str, redirect_uri: &str) -> Result<String, RequestError>;

    /// Who it is that a browser comes back as.
    ///
    /// # Errors
    /// Where it is not proved, or that person is not let in.
    async fn end(&self, answer: ProviderAnswer<'_>) -> Result<ProviderLogin, RequestError>;

    /// Until when somebody who has an account there is let in, by any key, since they logged in
    /// last; milliseconds since 1970. `None`: they came another way.
    ///
    /// # Errors
    /// What keeps it from being known.
    fn ends_ms(&self, person: &str) -> Result<Option<u64>, RequestError>;
}

/// What a browser comes back with.
#[derive(Debug, Clone, Copy)]
pub struct ProviderAnswer<'a> {
    /// The browser's own.
    pub secret: &'a str,
    /// Where it came back.
    pub redirect_uri: &'a str,
    /// Whose login it is.
    pub state: &'a str,
    /// What its account is found by, or what the provider says instead.
    pub code: Result<&'a str, &'a str>,
    /// Who the provider says that it is.
    pub issuer: Option<&'a str>,
}

/// Who logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderLogin {
    /// Who, for example `person:ada@example.com`.
    pub person: String,
    /// How long the login lasts.
    pub lives_ms: u64,
}
