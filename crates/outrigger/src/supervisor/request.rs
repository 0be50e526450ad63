//! What the harness asks of its supervisor, and what it hears.

use outrigger_agent::SessionId;
use outrigger_sandbox::{Capabilities, Error as SandboxError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What can be started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartRequest {
    /// The gate of the data directory.
    Gate,
    /// The spawner of native sandboxes.
    Spawner,
    /// Nothing: what native sandboxes can be here is found out, and their directory is made.
    Prepare,
    /// The command of `[notify]`.
    Notify,
    /// The build of an image, from the Dockerfile on standard input.
    Build(DockerBuild),
    /// The Docker engine writes an image to standard output.
    Save { image: String },
    /// This program drives a session, left to itself.
    Detached { session: SessionId },
    /// Nothing: a host is written into the configuration.
    AllowHost { host: String },
}

/// How an image is built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DockerBuild {
    /// A directory within one that the harness works in.
    pub(crate) context: PathBuf,
    pub(crate) target: Option<String>,
    pub(crate) args: BTreeMap<String, String>,
}

/// What comes back, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Failed(String),
    Started,
    Ended { success: bool, status: String, written: String },
    Prepared(Box<Result<Capabilities, SandboxError>>),
    Written(PathBuf),
}
