//! What nobody needs any more.
//!
//! Owns the question what a crash left behind: containers that make volumes for a
//! process that is gone, volumes that no record names, guest programs of another
//! version, and sandboxes that their keeper does not name or that are too old. Asks
//! the daemon only for what carries the owner's label, so nothing else is seen.

use std::collections::BTreeSet;

use outrigger_sandbox::{Error, SandboxId};

use crate::backend::{Inner, now_ms};
use crate::names::{self, Part, Store};
use crate::store::{self, Disk};
use crate::{guest, maker};

/// How much was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Sandboxes with their disks.
    pub sandboxes: usize,
    /// Containers of other kinds.
    pub containers: usize,
    /// Volumes of other kinds.
    pub volumes: usize,
}

impl Inner {
    /// See [`crate::Docker::collect`].
    pub(crate) async fn collect(
        &self,
        keep: impl Fn(&SandboxId) -> bool,
    ) -> Result<Collected, Error> {
        let containers = self.collect_makers().await?;
        let sandboxes = self.collect_sandboxes(keep).await?;
        let volumes = self.collect_volumes().await?;
        Ok(Collected { sandboxes, containers, volumes })
    }

    async fn collect_makers(&self) -> Result<usize, Error> {
        let mut removed = 0;
        for container in self.engine.containers(&[(names::PART, Part::Maker.as_str())]).await? {
            let labels = container.labels.unwrap_or_default();
            let label = |name: &str| labels.get(name).map_or("", String::as_str);
            let made_ms = u64::try_from(container.created.unwrap_or(0)).unwrap_or(0) * 1000;
            let age_ms = now_ms().saturating_sub(made_ms);
            let left = maker::is_left(label(names::PROCESS), label(names::MAKING), age_ms);
            if let (true, Some(id)) = (left, container.id) {
                self.engine.remove(&id).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    async fn collect_sandboxes(&self, keep: impl Fn(&SandboxId) -> bool) -> Result<usize, Error> {
        let kind = (names::KIND, "disk");
        let records = self.engine.volumes(&[kind, (names::PART, Part::Record.as_str())]).await?;
        let mut known = BTreeSet::new();
        let mut unwanted = BTreeSet::new();
        for record in records {
            let Some(id) = record.labels.get(names::ID) else { continue };
            let Ok(id) = SandboxId::new(id.clone()) else { continue };
            let disk = store::found::<Disk>(&self.engine, &record.name, &record.labels)?.record;
            let age_ms = now_ms().saturating_sub(disk.made_at_ms);
            let old = disk.age_ms_max.is_some_and(|max| age_ms > max);
            if old || !keep(&id) {
                unwanted.insert(id.clone());
            }
            known.insert(id);
        }
        // A container without a record is what an interrupted end left.
        let part = (names::PART, Part::Container.as_str());
        for container in self.engine.containers(&[kind, part]).await? {
            let id = container.labels.and_then(|labels| labels.get(names::ID).cloned());
            if let Some(Ok(id)) = id.map(SandboxId::new)
                && !known.contains(&id)
            {
                unwanted.insert(id);
            }
        }
        for id in &unwanted {
            self.end(id).await?;
        }
        Ok(unwanted.len())
    }

    /// Volumes that no record names. Those that something uses the daemon keeps.
    async fn collect_volumes(&self) -> Result<usize, Error> {
        let all = self.engine.volumes(&[]).await?;
        let part = |part: Part| {
            move |labels: &&crate::engine::Labels| {
                labels.get(names::PART).is_some_and(|found| found == part.as_str())
            }
        };
        let records = all.iter().map(|volume| &volume.labels).filter(part(Part::Record));
        let named: BTreeSet<&String> =
            records.filter_map(|labels| labels.get(names::MAKING)).collect();
        let mut removed = 0;
        for volume in &all {
            let is_record = part(Part::Record)(&&volume.labels);
            let named = volume.labels.get(names::MAKING).is_some_and(|it| named.contains(it));
            if !is_record && !named && self.engine.remove_volume(&volume.name).await? {
                removed += 1;
            }
        }
        let ours = guest::store(self.config.guest);
        let programs = all.iter().filter(|volume| {
            let label = |name: &str| volume.labels.get(name).map(String::as_str);
            part(Part::Record)(&&volume.labels)
                && label(names::KIND) == Some(ours.kind())
                && label(names::ID) != Some(ours.id())
        });
        for record in programs {
            let Some(digest) = record.labels.get(names::ID) else { continue };
            // A volume of it that a container uses stays until that is gone.
            store::remove(&self.engine, &Store::Guest(digest.clone())).await?;
            removed += 1;
        }
        Ok(removed)
    }
}
