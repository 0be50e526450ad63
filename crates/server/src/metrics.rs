//! Requests are counted, and what is counted is given to Prometheus.

use axum::extract::{MatchedPath, Request, State as Extract};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use outrigger_agent::{AccountId, Measure};
use outrigger_api::SessionGroup;
use prometheus_client::encoding::text::encode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::counters::{
    Counters, ExportLabels, GroupLabels, MeasureLabels, RequestLabels, RouteLabels,
};
use crate::problems::ReadProblems;
use crate::{ExportCounts, RequestError, Server, convert};

const OPEN_METRICS: (HeaderName, HeaderValue) = (
    header::CONTENT_TYPE,
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8"),
);

/// Counts a request by its route, so that names of sessions make no series.
pub(crate) async fn count(
    Extract(server): Extract<Server>,
    request: Request,
    next: Next,
) -> Response {
    let method = request.method().to_string();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let begun = Instant::now();
    let response = next.run(request).await;
    let (route, status) = (route.unwrap_or_default(), response.status().as_u16());
    let labels = RouteLabels { method: method.clone(), route: route.clone() };
    server.counters.durations.get_or_create(&labels).observe(begun.elapsed().as_secs_f64());
    let labels = RequestLabels { method, route, status };
    server.counters.requests.get_or_create(&labels).inc();
    response
}

/// What Prometheus scrapes, in the text format of OpenMetrics.
#[utoipa::path(get, path = "/metrics",
    operation_id = "get_metrics", tag = "server", responses(
    (status = 200, body = String, content_type = "application/openmetrics-text"),
    ReadProblems,
))]
pub(crate) async fn scrape(
    Extract(server): Extract<Server>,
) -> Result<([(HeaderName, HeaderValue); 1], String), RequestError> {
    let counters = &server.counters;
    let (groups, approvals) = server.listing.counts(&server.parts).await?;
    for (group, name) in [
        (SessionGroup::NeedsYou, "needs_you"),
        (SessionGroup::Running, "running"),
        (SessionGroup::Done, "done"),
    ] {
        let count = groups.iter().filter(|it| **it == group).count();
        let gauge = counters.sessions.get_or_create_owned(&GroupLabels { group: name });
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    counters.approvals.set(approvals.into());
    let accounts = server.parts.accounts.accounts().await?;
    let all = accounts.iter().find(|it| it.account == AccountId::organisation());
    for measure in Measure::ALL {
        let labels = MeasureLabels { measure: convert::measure(measure) };
        let (spent, reserved) =
            all.map_or((0, 0), |it| (it.spent.of(measure), it.reserved.of(measure)));
        counters.spent.get_or_create_owned(&labels).inner().store(spent, Ordering::Relaxed);
        let gauge = counters.reserved.get_or_create_owned(&labels);
        gauge.set(i64::try_from(reserved).unwrap_or(i64::MAX));
    }
    export(counters, server.parts.observer.exports().unwrap_or_default());
    let mut text = String::new();
    let registry = counters.registry.lock().expect("nobody panics while they hold it");
    encode(&mut text, &registry).expect("a string takes all that is written");
    Ok(([OPEN_METRICS], text))
}

fn export(counters: &Counters, counts: ExportCounts) {
    for (outcome, count) in [("exported", counts.exported), ("dropped", counts.dropped)] {
        let counter = counters.exports.get_or_create_owned(&ExportLabels { outcome });
        counter.inner().store(count, Ordering::Relaxed);
    }
    counters.exports_waiting.set(i64::try_from(counts.waiting).unwrap_or(i64::MAX));
}
