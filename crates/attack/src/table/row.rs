//! The form of a row: who tries an attack, and what must come of it.

use std::pin::Pin;
use std::sync::Arc;

use crate::observation::Observation;
use crate::stage::Stage;

/// All that came of a probe, or why it could not be made.
pub type Act =
    fn(Arc<Stage>) -> Pin<Box<dyn Future<Output = Result<Vec<Observation>, String>> + Send>>;

/// Who makes the attempt.
#[derive(Debug, Clone, Copy)]
pub enum By {
    /// The evil program, inside; all its attempts whose names begin so.
    Inside(&'static str),
    /// Whoever asks the sandbox for something, through the port.
    Outside(&'static str, Act),
}

/// What an attempt must come to.
#[derive(Debug, Clone, Copy)]
pub struct Expect {
    /// One of these; `*` at the end stands for anything.
    pub any: &'static [&'static str],
    /// Set where that outcome is a weakness that SECURITY.md names.
    pub known: Option<&'static str>,
}

/// A way to try an attack.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// Who tries.
    pub by: By,
    /// What every attempt of it must come to.
    pub expect: Expect,
    /// But for these, by the end of their names.
    pub but: &'static [(&'static str, Expect)],
    /// And but for these where a backend or an isolation differs, by its name and the end
    /// of theirs.
    pub on: &'static [(&'static str, &'static str, Expect)],
}

/// How an attack is tried.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// By these.
    Tried(&'static [Probe]),
    /// By nothing, because there is nothing to try it on.
    NotApplicable(&'static str),
}

/// An attack.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its number.
    pub number: u8,
    /// What it is.
    pub name: &'static str,
    /// How it is tried.
    pub how: How,
}

/// One of these must be seen.
pub(super) const fn held(any: &'static [&'static str]) -> Expect {
    Expect { any, known: None }
}

/// One of these is seen, and SECURITY.md says so.
pub(super) const fn known(any: &'static [&'static str], why: &'static str) -> Expect {
    Expect { any, known: Some(why) }
}

pub(super) const fn inside(prefix: &'static str, any: &'static [&'static str]) -> Probe {
    Probe { by: By::Inside(prefix), expect: held(any), but: &[], on: &[] }
}

pub(super) const fn outside(name: &'static str, act: Act, any: &'static [&'static str]) -> Probe {
    Probe { by: By::Outside(name, act), expect: held(any), but: &[], on: &[] }
}

pub(super) const fn but(probe: Probe, but: &'static [(&'static str, Expect)]) -> Probe {
    Probe { but, ..probe }
}

/// A probe with the backends and isolations that are documented to differ.
pub(super) const fn on(probe: Probe, on: &'static [(&'static str, &'static str, Expect)]) -> Probe {
    Probe { on, ..probe }
}

pub(super) const fn row(number: u8, name: &'static str, probes: &'static [Probe]) -> Row {
    Row { number, name, how: How::Tried(probes) }
}

pub(super) const fn not_applicable(number: u8, name: &'static str, why: &'static str) -> Row {
    Row { number, name, how: How::NotApplicable(why) }
}

/// An attack from outside as the table holds it.
macro_rules! act {
    ($function:path) => {
        |stage| Box::pin($function(stage))
    };
}
pub(super) use act;

impl Expect {
    /// Whether that was expected.
    #[must_use]
    pub fn allows(&self, saw: &str) -> bool {
        self.any.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => saw.starts_with(start),
            None => *pattern == saw,
        })
    }
}

impl Probe {
    /// What one attempt of it must come to on a backend with its isolation, by their names.
    #[must_use]
    pub fn expects(&self, whose: &[String], name: &str) -> Expect {
        let differs = |(on, end, _): &&(&str, &str, Expect)| {
            whose.iter().any(|whose| whose == on) && name.ends_with(end)
        };
        if let Some((_, _, expect)) = self.on.iter().find(differs) {
            return *expect;
        }
        let exception = self.but.iter().find(|(end, _)| name.ends_with(end));
        exception.map_or(self.expect, |(_, expect)| *expect)
    }

    /// Its name: of the group of attempts inside, or of the function outside.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.by {
            By::Inside(name) | By::Outside(name, _) => name,
        }
    }
}
