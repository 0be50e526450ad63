//! How long models and tools take and how many tokens go to and fro, by the names of the semantic
//! conventions for generative AI.

use outrigger_telemetry::{Operation, Span};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::limits::METRIC_NAMES_MAX;

/// What stands for names beyond the limit.
const OTHER: &str = "other";
/// The boundaries that the conventions recommend.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Histograms by labels.
pub(crate) type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    gen_ai_operation_name: &'static str,
    gen_ai_provider_name: String,
    gen_ai_request_model: String,
    error_type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    gen_ai_operation_name: &'static str,
    gen_ai_provider_name: String,
    gen_ai_request_model: String,
    gen_ai_token_type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    gen_ai_tool_name: String,
    error_type: &'static str,
}

#[derive(Debug)]
pub(crate) struct SpanMetrics {
    durations: Histograms<OperationLabels>,
    tokens: Histograms<TokenLabels>,
    tools: Histograms<ToolLabels>,
    /// People name models as they like: so many names make series.
    names: Mutex<BTreeSet<Arc<str>>>,
}

impl SpanMetrics {
    /// Histograms that are in a registry.
    pub(crate) fn of(registry: &mut Registry) -> Self {
        let durations = Histograms::new_with_constructor(seconds as fn() -> Histogram);
        let tokens = Histograms::new_with_constructor(token_counts as fn() -> Histogram);
        let tools = Histograms::new_with_constructor(seconds as fn() -> Histogram);
        registry.register_with_unit(
            "gen_ai_client_operation_duration",
            "From asking a model until its reply was whole",
            Unit::Seconds,
            Family::clone(&durations),
        );
        registry.register(
            "gen_ai_client_token_usage",
            "Tokens of a model call",
            Family::clone(&tokens),
        );
        registry.register_with_unit(
            "gen_ai_execute_tool_duration",
            "From starting a tool call until it was over",
            Unit::Seconds,
            Family::clone(&tools),
        );
        Self { durations, tokens, tools, names: Mutex::default() }
    }

    /// Counts a span that is over.
    pub(crate) fn count(&self, span: &Span) {
        let (provider, model) = (self.known(&span.provider), self.known(&span.model));
        let error_type = span.error.unwrap_or_default();
        let took = seconds_of(span.took_ms());
        let gen_ai_operation_name = span.operation.name();
        match &span.operation {
            Operation::Chat { response, .. } => {
                let labels = OperationLabels {
                    gen_ai_operation_name,
                    gen_ai_provider_name: provider.clone(),
                    gen_ai_request_model: model.clone(),
                    error_type,
                };
                self.durations.get_or_create(&labels).observe(took);
                let usage = response.iter().flat_map(|response| {
                    let usage = &response.usage;
                    [("input", usage.input_tokens), ("output", usage.output_tokens)]
                });
                for (gen_ai_token_type, tokens) in usage {
                    let labels = TokenLabels {
                        gen_ai_operation_name,
                        gen_ai_provider_name: provider.clone(),
                        gen_ai_request_model: model.clone(),
                        gen_ai_token_type,
                    };
                    let tokens = f64::from(u32::try_from(tokens).unwrap_or(u32::MAX));
                    self.tokens.get_or_create(&labels).observe(tokens);
                }
            }
            Operation::ExecuteTool { tool, .. } => {
                let labels = ToolLabels { gen_ai_tool_name: self.known(tool), error_type };
                self.tools.get_or_create(&labels).observe(took);
            }
            Operation::InvokeAgent { .. }
            | Operation::Approval { .. }
            | Operation::ProvisionSandbox { .. } => {}
        }
    }

    /// A name, as long as there are not too many.
    fn known(&self, name: &str) -> String {
        let mut names = self.names.lock().expect("nobody panics while they hold it");
        if !names.contains(name) {
            if names.len() >= METRIC_NAMES_MAX {
                return OTHER.to_owned();
            }
            names.insert(Arc::from(name));
        }
        name.to_owned()
    }
}

pub(crate) fn seconds_of(ms: u64) -> f64 {
    f64::from(u32::try_from(ms).unwrap_or(u32::MAX)) / 1_000.0
}

pub(crate) fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

fn token_counts() -> Histogram {
    Histogram::new(TOKENS)
}
