//! A figure: what was measured, how often, and how it is distributed.

use serde::Serialize;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// What it is called, everywhere and for good.
    pub(crate) name: &'static str,
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
}

impl Figure {
    /// Of at least one sample.
    pub(crate) fn of(name: &'static str, unit: &'static str, mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let (min, p50, p99) = (at(&samples, 0), at(&samples, 50), at(&samples, 99));
        Self { name, unit, n: samples.len(), min, p50, p99 }
    }
}

/// The median.
pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    at(&samples, 50)
}

/// The smallest sample that so many percent do not exceed (nearest rank), to three decimals.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    let value = sorted.get(rank - 1).copied().unwrap_or_default();
    (value * 1_000.0).round() / 1_000.0
}

/// As an array of objects.
pub(crate) fn to_json(figures: &[Figure]) -> String {
    serde_json::to_string_pretty(figures).expect("figures are plain data and always serialise")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest() {
        for (samples, expected) in [
            (vec![1.0], (1.0, 1.0, 1.0)),
            (vec![3.0, 1.0, 2.0], (1.0, 2.0, 3.0)),
            ((1..=100).map(f64::from).collect(), (1.0, 50.0, 99.0)),
            ((1..=200).map(f64::from).collect(), (1.0, 100.0, 198.0)),
        ] {
            let Figure { min, p50, p99, .. } = Figure::of("a", "ms", samples);
            assert_eq!((min, p50, p99), expected);
        }
    }
}
