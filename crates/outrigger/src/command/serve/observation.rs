//! What the server did, told to its log and to the collector of traces.

use outrigger_server::{AnsweredRequest, ExportCounts, Observer};
use outrigger_telemetry::Span;

use super::context::ServeContext;
use super::exporter::TraceExporter;
use super::log::ServerLog;
use crate::exit::Outcome;

#[derive(Debug)]
pub(super) struct Observation {
    log: ServerLog,
    exporter: Option<TraceExporter>,
}

impl Observation {
    /// An error where the collector is named wrongly.
    pub(super) fn new(context: &ServeContext) -> Outcome<Self> {
        let ServeContext { paths, config, page, log, .. } = context;
        let collector = config.telemetry.collector()?;
        let exporter = collector.map(|to| TraceExporter::new(paths, to, page, *log));
        Ok(Self { log: *log, exporter })
    }

    /// Sends traces where there is a collector, and never ends.
    pub(super) async fn export(&self) {
        match &self.exporter {
            Some(exporter) => exporter.run().await,
            None => std::future::pending().await,
        }
    }

    /// Sends what still waits.
    pub(super) async fn flush(&self) {
        if let Some(exporter) = &self.exporter {
            exporter.flush().await;
        }
    }
}

impl Observer for Observation {
    fn answered(&self, request: &AnsweredRequest) {
        self.log.request(request);
    }

    fn ended(&self, spans: &[Span]) {
        spans.iter().for_each(|span| self.log.span(span));
        self.exporter.iter().for_each(|exporter| exporter.add(spans));
    }

    fn wants_content(&self) -> bool {
        self.exporter.as_ref().is_some_and(|exporter| exporter.wants_content())
    }

    fn exports(&self) -> Option<ExportCounts> {
        self.exporter.as_ref().map(|exporter| exporter.counts())
    }
}
