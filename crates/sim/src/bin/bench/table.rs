//! The figures as people read them, beside what was promised and what the field takes.

use std::fmt::Write as _;

use crate::figure::Figure;
use crate::memory::{self, figure};
use crate::sizes;
use crate::turns::Turns;

/// Everything that was measured.
#[derive(Debug)]
pub(crate) struct TurnFigures {
    pub(crate) turns: Turns,
    pub(crate) one: Vec<memory::MemoryFigures>,
    pub(crate) crowd: Vec<memory::MemoryFigures>,
    pub(crate) steps_per_s: Figure,
}

/// What was promised for the median of a figure, and what agents in the field take.
fn promised(name: &str) -> (&'static str, &'static str) {
    match name {
        "audit/all" => ("10", "-"),
        "memory/ls" | "memory/read" | "memory/compare_and_set" => ("2", "-"),
        "memory/search" => ("50", "-"),
        "fuse/open_read_4k" => ("0.15", "-"),
        "fuse/grep_5000_cold" => ("1500", "-"),
        "fuse/grep_5000_warm" => ("500", "-"),
        "turn/cpu" => ("2", "5 to 86"),
        "rss/one_session" => ("40", "140 to 1265"),
        "rss/200_sessions" => ("120", "-"),
        "start/first" | "start/later" | "output/key_longest" => ("100", "-"),
        "token/first" => ("20", "-"),
        // What one session takes, and fifteen for the terminal.
        "peak/prompt" | "peak/5mb" | "peak/200k" => ("55", "-"),
        _ => ("-", "-"),
    }
}

impl TurnFigures {
    pub(crate) fn figures(&self) -> Vec<Figure> {
        vec![
            self.turns.cpu(),
            self.turns.wall(),
            figure("rss/one_session", &self.one),
            figure("rss/200_sessions", &self.crowd),
            self.steps_per_s.clone(),
        ]
    }

    pub(crate) fn shown(&self) -> String {
        rows(&self.figures()) + &self.notes()
    }

    fn notes(&self) -> String {
        let (first, last) = self.turns.growth_cpu_ms();
        let (compared, all) = (sizes::TURNS_COMPARED, sizes::TURNS);
        let mut text = format!(
            "\nturn/cpu p50 of turns 2 to {compared}: {first:.2} ms; of turns {} to {all}: {last:.2} ms\n",
            all - compared + 1
        );
        for (name, taken) in [("one session", &self.one), ("200 sessions", &self.crowd)] {
            let Some((kib, count)) = taken.iter().filter_map(|taken| taken.below_kib).max() else {
                continue;
            };
            let mib = kib as f64 / 1024.0;
            writeln!(
                text,
                "beside the harness, {name}: {mib:.1} MiB in {count} processes (spawner and guests)"
            )
            .expect("a String takes everything");
        }
        text.pop();
        text
    }
}

/// Figures without notes.
pub(crate) fn plain(figures: &[Figure]) -> String {
    rows(figures).trim_end().to_owned()
}

/// Figures, each with whether 99 of 100 samples of it are within its target.
pub(crate) fn judged(figures: &[Figure]) -> String {
    let mut text = line(["figure", "unit", "n", "min", "p50", "p99", "target", ""]);
    for figure in figures {
        let (target, _) = promised(figure.name);
        text += &row(figure, verdict(figure, target));
    }
    text.trim_end().to_owned()
}

/// How a figure stands to its target.
fn verdict(figure: &Figure, target: &str) -> &'static str {
    match target.parse::<f64>() {
        Err(_) => "",
        Ok(target) if figure.p99 <= target => "ok",
        Ok(target) if figure.p50 <= target => "p99 above",
        Ok(_) => "above",
    }
}

fn rows(figures: &[Figure]) -> String {
    let mut text = line(["figure", "unit", "n", "min", "p50", "p99", "target", "in the field"]);
    for figure in figures {
        let (_, field) = promised(figure.name);
        text += &row(figure, field);
    }
    text
}

/// A figure beside its target, and what is said of it.
fn row(figure: &Figure, said: &str) -> String {
    let Figure { name, unit, n, min, p50, p99 } = figure;
    let (target, _) = promised(name);
    let [n, min, p50, p99] = [n.to_string(), rounded(*min), rounded(*p50), rounded(*p99)];
    line([name, unit, &n, &min, &p50, &p99, target, said])
}

fn rounded(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn line(cells: [&str; 8]) -> String {
    let [name, unit, n, min, p50, p99, target, field] = cells;
    let numbers = format!("{n:>5}{min:>9}{p50:>9}{p99:>9}");
    format!("{name:<24}{unit:<5}{numbers}  {target:>6}  {field}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_held_to_its_target() {
        for (samples, said) in
            [(vec![1.0], "ok"), (vec![1.0, 1.0, 21.0], "p99 above"), (vec![21.0], "above")]
        {
            assert_eq!(verdict(&Figure::of("token/first", "ms", samples), "20"), said);
        }
        assert_eq!(verdict(&Figure::of("key/empty", "ms", vec![1.0]), "-"), "");
    }
}
