//! What the verbs of `outrigger sandbox` work with.

use outrigger_sandbox::{
    Backend, CreateSpec, DiskOrigin, Error, ListedSandbox, Sandbox, SandboxId, Snapshot, SnapshotId,
};
use outrigger_sandbox_native::Native;
use serde_json::json;
use std::sync::Arc;

use crate::compose::{self, BackendNetworks};
use crate::config::{BackendName, Config};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::network::Words;
use crate::paths::Paths;
use crate::sandbox::failed;
use crate::show;

/// What every verb works on.
#[derive(Debug)]
pub(crate) struct SandboxContext {
    pub(super) paths: Paths,
    pub(crate) backend: Arc<dyn Backend>,
    /// The backend as the native one, for its templates, where it is that.
    pub(crate) native: Option<Arc<Native>>,
    /// What the configuration says of sandboxes.
    pub(crate) spec: CreateSpec,
    /// What it says that they may reach.
    pub(crate) network: Words,
    pub(crate) backend_name: BackendName,
    pub(crate) networks: BackendNetworks,
}

impl SandboxContext {
    /// The backend and the limits of a sandbox of the configuration.
    pub(crate) async fn open(
        paths: &Paths,
        mut config: Config,
        like: Option<&str>,
    ) -> Outcome<Self> {
        let wanted = |name: &str| like.is_none_or(|like| like == name);
        config.sandboxes.retain(|sandbox| wanted(&sandbox.name));
        config.sandboxes.truncate(1);
        let Some(sandbox) = config.sandboxes.first() else {
            let text = format!("the configuration has no sandbox `{}`", like.unwrap_or_default());
            return Err(Failure::new(Kind::Usage, text)
                .hint("docs/configuration.md says how sandboxes are configured."));
        };
        let (spec, network) = (sandbox.spec.clone(), sandbox.network.clone());
        let backend_name = sandbox.backend;
        let backends = compose::backends(paths, &config, None).await?;
        let (native, networks) = (backends.native.clone(), backends.networks.clone());
        let backend = backends.take(backend_name);
        let backend = backend.expect("the backend of every sandbox of a configuration is opened");
        let paths = paths.clone();
        Ok(Self { paths, backend, native, spec, network, backend_name, networks })
    }

    /// Makes another sandbox with the disk of one as it is now, which is kept meanwhile by the
    /// name `kept`.
    pub(crate) async fn fork(
        &self,
        from: &SandboxId,
        kept: &SnapshotId,
        new: &SandboxId,
        spec: CreateSpec,
    ) -> Result<Arc<dyn Sandbox>, Error> {
        let snapshots = self.backend.snapshots()?;
        snapshots.take(from, kept).await?;
        let spec = CreateSpec { origin: DiskOrigin::Snapshot(kept.clone()), ..spec };
        let made = self.backend.create(new, &spec).await;
        // The new one stands on it by now; its name is needed no longer.
        snapshots.remove(kept).await?;
        made
    }

    pub(super) async fn is_there(&self, id: &SandboxId) -> Outcome<bool> {
        Ok(self.listed().await?.iter().any(|listed| listed.id == *id))
    }

    /// An error where there is none of that name.
    pub(super) async fn ensure_there(&self, id: &SandboxId) -> Outcome {
        match self.is_there(id).await? {
            true => Ok(()),
            false => Err(Failure::new(Kind::NotFound, format!("there is no sandbox `{id}`"))
                .hint("`outrigger sandbox ls` lists the sandboxes.")),
        }
    }

    pub(super) async fn listed(&self) -> Outcome<Vec<ListedSandbox>> {
        self.backend.list().await.map_err(|error| failed(&error))
    }

    pub(super) async fn snapshots(&self) -> Outcome<Vec<Snapshot>> {
        let snapshots = self.backend.snapshots().map_err(|error| failed(&error))?;
        snapshots.list().await.map_err(|error| failed(&error))
    }

    /// The sandbox of that name, resumed or restarted if need be. Makes none.
    pub(super) async fn existing(&self, name: &str) -> Outcome<Arc<dyn Sandbox>> {
        let id = sandbox_id(name)?;
        self.ensure_there(&id).await?;
        self.backend.create(&id, &self.spec).await.map_err(|error| failed(&error))
    }
}

/// A made-up name, which nobody else made up.
pub(super) fn fresh(prefix: &str) -> String {
    let name = uuid::Uuid::new_v4().simple().to_string();
    format!("{prefix}-{}", &name[..12])
}

pub(super) fn sandbox_id(name: &str) -> Outcome<SandboxId> {
    SandboxId::new(name).map_err(|error| Failure::from_error(Kind::Usage, &error))
}

pub(super) fn snapshot_id(name: String) -> Outcome<SnapshotId> {
    SnapshotId::new(name).map_err(|error| Failure::from_error(Kind::Usage, &error))
}

pub(crate) fn removed(names: &[String], output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&json!({ "type": "removed", "names": names }))?;
    }
    Ok(0)
}
