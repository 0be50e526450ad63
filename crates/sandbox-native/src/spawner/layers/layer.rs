//! The name of a layer.
//!
//! Owns how one is made, and so that it can stand in a path as it is.

use std::io;

use outrigger_sandbox::SnapshotId;
use serde::{Deserialize, Serialize};

use crate::image::ImageDigest;
use crate::spawner::names::random_name;

/// The name of a layer: a plain file name, as a snapshot's is. Those of images are digests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Layer(SnapshotId);

impl Layer {
    pub(crate) fn new(name: impl Into<String>) -> io::Result<Self> {
        SnapshotId::new(name).map(Self).map_err(io::Error::other)
    }

    /// A name that no layer has.
    pub(crate) fn random() -> io::Result<Self> {
        Self::new(random_name()?)
    }

    /// The one with the content of an image's layer.
    pub(crate) fn of_image(digest: &ImageDigest) -> io::Result<Self> {
        Self::new(digest.hex())
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}
