//! Secrets of the organisation: set, and never given back.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretInfo {
    /// The variable in which commands look for it.
    pub name: String,
    /// Who set it last.
    pub set_by: String,
    /// When it was set first.
    pub created_ms: u64,
    /// When it was set last.
    pub changed_ms: u64,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_ms: Option<u64>,
    /// Where it is sent, in a few words each.
    pub places: Vec<String>,
    /// Where it is sent, in full. Nowhere for one that signs what others send.
    #[serde(default)]
    pub grants: Vec<SecretGrant>,
}

/// One place that a secret is sent to, and how. Nothing in a list means all, where it limits a
/// request, and none, where it is a place in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct SecretGrant {
    /// A host, `*.example.com` for those beneath it, or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The methods that it is sent with.
    pub methods: Vec<String>,
    /// The paths that it is sent to, `*` for any characters.
    pub paths: Vec<String>,
    /// Each `name=value` that the query of a request must have.
    pub required_queries: Vec<String>,
    /// The headers that it is sent in; none: `authorization`, and any whose whole value it is.
    pub headers: Vec<String>,
    /// The parameters of the query that it may be.
    pub queries: Vec<String>,
    /// The fields of a body that it may be.
    pub fields: Vec<String>,
    /// What in an answer is a secret, too.
    pub mints: Vec<String>,
    /// The key of AWS that requests are signed by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_key_id: Option<String>,
    /// What may be pushed, where it is a repository: names of refs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refs: Option<Vec<String>>,
}

/// All secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SecretList {
    /// By name.
    pub data: Vec<SecretInfo>,
}

/// Keeps a secret, and says where it is sent. One of that name is replaced.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SetSecret {
    /// Its value: a line of printable ASCII without spaces.
    #[schema(required, pattern = "^[!-~]+$", min_length = 8, max_length = 8_192)]
    pub value: String,
    /// Hosts, or URLs beneath which it is sent: `api.example.com`, `https://example.com/v1/*`.
    #[serde(rename = "for")]
    #[schema(example = json!(["api.example.com"]))]
    pub hosts: Vec<String>,
    /// Repositories of git, to fetch and to push: `https://github.com/OWNER/NAME`.
    pub git: Vec<String>,
    /// What may be pushed there; `agent/*` if none is named.
    pub branches: Vec<String>,
    /// Nothing is pushed.
    pub fetch_only: bool,
    /// With these methods alone.
    pub methods: Vec<String>,
    /// In these headers alone.
    pub headers: Vec<String>,
    /// As these parameters of the query, too.
    pub queries: Vec<String>,
    /// As these fields of a form or of a JSON object, too.
    pub fields: Vec<String>,
    /// What has this name in a JSON answer is a secret, too.
    pub mints: Vec<String>,
    /// It is the secret of this key of AWS: requests are signed with it, and it is not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_key_id: Option<String>,
    /// It is what another system signs its messages to webhooks with. It is sent nowhere.
    pub webhook: bool,
    /// It stops being sent after so many days, from 1 to 36,500.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 36_500)]
    pub days: Option<u64>,
}

/// Gives a secret another value.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateSecret {
    /// The value: a line of printable ASCII without spaces.
    #[schema(pattern = "^[!-~]+$", min_length = 8, max_length = 8_192)]
    pub value: String,
}

/// Without its value, which no log may have.
impl fmt::Debug for SetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetSecret").field("for", &self.hosts).finish_non_exhaustive()
    }
}

/// As above.
impl fmt::Debug for RotateSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotateSecret").finish_non_exhaustive()
    }
}
