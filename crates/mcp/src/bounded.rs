//! A transport by which a server can't make its client owe it more and more.
//!
//! Owns how many requests of a server are answered at once. Whoever asks faster than it
//! reads the answers is hung up on: the answers would pile up in memory.

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::limits;

/// A transport with a bound.
#[derive(Debug)]
pub(crate) struct BoundedTransport<T> {
    /// `None` once it was closed, so that nothing in it waits for us.
    transport: Option<T>,
    /// Requests of the server whose answers are not sent yet.
    owed: Arc<AtomicUsize>,
}

impl<T> BoundedTransport<T> {
    pub(crate) fn new(transport: T) -> Self {
        Self { transport: Some(transport), owed: Arc::default() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for BoundedTransport<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answers = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let owed = answers.then(|| Arc::clone(&self.owed));
        let sending = self.transport.as_mut().map(|transport| transport.send(item));
        async move {
            // To one that was hung up on nothing is sent any more.
            let Some(sending) = sending else { return Ok(()) };
            let sent = sending.await;
            if let Some(owed) = owed {
                // Answers to nothing that was counted are none of a server's requests.
                let less = |owed: usize| owed.checked_sub(1);
                let _ = owed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.as_mut()?.receive().await?;
        let asks = matches!(message, JsonRpcMessage::Request(_));
        if asks && self.owed.fetch_add(1, Ordering::SeqCst) >= limits::OWED_MAX {
            self.transport = None;
            return None;
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        let Some(mut transport) = self.transport.take() else { return Ok(()) };
        let policy = Duration::from_millis(limits::CLOSE_MS_MAX);
        tokio::time::timeout(policy, transport.close()).await.unwrap_or(Ok(()))
    }
}
