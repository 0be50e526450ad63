//! What a sandbox costs, beside what others take for the same: `bench sandbox`.
//!
//! Owns the order of things: everything is taken in rounds, one sample of each
//! figure after the other, so that whatever else the machine does meets ours and
//! theirs alike. The crowd of a thousand comes last, because it changes the machine.

mod crowd;
mod native;
mod peers;
mod report;
mod shell;
mod stream;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::error::Outcome;
use crate::figure::Figure;
use crate::home::Home;
use crate::sizes;

pub(crate) use report::Report;

/// Samples by the name of their figure, in milliseconds unless the name says otherwise.
#[derive(Debug, Default)]
struct Samples(BTreeMap<&'static str, Vec<f64>>);

impl Samples {
    /// Takes a sample that was measured elsewhere.
    fn add(&mut self, name: &'static str, value: f64) {
        self.0.entry(name).or_default().push(value);
    }

    /// Takes how long something lasted.
    async fn time<T>(
        &mut self,
        name: &'static str,
        work: impl Future<Output = Outcome<T>>,
    ) -> Outcome<T> {
        let begin = Instant::now();
        let done = work.await?;
        self.add(name, begin.elapsed().as_secs_f64() * 1e3);
        Ok(done)
    }

    fn figures(self) -> Vec<Figure> {
        let unit = |name: &str| match name {
            "native/creates_per_s" => "1/s",
            "native/live_1000_mib" => "MiB",
            _ => "ms",
        };
        self.0.into_iter().map(|(name, samples)| Figure::of(name, unit(name), samples)).collect()
    }
}

/// Takes all figures.
pub(crate) async fn measure(progress: impl Fn(&str)) -> Outcome<Report> {
    let mut samples = Samples::default();
    progress("starting the peers");
    let home = Home::new()?;
    let mut peers = peers::Peers::start(home.path()).await?;
    let mut ours = native::Ours::open(&home).await?;
    for round in 0..sizes::SANDBOX_ROUNDS {
        if round % 10 == 0 {
            progress(&format!("round {} of {}", round + 1, sizes::SANDBOX_ROUNDS));
        }
        peers.bare(&mut samples).await?;
        ours.round(round, &mut samples).await?;
        peers.one_shot(&mut samples).await?;
        if round % sizes::SANDBOX_DOCKER_EVERY == 0 {
            peers.docker(round, &mut samples).await?;
        }
    }
    ours.close().await?;
    peers.stop().await?;
    progress(&format!("{} sandboxes at once", sizes::SANDBOX_CROWD));
    crowd::measure(&home, &mut samples).await?;
    Ok(Report { figures: samples.figures() })
}
