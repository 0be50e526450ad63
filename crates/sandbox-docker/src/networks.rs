//! The way out of containers, which have no network: the guest carries each connection over a
//! stream of its own.
//!
//! Owns when a stream is opened, one for each life of a sandbox. They end with this process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outrigger_sandbox::{ConnectionSink, Error, Listener, Networks, SandboxId};
use outrigger_sandbox_client::{CarriedConnections, carry};
use tokio::time::timeout_at;

use crate::backend::Docker;
use crate::context::{self, DockerContext};
use crate::engine::Engine;
use crate::live::{self, ContainerState, Reach, SandboxContainer};
use crate::{held, limits, stream};

#[async_trait]
impl Networks for Docker {
    async fn listen(
        &self,
        id: &SandboxId,
        ports: &[u16],
        sink: Arc<dyn ConnectionSink>,
    ) -> Result<Listener, Error> {
        let context = &*self.0;
        let turn = context.turns.of(id);
        let _turn = turn.lock().await;
        let (reach, mut last) = (Reach::default(), live::lost("its guest does not answer"));
        while !reach.is_over() {
            let absent = || context::absent("living sandbox", id);
            let seen = live::look(&context.engine, id).await?.ok_or_else(absent)?;
            if matches!(seen.doing, ContainerState::Waiting | ContainerState::Ended) {
                return Err(absent());
            }
            let listening = |port| Listener { port, descriptors: Vec::new() };
            if let Some(port) = context.carried_at(id, &seen, ports).await {
                return Ok(listening(port));
            }
            let attempt = opened(&context.engine, id, &seen, ports, Arc::clone(&sink));
            match timeout_at(reach.until(), attempt).await {
                Ok(Ok(stream)) => {
                    let port = stream.port;
                    context.carried.lock().await.insert(id.clone(), stream);
                    return Ok(listening(port));
                }
                // Somebody else may have paused it meanwhile, or the daemon may have it for paused
                // still.
                Ok(Err(error @ Error::Lost { .. })) => last = error,
                Ok(Err(error)) => return Err(error),
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(limits::GREET_PAUSE_MS)).await;
        }
        Err(last)
    }
}

impl DockerContext {
    /// The port of the stream that carries connections already, of this life and for these ports.
    async fn carried_at(
        &self,
        id: &SandboxId,
        seen: &SandboxContainer,
        ports: &[u16],
    ) -> Option<u16> {
        let mut carried = self.carried.lock().await;
        carried.retain(|_, stream| stream.is_open());
        let known = carried.get(id)?;
        let same = known.generation == seen.generation && known.captured == ports;
        same.then_some(known.port)
    }
}

/// A stream of a container that is to go on.
async fn opened(
    engine: &Engine,
    id: &SandboxId,
    seen: &SandboxContainer,
    ports: &[u16],
    sink: Arc<dyn ConnectionSink>,
) -> Result<CarriedConnections, Error> {
    if seen.doing == ContainerState::Paused {
        // Its guest can't answer; the command that is to come would let it go on too.
        held::unpause(engine, id, &seen.container).await?;
    }
    let Some((reads, writes)) = stream::open(engine, &seen.container).await? else {
        return Err(live::lost("its container does not run"));
    };
    carry(reads, writes, ports, sink).await
}
