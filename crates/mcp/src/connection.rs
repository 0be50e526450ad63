//! A connection to a server: what it says of its tools, and calls that hold it to that.

use outrigger_agent::Digest;
use outrigger_tools::outside::{Fault, OutsideCall, ToolAnswer, ToolListing};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, Implementation,
    ListToolsRequest, MetaObject, PaginatedRequestParams, ProtocolVersion, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext,
    PeerRequestOptions, RunningService, ServiceError,
};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

use crate::answer::answered;
use crate::bounded::BoundedTransport;
use crate::fault::{self, CallError};
use crate::limits;
use crate::listing::Listing;

/// Under this name a server finds the key by which it can know a call again.
pub(crate) const KEY: &str = "outrigger/idempotency-key";

/// A client that does nothing for its server.
#[derive(Debug, Clone)]
struct PassiveClient {
    /// The server says that its tools are not what they were.
    stale: Arc<AtomicBool>,
}

impl ClientHandler for PassiveClient {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("outrigger", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.stale.store(true, Ordering::SeqCst);
    }
}

/// What a server said of its tools.
#[derive(Debug)]
struct ToolCache {
    listed: ToolListing,
    digests: BTreeMap<String, Digest>,
    since: Instant,
}

/// A connection. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    service: RunningService<RoleClient, PassiveClient>,
    stale: Arc<AtomicBool>,
    known: Mutex<Option<Arc<ToolCache>>>,
}

impl Connection {
    pub(crate) async fn open<T>(transport: T) -> Result<Self, Fault>
    where
        T: Transport<RoleClient> + Send + 'static,
        T::Error: std::error::Error + Send + Sync + 'static,
    {
        let stale = Arc::new(AtomicBool::new(false));
        let quiet = PassiveClient { stale: Arc::clone(&stale) };
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let policy = Duration::from_millis(limits::CONNECT_MS_MAX);
        let serving = quiet.serve_with_lifecycle(BoundedTransport::new(transport), lifecycle);
        let served: Result<Result<_, ClientInitializeError>, _> =
            tokio::time::timeout(policy, serving).await;
        match served {
            Ok(Ok(service)) => Ok(Self { service, stale, known: Mutex::new(None) }),
            Ok(Err(error)) => Err(fault::of_connecting(&error)),
            Err(_) => Err(fault::too_slow("connecting to the server", policy)),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.service.is_closed() && !self.service.is_transport_closed()
    }

    /// Its tools, asked for again if what is known of them is old.
    pub(crate) async fn tools(&self) -> Result<ToolListing, Fault> {
        Ok(self.known().await?.listed.clone())
    }

    async fn known(&self) -> Result<Arc<ToolCache>, Fault> {
        let mut known = self.known.lock().await;
        let stale = self.stale.swap(false, Ordering::SeqCst);
        let fresh = Duration::from_millis(limits::LIST_FRESH_MS);
        if let Some(known) = known.as_ref().filter(|it| !stale && it.since.elapsed() < fresh) {
            return Ok(Arc::clone(known));
        }
        let policy = Duration::from_millis(limits::LIST_MS_MAX);
        let listed = tokio::time::timeout(policy, self.list()).await;
        let listed = listed.unwrap_or_else(|_| Err(fault::too_slow("listing its tools", policy)));
        let listed = listed.inspect_err(|_| self.stale.store(true, Ordering::SeqCst))?;
        let digests = listed.tools.iter().map(|tool| (tool.tool.clone(), tool.digest()));
        let digests = digests.collect();
        let now = Arc::new(ToolCache { listed, digests, since: Instant::now() });
        *known = Some(Arc::clone(&now));
        Ok(now)
    }

    /// Page by page.
    async fn list(&self) -> Result<ToolListing, Fault> {
        let (mut listing, mut cursor) = (Listing::default(), None);
        for _ in 0..limits::PAGES_MAX {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ListToolsRequest::with_param(params);
            // Not by the library's own method, which may answer from its memory.
            let listed = self.service.send_request(ClientRequest::ListToolsRequest(request)).await;
            let ServerResult::ListToolsResult(page) =
                listed.map_err(|error| fault::of_listing(&error))?
            else {
                return Err(fault::of_listing(&ServiceError::UnexpectedResponse));
            };
            listing.add(&page.tools)?;
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(listing.whole());
            }
        }
        let detail =
            format!("the server's list of tools has more than {} pages", limits::PAGES_MAX);
        Err(Fault::NotAsked { detail })
    }

    /// Calls a tool, if the server still describes it as it has to. `sent` is set before the
    /// server can hear of the call: while it is not, nothing can have happened.
    pub(crate) async fn call(
        &self,
        call: &OutsideCall<'_>,
        sent: &AtomicBool,
    ) -> Result<ToolAnswer, CallError> {
        let begun = Instant::now();
        let known = self.known().await.map_err(CallError::Fault)?;
        let now = known.digests.get(call.tool);
        if now != Some(call.held_to) {
            return Err(CallError::Fault(Fault::Changed { now: now.cloned() }));
        }
        let arguments = serde_json::from_str::<Map<String, Value>>(call.arguments);
        let arguments = arguments.map_err(|error| {
            let detail = format!("its arguments are no JSON object: {error}");
            CallError::Fault(Fault::NotAsked { detail })
        })?;
        let all = Duration::from_millis(call.timeout_ms);
        let left = all.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
        let mut meta = RequestMetaObject(MetaObject::default());
        meta.insert(KEY.to_owned(), Value::String(call.key.to_owned()));
        let options = PeerRequestOptions::with_timeout(left).with_meta(meta);
        let params = CallToolRequestParams::new(call.tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        sent.store(true, Ordering::SeqCst);
        call.sends.fetch_add(1, Ordering::SeqCst);
        let asked = async {
            let handle = self.service.send_request_with_option(request, options).await?;
            handle.await_response().await
        };
        match asked.await.map_err(|error| fault::of_call(error, call.timeout_ms))? {
            ServerResult::CallToolResult(result) => Ok(answered(result)),
            ServerResult::InputRequiredResult(_) => Err(wants_input()),
            _ => Err(fault::of_call(ServiceError::UnexpectedResponse, call.timeout_ms)),
        }
    }
}

/// A server that asks back is not answered: whoever wrote the question is not who runs the
/// session.
fn wants_input() -> CallError {
    let text = "The server asks for something more before it goes on, and is not answered. \
                Nothing is known to have happened."
        .to_owned();
    let blocks = vec![outrigger_tools::outside::Block::Text(text)];
    CallError::Refused(ToolAnswer { blocks, failed: true })
}
