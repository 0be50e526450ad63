//! Where disks begin.
//!
//! Owns the way from an origin to the layers that a disk stands on.

use outrigger_sandbox::{DiskOrigin, Error};

use super::layer::Layer;
use super::snapshots::SnapshotIndex;
use super::template;
use crate::image::request::{HOST_TOOLS, is_over_host_tools};
use crate::spawner::error::backend;
use crate::spawner::rootfs::Base;
use crate::spawner::store::Store;

/// What a disk stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LayerStack {
    /// The template at the bottom.
    pub(crate) template: String,
    /// Newest first, those of the template included.
    pub(crate) layers: Vec<Layer>,
}

/// What the root of a disk with this template is made over.
pub(crate) fn base_of(template: &str) -> Base {
    if is_over_host_tools(template) { Base::HostTools } else { Base::Image }
}

impl LayerStack {
    /// What a disk that begins here stands on.
    pub(crate) fn of(
        origin: &DiskOrigin,
        store: &Store,
        snapshots: &SnapshotIndex,
    ) -> Result<Self, Error> {
        let absent =
            |what: &str, name: &str| Error::Absent { what: what.to_owned(), name: name.to_owned() };
        match origin {
            DiskOrigin::Template(name) if name == HOST_TOOLS => {
                Ok(Self { template: name.clone(), layers: Vec::new() })
            }
            DiskOrigin::Template(name) => {
                let found = template::load(store, name)?;
                let template = found.ok_or_else(|| absent("template", name))?;
                // They stand in an image with the lowest first.
                let layers = template.layers.iter().rev().map(Layer::of_image);
                let layers = layers
                    .collect::<std::io::Result<_>>()
                    .map_err(|error| backend("cannot name the layers", &error))?;
                Ok(Self { template: name.clone(), layers })
            }
            DiskOrigin::Snapshot(name) => {
                let kept =
                    snapshots.all.get(name).ok_or_else(|| absent("snapshot", name.as_str()))?;
                Ok(Self { template: kept.template.clone(), layers: kept.layers.clone() })
            }
        }
    }
}
