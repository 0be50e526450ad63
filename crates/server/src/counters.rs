//! What is counted while the server runs.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Mutex;

use crate::span_metrics::{Histograms, SpanMetrics, seconds};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) method: String,
    pub(crate) route: String,
    pub(crate) status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RouteLabels {
    pub(crate) method: String,
    pub(crate) route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ExportLabels {
    pub(crate) outcome: &'static str,
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
    pub(crate) durations: Histograms<RouteLabels>,
    pub(crate) spans: SpanMetrics,
    pub(crate) exports: Family<ExportLabels, Counter>,
    pub(crate) exports_waiting: Gauge,
    pub(crate) sessions: Family<GroupLabels, Gauge>,
    pub(crate) approvals: Gauge,
    pub(crate) spent: Family<MeasureLabels, Counter>,
    pub(crate) reserved: Family<MeasureLabels, Gauge>,
    pub(crate) registry: Mutex<Registry>,
}

impl Default for Counters {
    fn default() -> Self {
        let mut registry = Registry::default();
        let spans = SpanMetrics::of(&mut registry);
        let own = registry.sub_registry_with_prefix("outrigger");
        let of = |text: &str| text.to_owned();
        let (requests, sessions, approvals) = <(Family<_, _>, Family<_, _>, Gauge)>::default();
        let (spent, reserved) = <(Family<_, _>, Family<_, _>)>::default();
        let (exports, exports_waiting) = <(Family<_, _>, Gauge)>::default();
        let durations = Histograms::new_with_constructor(seconds as fn() -> Histogram);
        own.register("http_requests", of("Requests that were answered"), Family::clone(&requests));
        own.register_with_unit(
            "http_request_duration",
            of("From a request to the head of its answer"),
            Unit::Seconds,
            Family::clone(&durations),
        );
        own.register("sessions", of("The newest 1000 sessions"), Family::clone(&sessions));
        own.register("approvals", of("Questions that wait for a person"), approvals.clone());
        own.register("spent", of("What all sessions took"), Family::clone(&spent));
        own.register("reserved", of("What is set aside for what runs"), Family::clone(&reserved));
        own.register("spans", of("Spans for the collector"), Family::clone(&exports));
        let waiting = of("Spans that wait to be sent");
        own.register("spans_waiting", waiting, exports_waiting.clone());
        let registry = Mutex::new(registry);
        Self {
            requests,
            durations,
            spans,
            exports,
            exports_waiting,
            sessions,
            approvals,
            spent,
            reserved,
            registry,
        }
    }
}
