//! What is counted while the server runs.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::Mutex;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) method: String,
    pub(crate) route: String,
    pub(crate) status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct GroupLabels {
    pub(crate) group: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct MeasureLabels {
    pub(crate) measure: &'static str,
}

/// What is counted. What can be asked for is asked when somebody looks.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) requests: Family<RequestLabels, Counter>,
    pub(crate) sessions: Family<GroupLabels, Gauge>,
    pub(crate) approvals: Gauge,
    pub(crate) spent: Family<MeasureLabels, Counter>,
    pub(crate) reserved: Family<MeasureLabels, Gauge>,
    pub(crate) registry: Mutex<Registry>,
}

impl Default for Counters {
    fn default() -> Self {
        let (requests, sessions, approvals) = <(Family<_, _>, Family<_, _>, Gauge)>::default();
        let (spent, reserved) = <(Family<_, _>, Family<_, _>)>::default();
        let mut registry = Registry::with_prefix("outrigger");
        let of = |text: &str| text.to_owned();
        registry.register(
            "http_requests",
            of("Requests that were answered"),
            Family::clone(&requests),
        );
        registry.register("sessions", of("The newest 1000 sessions"), Family::clone(&sessions));
        registry.register("approvals", of("Questions that wait for a person"), approvals.clone());
        registry.register("spent", of("What all sessions took"), Family::clone(&spent));
        registry.register(
            "reserved",
            of("What is set aside for what runs"),
            Family::clone(&reserved),
        );
        let registry = Mutex::new(registry);
        Self { requests, sessions, approvals, spent, reserved, registry }
    }
}
