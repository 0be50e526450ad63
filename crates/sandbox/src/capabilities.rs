//! What a backend can do, as data.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::Suspend;

/// How a sandbox is kept apart from its host. Ordered: a later one isolates more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// No isolation at all: an in-memory fake, for tests only.
    Fake,
    /// Namespaces with a single user id, made without root.
    RootlessSingle,
    /// A container of a daemon: namespaces and a user without rights, whose id means the
    /// same on the host. That user is not the one who holds what the sandbox must not have.
    Container,
    /// Namespaces with subordinate ids, made without root.
    RootlessRange,
    /// Namespaces with a user id range of its own for each sandbox, made by root.
    RootRange,
    /// A container over a kernel of its own in user space: gVisor.
    Gvisor,
}

/// Its name, as it is serialised.
impl fmt::Display for Isolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Fake => "fake",
            Self::RootlessSingle => "rootless_single",
            Self::Container => "container",
            Self::RootlessRange => "rootless_range",
            Self::RootRange => "root_range",
            Self::Gvisor => "gvisor",
        })
    }
}

/// What the network of a sandbox can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// No interface but an unconnected loopback.
    None,
    /// As [`NetworkMode::None`], and on that loopback a listener whose connections somebody
    /// outside takes ([`crate::Networks`]).
    Gate,
}

/// How the limit of a sandbox's disk is kept to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskLimit {
    /// Not at all.
    None,
    /// Usage is looked at again and again: a command that passes the limit is killed
    /// ([`crate::End::DiskFull`]) after what it wrote in between.
    Watched,
    /// By the filesystem, to the block.
    Exact,
}

/// One layer of the isolation: whether it is active here and what its absence means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Short name, for example `seccomp`.
    pub name: String,
    /// Whether sandboxes made here have it.
    pub active: bool,
    /// What is there, or what is missing and what would fix it.
    pub detail: String,
}

/// What a backend offers on this host. Asking for what it lacks gives
/// [`crate::Error::Unsupported`] with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Name of the backend, for example `native`.
    pub backend: String,
    /// How its sandboxes are kept apart.
    pub isolation: Isolation,
    /// Network modes on offer.
    pub network: Vec<NetworkMode>,
    /// Whether memory, process and CPU limits are enforced by the kernel.
    pub resource_limits: bool,
    /// Whether running commands survive the end of the process that asked for them.
    pub reattach: bool,
    /// Ways to suspend, shallowest first.
    pub suspend: Vec<Suspend>,
    /// Whether disks can be kept, and sandboxes made from what was kept.
    pub snapshots: bool,
    /// How the limit of a disk is kept to.
    pub disk_limit: DiskLimit,
    /// Whether trees can be served into its sandboxes ([`crate::CreateSpec::served`]).
    pub live_mounts: bool,
    /// Whether commands can have a terminal.
    pub terminal: bool,
    /// Layers of the isolation, for `doctor` and the journal.
    pub layers: Vec<Layer>,
}
