//! The figures as people read them, and the ratios that were promised.

use crate::figure::Figure;

/// Everything that was measured.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) figures: Vec<Figure>,
}

/// What was promised for the median of a figure, in its unit.
fn promised(name: &str) -> Option<f64> {
    Some(match name {
        "native/create" => 2.0,
        "native/read_4k" | "native/freeze" | "native/thaw" => 0.1,
        "native/cold_resume_exec" => 3.5,
        "native/snapshot" | "docker/exec_stream" => 5.0,
        "native/fork" => 2.5,
        "native/creates_per_s" => 400.0,
        "native/live_1000_mib" => 700.0,
        _ => return None,
    })
}

impl Report {
    fn of(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    fn p50(&self, name: &str) -> f64 {
        self.of(name).map_or(f64::NAN, |figure| figure.p50)
    }

    /// What is said of the figures together: what it is, its value, what was promised.
    fn ratios(&self) -> Vec<(&'static str, f64, String)> {
        let exec = self.p50("native/exec_true");
        let ratio = |theirs: &str, ours: &str| self.p50(theirs) / self.p50(ours);
        let crowd_p99 = self.of("native/live_1000_exec").map_or(f64::NAN, |figure| figure.p99);
        vec![
            (
                "exec over a bare fork and exec, ms",
                exec - self.p50("fork_exec_true"),
                "<= 0.2".into(),
            ),
            (
                "docker/create over native/create",
                ratio("docker/create", "native/create"),
                ">= 80".into(),
            ),
            (
                "docker/exec_cli over native/exec_true",
                ratio("docker/exec_cli", "native/exec_true"),
                ">= 30".into(),
            ),
            (
                "bwrap/run_true over native/exec_true",
                ratio("bwrap/run_true", "native/exec_true"),
                "> 1".into(),
            ),
            (
                "crun/run_true over native/exec_true",
                ratio("crun/run_true", "native/exec_true"),
                "-".into(),
            ),
            ("exec p99 among 1,000, ms", crowd_p99, "< 10".into()),
        ]
    }

    /// As a table.
    pub(crate) fn shown(&self) -> String {
        let mut text = format!(
            "{:<26}{:<5}{:>6}{:>10}{:>10}{:>10}  {}\n",
            "figure", "unit", "n", "min", "p50", "p99", "promised p50"
        );
        for Figure { name, unit, n, min, p50, p99 } in &self.figures {
            let promised = match promised(name) {
                Some(value) if *name == "native/creates_per_s" => format!(">= {value}"),
                Some(value) => format!("<= {value}"),
                None => "-".to_owned(),
            };
            text += &format!(
                "{name:<26}{unit:<5}{n:>6}{min:>10.3}{p50:>10.3}{p99:>10.3}  {promised}\n"
            );
        }
        text.push('\n');
        for (what, value, promised) in self.ratios() {
            text += &format!("{what:<42}{value:>9.2}  {promised}\n");
        }
        text.pop();
        text
    }
}
