//! A figure: what was measured, how often, how it is distributed, and what was promised.

use serde_json::{Value, json};

/// What was measured.
#[derive(Debug)]
pub(crate) struct Figure {
    name: String,
    unit: &'static str,
    n: usize,
    min: f64,
    p50: f64,
    p99: f64,
}

impl Figure {
    pub(crate) fn of(name: &str, unit: &'static str, mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let (min, p50, p99) = (at(&samples, 0), at(&samples, 50), at(&samples, 99));
        Self { name: name.to_owned(), unit, n: samples.len(), min, p50, p99 }
    }

    /// What 99 of 100 samples, or all where there are fewer, are not to exceed.
    fn target(&self) -> Option<f64> {
        match self.name.as_str() {
            "commit/ours" => Some(100.0),
            "peak/ours" => Some(300.0),
            "cpu_step/ours" => Some(3.0),
            "start/ready" | "start/sessions" | "start/approvals" => Some(1_000.0),
            _ => None,
        }
    }

    /// As people read it.
    pub(crate) fn row(&self) -> String {
        let Self { name, unit, n, min, p50, p99 } = self;
        let (target, verdict) = match self.target() {
            None => (String::new(), ""),
            Some(most) => (format!("<= {most}"), if *p99 <= most { "ok" } else { "above" }),
        };
        let row = format!(
            "{name:<24}{unit:<5}{n:>7}{min:>10.2}{p50:>10.2}{p99:>10.2}  {target:>8}  {verdict}"
        );
        row.trim_end().to_owned()
    }

    fn json(&self) -> Value {
        let Self { name, unit, n, min, p50, p99 } = self;
        json!({ "name": name, "unit": unit, "n": n, "min": min, "p50": p50, "p99": p99 })
    }
}

/// The smallest sample that so many percent do not exceed (nearest rank), to three decimals.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    (sorted.get(rank - 1).copied().unwrap_or_default() * 1e3).round() / 1e3
}

/// As people read them.
pub(crate) fn table(figures: &[Figure]) -> String {
    let head = format!(
        "{:<24}{:<5}{:>7}{:>10}{:>10}{:>10}  {:>8}",
        "figure", "unit", "n", "min", "p50", "p99", "target"
    );
    let rows = figures.iter().map(Figure::row);
    std::iter::once(head).chain(rows).map(|row| row + "\n").collect()
}

/// As an array of objects.
pub(crate) fn to_json(figures: &[Figure]) -> String {
    format!("{:#}\n", figures.iter().map(Figure::json).collect::<Value>())
}
