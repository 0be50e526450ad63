//! The container of a sandbox as it is now, and the way to its guest.
//!
//! Owns what the daemon's words for states mean here, and how a link comes to be: by
//! a program inside that carries bytes, tried again while the guest comes up.

use std::sync::OnceLock;
use std::time::Duration;

use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum as Status};
use outrigger_sandbox::{CreateOutcome, CreateSpec, Error, Generation, SandboxId};
use outrigger_sandbox_client::Link;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::engine::{Engine, Labels};
use crate::store::Disk;
use crate::{limits, names, stream};

/// What a container is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerState {
    /// It was made and not started yet.
    Waiting,
    /// It runs.
    Running,
    /// Its processes are stopped where they are.
    Paused,
    /// It ran, and does not any more.
    Ended,
}

/// The container of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxContainer {
    /// The daemon's id of it, which another life does not have.
    pub(crate) container: String,
    pub(crate) doing: ContainerState,
    pub(crate) generation: Generation,
    /// What its life began as.
    pub(crate) began: CreateOutcome,
    /// When it is too old, in milliseconds since 1970.
    pub(crate) old_at_ms: Option<u64>,
    /// How long it may be idle, in milliseconds.
    pub(crate) idle_ms_max: Option<u64>,
    /// The exit code of its guest, once it ended.
    pub(crate) code: Option<i64>,
}

/// The exit code of a guest that could not set itself up.
const NOT_SET_UP: i64 = 3;

fn not_set_up() -> Error {
    Error::Unavailable {
        reason: "the guest could not set itself up in its container".to_owned(),
        advice: "use a runtime whose kernel has clone3 and openat2, which gVisor (`runsc`) of \
                 2022 has not"
            .to_owned(),
    }
}

pub(crate) fn lost(reason: &str) -> Error {
    Error::Lost { reason: reason.to_owned() }
}

/// The life that a container's labels speak of.
pub(crate) fn life(owner: &str, labels: &Labels) -> Option<(Generation, CreateOutcome)> {
    if labels.get(names::OWNER)? != owner {
        return None;
    }
    let generation = Generation::new(labels.get(names::GENERATION)?.clone()).ok()?;
    let began = serde_json::from_str(labels.get(names::BEGAN)?).ok()?;
    Some((generation, began))
}

/// What a label says, as JSON.
pub(crate) fn said<T: DeserializeOwned>(labels: &Labels, name: &str) -> Option<T> {
    serde_json::from_str(labels.get(name)?).ok()
}

fn seen(
    engine: &Engine,
    name: &str,
    found: ContainerInspectResponse,
) -> Result<SandboxContainer, Error> {
    let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
    let (generation, began) = life(&engine.owner, &labels).ok_or_else(|| {
        Error::Backend(format!("the container `{name}` was not made by this backend; remove it"))
    })?;
    let disk: Option<Disk> = said(&labels, names::RECORD);
    let spec: Option<CreateSpec> = said(&labels, names::SPEC);
    let state = found.state.unwrap_or_default();
    let doing = match state.status.unwrap_or(Status::EMPTY) {
        Status::CREATED => ContainerState::Waiting,
        Status::RUNNING => ContainerState::Running,
        Status::PAUSED => ContainerState::Paused,
        Status::EMPTY
        | Status::RESTARTING
        | Status::REMOVING
        | Status::EXITED
        | Status::DEAD
        | Status::STOPPING => ContainerState::Ended,
    };
    let container = found.id.unwrap_or_else(|| name.to_owned());
    Ok(SandboxContainer {
        container,
        doing,
        generation,
        began,
        old_at_ms: disk.and_then(|disk| disk.old_at_ms()),
        idle_ms_max: spec.and_then(|spec| spec.lifetime.idle_ms_max),
        code: state.exit_code,
    })
}

/// The container of a sandbox, if there is one.
pub(crate) async fn look(
    engine: &Engine,
    id: &SandboxId,
) -> Result<Option<SandboxContainer>, Error> {
    let name = names::container(&engine.owner, id);
    match engine.container(&name).await? {
        Some(found) => seen(engine, &name, found).map(Some),
        None => Ok(None),
    }
}

/// The one time that there is to reach a guest, over all containers and attempts. What stands
/// in a guest's place can begin to greet again and again.
#[derive(Debug, Default)]
pub(crate) struct Reach(OnceLock<Instant>);

impl Reach {
    /// When it ends. It begins now, unless it has begun.
    pub(crate) fn until(&self) -> Instant {
        let limit = Duration::from_millis(limits::GREET_MS_MAX);
        *self.0.get_or_init(|| Instant::now() + limit)
    }

    /// Whether it ended.
    pub(crate) fn is_over(&self) -> bool {
        self.0.get().is_some_and(|until| *until <= Instant::now())
    }
}

/// A link to the guest of a container that runs.
///
/// # Errors
/// [`Error::Lost`] if it ended, or is another life than expected, or never greets;
/// [`Error::Unavailable`] if its kernel lacks what the guest needs.
pub(crate) async fn connect(
    engine: &Engine,
    id: &SandboxId,
    expected: &SandboxContainer,
    reach: &Reach,
) -> Result<Link, Error> {
    loop {
        let attempt = timeout_at(reach.until(), greeted(engine, expected)).await;
        let error = match attempt.unwrap_or_else(|_| Err(lost("its guest does not answer"))) {
            Ok(link) if *link.generation() == expected.generation => return Ok(link),
            Ok(_) => return Err(lost("its guest is another life")),
            Err(error) => error,
        };
        match look(engine, id).await? {
            Some(now)
                if now.container == expected.container && now.doing == ContainerState::Running => {}
            // It would be so in the next container too.
            Some(SandboxContainer {
                doing: ContainerState::Ended, code: Some(NOT_SET_UP), ..
            }) => {
                return Err(not_set_up());
            }
            Some(SandboxContainer { doing: ContainerState::Ended, code: Some(code), .. }) => {
                return Err(Error::Lost { reason: format!("its guest ended with code {code}") });
            }
            Some(_) | None => return Err(lost("its container does not run")),
        }
        if reach.is_over() || !matches!(error, Error::Lost { .. }) {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(limits::GREET_PAUSE_MS)).await;
    }
}

/// The link to whatever greets.
async fn greeted(engine: &Engine, expected: &SandboxContainer) -> Result<Link, Error> {
    let Some((reads, writes)) = stream::open(engine, &expected.container).await? else {
        return Err(lost("its container does not run"));
    };
    Link::open(reads, writes).await
}
