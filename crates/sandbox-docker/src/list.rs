//! All sandboxes of an owner, by their records and containers.
//!
//! Owns how the two are put together: a record without a container is a dead sandbox,
//! a container without a record none at all.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum};
use outrigger_sandbox::{Error, LifecycleState, ListedSandbox, SandboxId};

use crate::engine::Engine;
use crate::names::{self, Part};
use crate::store::Disk;
use crate::used::UsedSandboxes;
use crate::{limits, live, store};

/// Containers as they are. The daemon notes a pause once more when it hears of it, and has one that
/// this process has just let go on for paused until it has heard of that, too: so it is asked again.
async fn containers(
    engine: &Engine,
    used: &UsedSandboxes,
    labels: &[(&str, &str)],
) -> Result<Vec<ContainerSummary>, Error> {
    let is_just_open = |container: &ContainerSummary| {
        let id = container.labels.as_ref().and_then(|labels| labels.get(names::ID));
        let id = id.and_then(|id| SandboxId::new(id.clone()).ok());
        id.and_then(|id| used.gate(&id))
            .is_some_and(|gate| gate.is_open_since_less_than(limits::LATE_MS))
    };
    let is_late = |container: &ContainerSummary| {
        container.state == Some(ContainerSummaryStateEnum::PAUSED) && is_just_open(container)
    };
    loop {
        let found = engine.containers(labels).await?;
        if !found.iter().any(is_late) {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(limits::PAUSE_PAUSE_MS)).await;
    }
}

/// See [`outrigger_sandbox::Backend::list`].
pub(crate) async fn list(
    engine: &Engine,
    used: &UsedSandboxes,
) -> Result<Vec<ListedSandbox>, Error> {
    let kind = (names::KIND, "disk");
    let part = |part: Part| (names::PART, part.as_str());
    let containers = containers(engine, used, &[kind, part(Part::Container)]).await?;
    let records = engine.volumes(&[kind, part(Part::Record)]).await?;
    let mut living = HashMap::new();
    for container in containers {
        let labels = container.labels.unwrap_or_default();
        let (Some(id), Some((generation, _))) =
            (labels.get(names::ID), live::life(&engine.owner, &labels))
        else {
            continue;
        };
        let state = container.state.map(|state| state.to_string()).unwrap_or_default();
        let state = match state.as_str() {
            "running" => LifecycleState::Running,
            "paused" => LifecycleState::Frozen,
            _ => LifecycleState::Dead,
        };
        let began_ms = u64::try_from(container.created.unwrap_or(0)).unwrap_or(0) * 1000;
        living.insert(id.clone(), (generation, state, began_ms));
    }
    let mut all = Vec::new();
    for record in records {
        let found = store::found::<Disk>(engine, &record.name, &record.labels)?;
        let Some(id) = record.labels.get(names::ID) else { continue };
        let lives = living.remove(id);
        let Ok(id) = SandboxId::new(id.clone()) else { continue };
        let (generation, state, began_ms) = match lives {
            Some((generation, state, began_ms)) => (Some(generation), state, began_ms),
            None => (None, LifecycleState::Dead, 0),
        };
        let used_ms = used.gate(&id).map_or(0, |gate| gate.used_ms());
        let made_at_ms = found.record.made_at_ms;
        let used_at_ms = made_at_ms.max(began_ms).max(used_ms);
        let origin = found.record.origin;
        // A life that ended does not go on.
        let generation = generation.filter(|_| state != LifecycleState::Dead);
        all.push(ListedSandbox { id, state, generation, origin, made_at_ms, used_at_ms });
    }
    all.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(all)
}
