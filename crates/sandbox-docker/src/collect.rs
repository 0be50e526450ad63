//! What nobody needs any more.
//!
//! Owns the question what a crash left behind: containers that make or read volumes
//! for a process that is gone, volumes that no record names, guest programs of another
//! version, and sandboxes that are too old or whose end was interrupted. Asks the
//! daemon only for what carries the owner's labels and names, so nothing else is seen. Must never
//! take away what is being made: all of that says of which process it is, and whether
//! that may still finish it is asked before the records are.

use std::collections::BTreeSet;

use bollard::models::Volume;
use outrigger_sandbox::{Error, SandboxId};

use crate::clock::now_ms;
use crate::context::DockerContext;
use crate::engine::Engine;
use crate::names::{self, Part, Store};
use crate::store::{self, Disk};
use crate::{guest, maker};

fn label<'a>(volume: &'a Volume, name: &str) -> Option<&'a str> {
    volume.labels.get(name).map(String::as_str)
}

/// See [`outrigger_sandbox::Backend::sweep`].
pub(crate) async fn sweep(context: &DockerContext) -> Result<usize, Error> {
    let engine = &context.engine;
    let containers = collect_makers(engine).await?;
    let sandboxes = unwanted_sandboxes(engine).await?;
    for id in &sandboxes {
        context.end(id).await?;
    }
    let volumes = collect_volumes(engine).await?;
    let programs = collect_programs(engine, &guest::store(context.config.guest)).await?;
    Ok(containers + sandboxes.len() + volumes + programs)
}

async fn collect_makers(engine: &Engine) -> Result<usize, Error> {
    let mut removed = 0;
    for part in [Part::Maker, Part::Reader] {
        for container in engine.containers(&[(names::PART, part.as_str())]).await? {
            if let (true, Some(id)) = (maker::is_left_behind(&container), container.id) {
                engine.remove(&id).await?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}

/// Those that are too old, and those whose end was interrupted.
async fn unwanted_sandboxes(engine: &Engine) -> Result<BTreeSet<SandboxId>, Error> {
    let kind = (names::KIND, "disk");
    let records = engine.volumes(&[kind, (names::PART, Part::Record.as_str())]).await?;
    let mut unwanted = BTreeSet::new();
    for record in records {
        let Some(id) = record.labels.get(names::ID) else { continue };
        let Ok(id) = SandboxId::new(id.clone()) else { continue };
        let disk = store::found::<Disk>(engine, &record.name, &record.labels)?.record;
        if disk.old_at_ms().is_some_and(|at| at < now_ms()) {
            unwanted.insert(id);
        }
    }
    let part = (names::PART, Part::Container.as_str());
    for container in engine.containers(&[kind, part]).await? {
        let id = container.labels.and_then(|labels| labels.get(names::ID).cloned());
        let Some(Ok(id)) = id.map(SandboxId::new) else { continue };
        // It is made after its record, so that one without is what an interrupted
        // end left; the list above may be of a time before both.
        if store::find::<Disk>(engine, &Store::Disk(id.clone())).await?.is_none() {
            unwanted.insert(id);
        }
    }
    Ok(unwanted)
}

/// Volumes that no record names and none will. Those that something uses the daemon
/// keeps.
async fn collect_volumes(engine: &Engine) -> Result<usize, Error> {
    let owner = &engine.owner;
    let all = engine.volumes(&[]).await?;
    let left = all.iter().filter_map(|volume| {
        let making = names::making(owner, &volume.name)?;
        let made_ms = label(volume, names::MADE_AT).and_then(|ms| ms.parse().ok());
        let age_ms = now_ms().saturating_sub(made_ms.unwrap_or(0));
        let process = label(volume, names::PROCESS).unwrap_or_default();
        let is_record = label(volume, names::PART) == Some(Part::Record.as_str());
        (!is_record && maker::is_left(process, making, age_ms)).then_some((volume, making))
    });
    let left: Vec<_> = left.collect();
    // Only now: what was finished since the list above is named.
    let records = engine.volumes(&[(names::PART, Part::Record.as_str())]).await?;
    let named: BTreeSet<&str> =
        records.iter().filter_map(|record| label(record, names::MAKING)).collect();
    let mut removed = 0;
    for (volume, making) in left {
        if !named.contains(making) && engine.remove_volume(&volume.name).await? {
            removed += 1;
        }
    }
    Ok(removed)
}

/// Guest programs of other versions. A volume of one that a container uses stays
/// until that is gone.
async fn collect_programs(engine: &Engine, ours: &Store) -> Result<usize, Error> {
    let labels = [(names::KIND, ours.kind()), (names::PART, Part::Record.as_str())];
    let mut removed = 0;
    for record in engine.volumes(&labels).await? {
        match record.labels.get(names::ID) {
            Some(digest) if digest != ours.id() => {
                store::remove(engine, &Store::Guest(digest.clone())).await?;
                removed += 1;
            }
            Some(_) | None => {}
        }
    }
    Ok(removed)
}
