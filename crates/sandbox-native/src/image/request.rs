//! What an engine asks of the spawner about templates and layers.
//!
//! Owns the messages, and [`Template`], which is also what stands on disk.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ImageDigest;

/// A root filesystem by name: an image, or what a project needs over the host's tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// What [`outrigger_sandbox::DiskOrigin::Template`] names it by.
    pub name: String,
    /// Digests of its layers without their compression, the lowest first.
    pub layers: Vec<ImageDigest>,
    /// Where it came from, in words: a reference as it was asked for, or the kind of archive.
    pub source: String,
    /// The manifest that it was made from. None for a plain root filesystem.
    pub manifest: Option<ImageDigest>,
    /// `NAME=value`, as the image has it: variables of every command, except those that say
    /// where a sandbox has its own places. Nothing else that an image wants to be run with
    /// is kept: no entry point, user, volume or health check.
    pub env: Vec<String>,
    /// The directory that the image wants commands to start in.
    pub workdir: Option<String>,
    /// What is shown of the host.
    pub host: HostPaths,
    /// Milliseconds since 1970, by the host's clock.
    pub made_at_ms: u64,
}

/// What a root shows of the host. One over an image shows what is at another place, and no more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPaths {
    /// Directories and files, read-only, at the same place.
    pub read_only: Vec<PathBuf>,
    /// Directories that are shown at another place, read-only: where it is, and where it is
    /// seen.
    pub elsewhere: Vec<(PathBuf, PathBuf)>,
    /// A path of the host that leads to the workspace: programs that were installed in a
    /// directory of the host name it by its path there.
    pub workspace: Option<PathBuf>,
}

/// One layer to unpack. The blob comes as a descriptor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UnpackRequest {
    /// Where in the file the blob begins.
    pub(crate) offset: u64,
    /// Its length in bytes.
    pub(crate) length: u64,
    /// What its bytes must digest to.
    pub(crate) blob: Option<ImageDigest>,
    /// What the tar stream in it must digest to.
    pub(crate) diff: ImageDigest,
}

/// A request about images.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ImageRequest {
    /// Which of these layers are not there.
    Missing(Vec<ImageDigest>),
    /// Unpack a layer, unless it is there.
    Unpack(UnpackRequest),
    /// Keep a template whose layers are there, in place of one of that name.
    Save(Template),
    /// All templates, sorted by name.
    List,
    /// Forget a template, and delete layers that nothing stands on any more.
    Remove(String),
}

/// An answer to one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ImageAnswer {
    /// To `Missing`, and to `Save` if layers are gone in the meantime.
    Missing(Vec<ImageDigest>),
    /// To `UnpackRequest`, with the number of device nodes and FIFOs that were left out.
    Unpacked { left_out: u64 },
    /// To `Save` and `Remove`.
    Done,
    /// To `List`.
    List(Vec<Template>),
}

/// Whether a template can have that name: as the name of a sandbox, and not that of
/// the built-in one.
pub(crate) fn is_name(name: &str) -> bool {
    outrigger_sandbox::SandboxId::new(name).is_ok() && name != HOST_TOOLS
}

/// Whether a template stands over the host's tools: the built-in one, and those whose name
/// begins with its name and a dot.
#[must_use]
pub(crate) fn is_over_host_tools(name: &str) -> bool {
    name.strip_prefix(HOST_TOOLS).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a template is that of a project, made and removed by itself.
#[must_use]
pub fn is_of_project(name: &str) -> bool {
    [HOST_TOOLS, OVER_IMAGE]
        .iter()
        .any(|base| name.strip_prefix(base).is_some_and(|rest| rest.starts_with('.')))
}

/// The built-in template, which is no image.
pub(crate) const HOST_TOOLS: &str = "host-tools";

/// What names of templates begin with that stand over an image and hold what a project needs.
pub(crate) const OVER_IMAGE: &str = "image";
