//! A figure: what was measured, how often, how it is distributed, and what was promised.

use std::fmt::Write as _;

use serde::Serialize;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// What it is called, everywhere and for good.
    pub(crate) name: String,
    /// The unit of the three values.
    pub(crate) unit: &'static str,
    /// How many samples there are.
    pub(crate) n: usize,
    /// The smallest.
    pub(crate) min: f64,
    /// The median.
    pub(crate) p50: f64,
    /// The one that 99 of 100 do not exceed.
    pub(crate) p99: f64,
    /// The median over the one without anything between.
    #[serde(skip)]
    pub(crate) ratio: Option<f64>,
}

/// What was promised of a median.
enum Target {
    None,
    AtMost(f64),
    AtLeast(f64),
}

impl Figure {
    /// Of at least one sample.
    pub(crate) fn of(name: String, unit: &'static str, mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let (min, p50, p99) = (at(&samples, 0), at(&samples, 50), at(&samples, 99));
        Self { name, unit, n: samples.len(), min, p50, p99, ratio: None }
    }

    /// As it stands to the one without anything between.
    pub(crate) fn beside(mut self, direct: &Self) -> Self {
        self.ratio = Some(self.p50 / direct.p50);
        self
    }

    /// What it takes more, value by value.
    pub(crate) fn added_to(&self, direct: &Self) -> Self {
        Self {
            name: format!("{}_added", self.name),
            unit: self.unit,
            n: self.n,
            min: rounded(self.min - direct.min),
            p50: rounded(self.p50 - direct.p50),
            p99: rounded(self.p99 - direct.p99),
            ratio: None,
        }
    }

    fn target(&self) -> Target {
        match self.name.as_str() {
            "request/gate_added" => Target::AtMost(60.0),
            "connection/gate_added" => Target::AtMost(1.5),
            "requests/gate" => Target::AtLeast(5_000.0),
            "body/gate" => Target::AtLeast(300.0),
            "rss/1000_connections" => Target::AtMost(60.0),
            _ => Target::None,
        }
    }

    fn row(&self) -> String {
        let ratio = self.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let (target, verdict) = match self.target() {
            Target::None => ("-".to_owned(), ""),
            Target::AtMost(most) if self.p50 <= most => (format!("<= {most}"), "ok"),
            Target::AtMost(most) => (format!("<= {most}"), "above"),
            Target::AtLeast(least) if self.p50 >= least => (format!(">= {least}"), "ok"),
            Target::AtLeast(least) => (format!(">= {least}"), "below"),
        };
        let [n, min, p50, p99] =
            [self.n.to_string(), shown(self.min), shown(self.p50), shown(self.p99)];
        line([&self.name, self.unit, &n, &min, &p50, &p99, &ratio, &target, verdict])
    }
}

/// The smallest sample that so many percent do not exceed (nearest rank).
fn at(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    rounded(sorted.get(rank - 1).copied().unwrap_or_default())
}

/// To three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

fn shown(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn line(cells: [&str; 9]) -> String {
    let [name, unit, n, min, p50, p99, ratio, target, verdict] = cells;
    let mut text = format!("{name:<28}{unit:<5}{n:>5}{min:>9}{p50:>9}{p99:>9}");
    write!(text, "{ratio:>10}  {target:>7}  {verdict}").expect("a String takes everything");
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// As people read them.
pub(crate) fn table(figures: &[Figure]) -> String {
    let head = ["figure", "unit", "n", "min", "p50", "p99", "x direct", "target", ""];
    let rows = figures.iter().map(Figure::row);
    std::iter::once(line(head)).chain(rows).collect()
}

/// As an array of objects.
pub(crate) fn to_json(figures: &[Figure]) -> String {
    let json = serde_json::to_string_pretty(figures);
    json.expect("figures are plain data and always serialise") + "\n"
}
