//! That a disk is being copied, so that nothing may go on that writes to it.
//!
//! The mark of it is the container through which the copy is read: the daemon has it,
//! so that every process that shares the sandbox sees it, and of one that crashed it
//! is known to be left. Whoever lets something go on waits for its end first, and
//! looks once more afterwards, because a copy may have begun in between.

use std::time::Duration;

use outrigger_sandbox::{Error, SandboxId};

use crate::engine::Engine;
use crate::names::{self, Part};
use crate::{limits, maker};

/// Whether the disk is being copied.
async fn is_held(engine: &Engine, id: &SandboxId) -> Result<bool, Error> {
    let part = (names::PART, Part::Reader.as_str());
    let readers =
        engine.containers(&[(names::KIND, "disk"), (names::ID, id.as_str()), part]).await?;
    Ok(!readers.iter().all(maker::is_left_behind))
}

/// Waits until nobody copies the disk.
pub(crate) async fn released(engine: &Engine, id: &SandboxId) -> Result<(), Error> {
    while is_held(engine, id).await? {
        tokio::time::sleep(Duration::from_millis(limits::HELD_LOOK_MS)).await;
    }
    Ok(())
}

/// Lets a container go on as soon as nobody copies its disk. Whether it is there.
pub(crate) async fn unpause(
    engine: &Engine,
    id: &SandboxId,
    container: &str,
) -> Result<bool, Error> {
    loop {
        released(engine, id).await?;
        if !engine.unpause(container).await? {
            return Ok(false);
        }
        if !is_held(engine, id).await? {
            return Ok(true);
        }
        engine.pause(container).await?;
    }
}
