//! How a program is let in by a person who is logged in elsewhere.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How people log in, beside by a link that the server makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginWays {
    /// Where they have accounts, if that is known here.
    pub provider: Option<LoginProviderInfo>,
}

/// Where people have accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginProviderInfo {
    /// What people call it.
    pub name: String,
    /// Where a browser begins; `next` says which page of this server it leads to.
    pub url: String,
}

/// Begins to let a program in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginLogin {
    /// What it is, for the person who looks at it, for example `ada@laptop`.
    pub label: String,
}

/// A program that waits to be let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceLogin {
    /// By which the program asks for its key; it shows it to nobody.
    pub device_code: String,
    /// What the program shows, and the person looks for.
    pub code: String,
    /// Where the person says that it is theirs.
    pub url: String,
    /// After so long nobody is let in with it.
    pub expires_in_seconds: u64,
    /// How long the program waits between its questions.
    pub poll_seconds: u64,
}

/// Asks for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PollLogin {
    /// As it was given.
    pub device_code: String,
}

/// Whether a program is let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum LoginState {
    /// Nobody answered yet.
    Waiting,
    /// It is: the key is given out this once.
    Granted {
        /// The key.
        key: String,
        /// As whom it acts.
        person: String,
        /// Until when.
        expires_ms: u64,
    },
    /// Somebody refused it.
    Refused,
}

/// What a person sees of a program that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginRequest {
    /// What the program shows, too.
    pub code: String,
    /// What it says that it is.
    pub label: String,
    /// Until when it waits.
    pub until_ms: u64,
}

/// Answers a program that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerLogin {
    /// Yes or no.
    pub answer: LoginAnswer,
}

/// Whether a program may act as a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoginAnswer {
    /// It is theirs.
    Allow,
    /// It is not.
    Refuse,
}
