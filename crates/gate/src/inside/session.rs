//! One connection from inside, as its requests see it.
//!
//! Owns what is counted and kept for it. Everything here ends with it, connections to the
//! outside included.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::StatusCode;
use tokio::sync::{Notify, watch};

use super::activity::Activity;
use super::answer::Denial;
use super::pool::Pool;
use super::websocket::WebSocket;
use crate::flow::Refusal;
use crate::host::Target;
use crate::limits;
use crate::network::Grant;
use crate::outside::Failure;
use crate::rule::RequestLine;
use crate::rules::Rules;
use crate::sandbox::{Outcome, Row, Sandbox, Targets};

/// One connection from inside.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) activity: Arc<Activity>,
    pub(super) targets: Targets,
    pub(super) pool: Pool,
    /// Held while one is dialled for a connection that has many requests at a time.
    pub(super) dialling: tokio::sync::Mutex<()>,
    websocket: Mutex<Option<WebSocket>>,
    requests: AtomicU64,
    full: Notify,
    alive: watch::Sender<()>,
}

/// What a request was granted by.
#[derive(Debug)]
pub(super) struct Permission {
    pub(super) rules: Arc<Rules>,
    pub(super) grant: String,
    pub(super) private: bool,
}

impl Session {
    pub(super) fn new(sandbox: Arc<Sandbox>) -> Self {
        let still_ms_max = match sandbox.is_caller() {
            true => limits::CALLER_STILL_MS_MAX,
            false => limits::STILL_MS_MAX,
        };
        Self {
            sandbox,
            activity: Arc::new(Activity::new(still_ms_max)),
            targets: Targets::default(),
            pool: Pool::default(),
            dialling: tokio::sync::Mutex::default(),
            websocket: Mutex::default(),
            requests: AtomicU64::new(0),
            full: Notify::new(),
            alive: watch::Sender::new(()),
        }
    }

    /// Ends when the connection does.
    pub(super) fn end(&self) -> impl Future<Output = ()> + use<> {
        let mut alive = self.alive.subscribe();
        async move { while alive.changed().await.is_ok() {} }
    }

    /// No host was reached, so nothing of a request was sent. Callers hear it by a status of its
    /// own: what they ask for may be done once only.
    pub(super) fn unsent(&self, failure: Failure) -> Denial {
        let mut denial = Denial::from(failure);
        if self.sandbox.is_caller() {
            denial.status = StatusCode::MISDIRECTED_REQUEST;
        }
        denial
    }

    /// Has the connection carry frames, once the answer is sent that says so.
    pub(super) fn switch(&self, websocket: WebSocket) {
        *self.websocket.lock().unwrap_or_else(PoisonError::into_inner) = Some(websocket);
    }

    /// What the connection is to carry instead of requests.
    pub(super) fn switched(&self) -> Option<WebSocket> {
        self.websocket.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Counts a request.
    pub(super) fn count(&self) {
        if self.requests.fetch_add(1, Ordering::Relaxed) + 1 >= limits::REQUESTS_PER_CONNECTION_MAX
        {
            self.full.notify_one();
        }
    }

    /// Until it has had all the requests that it may have.
    pub(super) async fn full(&self) {
        self.full.notified().await;
    }

    /// Writes down what was refused.
    pub(super) fn refused(&self, target: Option<&Target>, refusal: Refusal, path: Option<&str>) {
        let host = target.map(|target| target.host.to_string()).unwrap_or_default();
        let port = target.map_or(0, |target| target.port);
        self.sandbox.table.count(&host, port, Outcome::Refused(refusal), path);
    }

    /// Writes down a connection at a port that leads to no host.
    pub(super) fn refused_at(&self, port: u16) {
        self.sandbox.table.count("", port, Outcome::Refused(Refusal::NotGranted), None);
    }

    /// Counts what goes out, whose bytes are counted in the row.
    pub(super) fn row(&self, target: &Target, by: &Permission) -> Result<Arc<Row>, Denial> {
        let (host, granted) = (target.host.to_string(), Outcome::Granted(by.grant.clone()));
        let row = self.sandbox.table.count(&host, target.port, granted, None);
        // What is not counted does not leave.
        row.ok_or_else(|| {
            let words = "this sandbox reached as many hosts at once as are counted.";
            Denial::new(Refusal::Limit, StatusCode::TOO_MANY_REQUESTS, words)
        })
    }

    /// Asks the rules of the moment, which from here on end the connection if they change
    /// for the host.
    pub(super) fn ask<T>(
        &self,
        target: &Target,
        decide: impl Fn(&Arc<Rules>) -> Result<T, Denial>,
    ) -> Result<T, Denial> {
        let closed = || {
            let words = "the network of this sandbox is closed.";
            Denial::new(Refusal::NotGranted, StatusCode::FORBIDDEN, words)
        };
        loop {
            let rules = self.sandbox.rules().ok_or_else(closed)?;
            let decided = decide(&rules)?;
            self.targets.add(target);
            // They may have changed before the target was seen with them.
            let now = self.sandbox.rules().ok_or_else(closed)?;
            if Arc::ptr_eq(&rules, &now) {
                return Ok(decided);
            }
        }
    }

    /// Waits while somebody is asked about a host, if they are.
    pub(super) async fn hold(&self, target: &Target) {
        let under_way = self.activity.begin();
        self.sandbox.hold(target).await;
        drop(under_way);
    }

    /// Whether a host may be reached at all.
    pub(super) fn ask_host(&self, target: &Target) -> Result<(), Denial> {
        self.ask(target, |rules| {
            if rules.knows(target) {
                return Ok(());
            }
            let asked = RequestLine { method: "CONNECT", path: "", query: None };
            let refusal = rules.decide(target, asked).err().unwrap_or(Refusal::NotGranted);
            let words = rules.words(target, asked, refusal);
            Err(Denial::new(refusal, StatusCode::FORBIDDEN, words))
        })
    }

    /// Whether a request may be sent.
    pub(super) fn ask_request(
        &self,
        target: &Target,
        asked: RequestLine<'_>,
    ) -> Result<Permission, Denial> {
        self.ask(target, |rules| match rules.decide(target, asked) {
            Ok(Grant { name, private, .. }) => {
                Ok(Permission { rules: Arc::clone(rules), grant: name.clone(), private: *private })
            }
            Err(refusal) => {
                let words = rules.words(target, asked, refusal);
                Err(Denial::new(refusal, StatusCode::FORBIDDEN, words))
            }
        })
    }
}
