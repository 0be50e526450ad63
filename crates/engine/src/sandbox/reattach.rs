//! Attaches to a session's sandbox after the session: for taking changes out of it.

use outrigger_agent::{SandboxReady, SessionId, State};
use outrigger_sandbox::{Error as SandboxError, Sandbox};
use std::sync::Arc;

use crate::sandbox::handle::{self, SandboxHandle, origin_of};
use crate::{Engine, Error, workspace};

/// A sandbox that was found again.
#[derive(Debug)]
pub struct ReattachedSandbox {
    /// It, running.
    pub sandbox: Arc<dyn Sandbox>,
    /// Whether its disk is the one that the session worked on, filled to the end. If
    /// not, what it holds is nobody's work.
    pub whole: bool,
}

/// The sandbox of a session over the disk that it was left with: a suspended one
/// resumes, one that died is started again over its disk. Where the session went back to
/// a checkpoint, or is a fork of one, it is made from what was kept there. Nothing if it
/// never was ready, or its disk is gone.
///
/// # Errors
/// A sandbox that is not configured, or what its backend says.
pub async fn reattach(
    engine: &Engine,
    session: &SessionId,
    state: &State,
    name: &str,
) -> Result<Option<ReattachedSandbox>, Error> {
    let Some(before) = state.last_ready(name) else { return Ok(None) };
    let handle = handle::of(engine, session, state, name)?;
    if state.is_set_back(name) {
        let sandbox = from_checkpoint(&handle, before).await.map_err(Error::Sandbox)?;
        return Ok(sandbox.map(|sandbox| ReattachedSandbox { sandbox, whole: true }));
    }
    let Some(listed) = handle.lookup().await.map_err(Error::Sandbox)? else {
        return Ok(None);
    };
    let sandbox = handle.backend.create(&handle.id, &handle.spec_of_last()).await;
    let sandbox = sandbox.map_err(Error::Sandbox)?;
    let same_life =
        state.sandbox(name).is_some() && sandbox.generation().as_str() == before.generation;
    let same_disk = before.disk_made_at_ms == Some(listed.made_at_ms);
    // Another session may have filled one that is shared.
    let whole = (!handle.shared && (same_life || same_disk))
        || match &handle.content {
            Some(content) => workspace::is_filled(content, &*sandbox).await,
            None => true,
        };
    Ok(Some(ReattachedSandbox { sandbox, whole }))
}

/// One with the disk as it was kept. The next call that needs it makes its own in the same
/// way, so that nothing is to be noted. Nothing while what was given up is still there: only
/// who drives takes it away.
async fn from_checkpoint(
    handle: &SandboxHandle,
    before: &SandboxReady,
) -> Result<Option<Arc<dyn Sandbox>>, SandboxError> {
    let Some(origin) = handle.kept.last().and_then(origin_of) else { return Ok(None) };
    let there = handle.lookup().await?;
    if there.is_some_and(|there| handle.is_given_up(&there, before)) {
        return Ok(None);
    }
    match handle.backend.create(&handle.id, &handle.spec(origin)).await {
        Ok(sandbox) => Ok(Some(sandbox)),
        Err(SandboxError::Absent { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
