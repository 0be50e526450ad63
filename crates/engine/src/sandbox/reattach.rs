//! Attaches to a session's sandbox after the session: for taking changes out of it.

use outrigger_agent::{SessionId, State};
use outrigger_sandbox::Sandbox;
use std::sync::Arc;

use crate::sandbox::handle;
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
/// resumes, one that died is started again over its disk. Nothing if it never was
/// ready, or its disk is gone or was given up: none is made.
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
    if state.is_set_back(name) {
        // What may still be there was given up.
        return Ok(None);
    }
    let handle = handle::of(engine, session, state, name)?;
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
