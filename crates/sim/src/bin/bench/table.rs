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

fn rows(figures: &[Figure]) -> String {
    let mut text = line(["figure", "unit", "n", "min", "p50", "p99", "target", "in the field"]);
    for Figure { name, unit, n, min, p50, p99 } in figures {
        let (target, field) = promised(name);
        let [n, min, p50, p99] = [n.to_string(), rounded(*min), rounded(*p50), rounded(*p99)];
        text += &line([name, unit, &n, &min, &p50, &p99, target, field]);
    }
    text
}

fn rounded(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn line(cells: [&str; 8]) -> String {
    let [name, unit, n, min, p50, p99, target, field] = cells;
    let numbers = format!("{n:>5}{min:>9}{p50:>9}{p99:>9}");
    format!("{name:<24}{unit:<5}{numbers}  {target:>6}  {field}\n")
}
