//! The way out of containers, which have no network: the guest carries each connection over a
//! stream of its own.
//!
//! Owns when a stream is opened, one for each life of a sandbox. They end with this process.

use std::sync::Arc;

use async_trait::async_trait;
use outrigger_sandbox::{ConnectionSink, Error, Listener, Networks, SandboxId};
use outrigger_sandbox_client::{CarriedConnections, carry};

use crate::backend::Docker;
use crate::context;
use crate::live::{self, ContainerState};
use crate::{held, stream};

#[async_trait]
impl Networks for Docker {
    async fn listen(
        &self,
        id: &SandboxId,
        ports: &[u16],
        sink: Arc<dyn ConnectionSink>,
    ) -> Result<Listener, Error> {
        let context = &*self.0;
        let absent = || context::absent("living sandbox", id);
        let seen = live::look(&context.engine, id).await?.ok_or_else(absent)?;
        let mut carried = context.carried.lock().await;
        carried.retain(|_, stream| stream.is_open());
        let same =
            |it: &&CarriedConnections| it.generation == seen.generation && it.captured == ports;
        if let Some(known) = carried.get(id).filter(same) {
            return Ok(Listener { port: known.port, descriptors: Vec::new() });
        }
        match seen.doing {
            ContainerState::Running => {}
            // Its guest can't answer; the command that is to come would let it go on too.
            ContainerState::Paused => {
                held::unpause(&context.engine, id, &seen.container).await?;
            }
            ContainerState::Waiting | ContainerState::Ended => return Err(absent()),
        }
        let streams = stream::open(&context.engine, &seen.container).await?.ok_or_else(absent)?;
        let stream = carry(streams.0, streams.1, ports, sink).await?;
        let port = stream.port;
        carried.insert(id.clone(), stream);
        Ok(Listener { port, descriptors: Vec::new() })
    }
}
