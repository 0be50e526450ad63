//! Sandboxes that people make and drive themselves, without an agent.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{HostFlow, VerdictKind, object};

/// Makes a sandbox: of a template, or with the disk of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CreateSandbox {
    /// The root filesystem, by its name among the templates; the usual one if absent.
    pub template: Option<String>,
    /// The snapshot with whose disk it begins, instead of a template.
    pub snapshot: Option<String>,
    /// What it is for, for people.
    #[schema(max_length = 100)]
    pub label: String,
    /// What its commands may reach, in the words of `--net`: `packages`, hosts, `secret:NAME`, or
    /// `none` alone. As the server's configuration says of sandboxes if absent.
    pub network: Option<Vec<String>>,
    /// What it may take; all that this server allows where nothing is said.
    #[serde(deserialize_with = "object::one")]
    pub limits: SandboxLimits,
    /// Suspended when it was not used for so long, its disk kept: 1 to 315,360,000. 900 if absent.
    #[schema(minimum = 1, maximum = 315_360_000)]
    pub idle_seconds: Option<u64>,
    /// Removed so long after it was made, whatever runs in it: 1 to 315,360,000.
    #[schema(minimum = 1, maximum = 315_360_000)]
    pub age_seconds: Option<u64>,
}

/// What a sandbox may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxLimits {
    /// Memory of all processes together, in MiB.
    #[schema(minimum = 16)]
    pub memory_mib: Option<u64>,
    /// Processor time, in thousandths of a core.
    #[schema(minimum = 10)]
    pub cpu_millis: Option<u32>,
    /// Processes and threads at once.
    #[schema(minimum = 8)]
    pub pids: Option<u32>,
    /// What its disk may hold, in MiB.
    #[schema(minimum = 1)]
    pub disk_mib: Option<u64>,
}

/// A sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxInfo {
    /// Its name.
    pub id: String,
    /// Whose it is.
    pub person: String,
    /// What it is for.
    pub label: String,
    /// What it does.
    pub state: SandboxState,
    /// The template that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The snapshot that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// What its commands may reach, in the words of `--net`; nothing without a word, or with `none`.
    pub network: Vec<String>,
    /// What it may take.
    pub limits: SandboxLimits,
    /// Suspended when it was not used for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
    /// Removed so long after it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    /// When it was made.
    pub created_ms: u64,
    /// When it was last made, attached to or suspended.
    pub used_ms: u64,
    /// Whether whoever asks may run commands in it and change it.
    pub may_drive: bool,
}

/// What a sandbox does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// Commands can run.
    Running,
    /// Its processes are stopped and kept in memory; the next command lets them go on.
    Frozen,
    /// Nothing of it runs, its disk is kept; the next request resumes it.
    Cold,
    /// It ended without being asked to; its disk is there, and the next request starts it over that.
    Dead,
}

/// Sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SandboxList {
    /// The newest first.
    pub data: Vec<SandboxInfo>,
}

/// Says what a sandbox reaches from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetNetwork {
    /// In the words of `--net`, all of them; `none` for nothing.
    pub network: Vec<String>,
}

/// Something that a sandbox reached, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxFlow {
    /// When it was noted, milliseconds since 1970: the command that did it was over then.
    pub at_ms: u64,
    /// Whether it passed: `permit` or `forbid`.
    pub verdict: VerdictKind,
    /// Host, port, what let it pass or refused it, how much.
    #[serde(flatten)]
    pub flow: HostFlow,
}

/// What a sandbox reached, and what was refused to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SandboxFlowList {
    /// The newest first, 1,000 at most.
    pub data: Vec<SandboxFlow>,
}

/// Suspends a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuspendSandbox {
    /// How deeply.
    pub how: SuspendDepth,
}

/// How deeply a sandbox is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuspendDepth {
    /// Its processes stop and stay in memory.
    Frozen,
    /// Nothing of it runs; its disk is kept.
    #[default]
    Cold,
}

/// Keeps the disk of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TakeSnapshot {
    /// What it is for, for people.
    #[schema(max_length = 100)]
    pub label: String,
}

/// A disk that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotInfo {
    /// Its name.
    pub id: String,
    /// Whose it is.
    pub person: String,
    /// What it is for.
    pub label: String,
    /// The sandbox that it was taken of, which may be gone.
    pub sandbox: String,
    /// When.
    pub taken_ms: u64,
}

/// Snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    /// The newest first.
    pub data: Vec<SnapshotInfo>,
}

/// Makes another sandbox with the disk of one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ForkSandbox {
    /// A snapshot of it; as it is now if absent.
    pub snapshot: Option<String>,
    /// What the new one is for, for people.
    #[schema(max_length = 100)]
    pub label: String,
}

/// What a sandbox can be made from here, and how large.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct TemplateList {
    /// The templates, the usual one first.
    pub data: Vec<TemplateInfo>,
    /// The most that a sandbox may take.
    pub limits: SandboxLimits,
}

/// A root filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TemplateInfo {
    /// Its name.
    pub name: String,
    /// What it was made of: an image, or a file.
    pub source: String,
}
