//! Disks that are kept of sandboxes of people, and what those can be made from.

use async_trait::async_trait;
use outrigger_api::{ProblemCode, SnapshotInfo, TemplateInfo, TemplateList};
use outrigger_sandbox::{DiskOrigin, SandboxId, Snapshot, SnapshotId};
use outrigger_server::{RequestError, SnapshotStore};

use super::records::SnapshotRecord;
use super::{PersonSandboxes, limits};
use crate::command::sandbox::templates;
use crate::compose::HOST_TOOLS;
use crate::limits::PERSON_SNAPSHOTS_MAX;

use super::told;

fn info(record: SnapshotRecord, kept: &Snapshot) -> SnapshotInfo {
    SnapshotInfo {
        id: kept.name.to_string(),
        person: record.person,
        label: record.label,
        sandbox: record.sandbox,
        taken_ms: kept.taken_at_ms,
    }
}

#[async_trait]
impl SnapshotStore for PersonSandboxes {
    async fn take(
        &self,
        sandbox: &SandboxId,
        (person, name): (&str, &SnapshotId),
        label: &str,
    ) -> Result<SnapshotInfo, RequestError> {
        let held = self.known(sandbox)?;
        let _alone = held.snapshot.lock().await;
        let is_new = self.0.snapshots.get(name.as_str()).is_none();
        let all = self.0.snapshots.all();
        let own = all.iter().filter(|(_, record)| record.person == person).count();
        if is_new && own >= PERSON_SNAPSHOTS_MAX {
            let text = format!("you have {own} snapshots, and {PERSON_SNAPSHOTS_MAX} are the most");
            return Err(
                RequestError::new(ProblemCode::RateLimited, text).hint("Remove one of them.")
            );
        }
        let record = SnapshotRecord {
            person: person.to_owned(),
            label: label.to_owned(),
            sandbox: sandbox.to_string(),
        };
        if is_new {
            self.0.snapshots.put(name.as_str(), &record).map_err(told)?;
        }
        let kept = self.context().await?.backend.snapshots()?.take(sandbox, name).await;
        let kept = kept.inspect_err(|_| {
            if is_new {
                self.0.snapshots.remove(name.as_str());
            }
        })?;
        Ok(info(self.0.snapshots.get(name.as_str()).unwrap_or(record), &kept))
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotInfo>, RequestError> {
        let all = self.0.snapshots.all();
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let kept = self.context().await?.backend.snapshots()?.list().await?;
        let known = all.into_iter().filter_map(|(name, record)| {
            kept.iter().find(|kept| kept.name.as_str() == name).map(|kept| info(record, kept))
        });
        let mut known: Vec<_> = known.collect();
        known.sort_by(|one, other| (other.taken_ms, &other.id).cmp(&(one.taken_ms, &one.id)));
        Ok(known)
    }

    fn snapshot_owner(&self, id: &SnapshotId) -> Option<String> {
        self.0.snapshots.get(id.as_str()).map(|record| record.person)
    }

    async fn forget(&self, id: &SnapshotId) -> Result<(), RequestError> {
        self.context().await?.backend.snapshots()?.remove(id).await?;
        self.0.snapshots.remove(id.as_str());
        Ok(())
    }

    async fn templates(&self) -> Result<TemplateList, RequestError> {
        let context = self.context().await?;
        let usual = match &context.spec.origin {
            DiskOrigin::Template(name) => name.as_str(),
            DiskOrigin::Snapshot(_) => HOST_TOOLS,
        };
        let mut data = vec![TemplateInfo { name: usual.to_owned(), source: String::new() }];
        if let Some(native) = &context.native {
            let host = TemplateInfo {
                name: HOST_TOOLS.to_owned(),
                source: "the programs of the server's machine".to_owned(),
            };
            let images = templates::images(native).await?.into_iter();
            let images = images.map(|it| TemplateInfo { name: it.name, source: it.source });
            let all: Vec<_> = [host].into_iter().chain(images).collect();
            let first = all.iter().find(|it| it.name == usual).cloned();
            data = first.into_iter().chain(all.into_iter().filter(|it| it.name != usual)).collect();
        }
        Ok(TemplateList { data, limits: limits(&context.spec) })
    }
}
