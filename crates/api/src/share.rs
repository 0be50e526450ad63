//! With whom a session is shared, who is there, and what somebody may do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What somebody may do in a session that is not theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShareAccess {
    /// Nothing, not even know of it.
    None,
    /// See everything in it.
    Read,
    /// Speak in it, too, and answer what it asks.
    TakePart,
}

/// With whom a session is shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareInfo {
    /// `person:bob`, `group:ops`, or the organisation, `org:acme`.
    #[schema(pattern = r"^(person|group|org):[!#-+\--~]+$")]
    pub with: String,
    /// What they may do.
    pub access: ShareAccess,
}

/// What the person who asks may do in a session, beside seeing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionRights {
    /// Speak in it, stop it, let it go on.
    pub speak: bool,
    /// Write back its changes, fork it, take it back, end it, share it.
    pub manage: bool,
    /// Remove it for good, once it is over.
    #[serde(default)]
    pub remove: bool,
    /// Answer what it asks.
    pub answer: bool,
}

/// What the person who asks may do on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ServerRights {
    /// Begin sessions.
    pub start: bool,
    /// Change memory and skills, and accept what is proposed for them.
    pub write_memory: bool,
    /// Set secrets.
    pub administer: bool,
    /// See the sessions of everybody.
    pub audit: bool,
}

/// A session that was removed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovedFrame {
    /// Its name.
    pub session: String,
}

/// Who has a session open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PresenceFrame {
    /// Everybody once, by name.
    pub people: Vec<String>,
}

/// Who there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeopleList {
    /// The organisation.
    pub organisation: String,
    /// The person who asks.
    pub you: String,
    /// The people whom the directory names, and those who have a key.
    pub data: Vec<PersonInfo>,
    /// Groups, by name.
    pub groups: Vec<GroupInfo>,
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PersonInfo {
    /// `person:ada`
    pub name: String,
    /// The groups that they are in, also by being in a group that is in it.
    pub groups: Vec<String>,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// People, agents and other groups.
    pub members: Vec<String>,
    /// What it means, where it is a role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}
