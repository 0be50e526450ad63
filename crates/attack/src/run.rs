//! Makes the attacks of the table, one after the other, and judges them.
//!
//! Owns the order: what the evil program tries alone is tried at once, in a sandbox
//! of its own; then every attack from outside, which makes its own sandboxes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::limits;
use crate::observation::Observation;
use crate::report::{AttemptReport, AttemptVerdict, TargetReport};
use crate::stage::{Scale, Stage};
use crate::table::{By, How, Probe, Row, rows};
use crate::target::Target;

/// Runs all attacks, or one of them, on a backend. Says each row when it is done.
pub async fn run(
    target: Target,
    scale: Scale,
    only: Option<u8>,
    progress: &(dyn Fn(&Row) + Sync),
) -> TargetReport {
    let begun = Instant::now();
    let capabilities = target.backend.capabilities();
    let name = format!("{} ({})", capabilities.backend, capabilities.isolation);
    let stage = Arc::new(Stage::new(target, scale));
    let mut attempts = Vec::new();
    let wanted = || rows().filter(|row| only.is_none_or(|only| row.number == only));
    let inside = tried_inside(&stage, wanted()).await;
    for row in wanted() {
        progress(row);
        match row.how {
            How::NotApplicable(why) => attempts.push(AttemptReport {
                seen: why.to_owned(),
                verdict: AttemptVerdict::NotApplicable,
                ..blank(row)
            }),
            How::Tried(probes) => {
                for probe in probes {
                    attempts.extend(judged(&stage, row, probe, &inside).await);
                }
            }
        }
    }
    stage.clear().await;
    let wall_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    TargetReport { backend: name, attempts, wall_ms }
}

fn blank(row: &Row) -> AttemptReport {
    AttemptReport {
        number: row.number,
        name: row.name.to_owned(),
        attempt: String::new(),
        expected: String::new(),
        seen: String::new(),
        note: None,
        verdict: AttemptVerdict::Unexpected,
    }
}

type GuestResult = Result<BTreeMap<String, String>, String>;

/// Everything that the evil program tries, in one command.
async fn tried_inside(stage: &Arc<Stage>, rows: impl Iterator<Item = &'static Row>) -> GuestResult {
    let probes = rows.flat_map(|row| match row.how {
        How::Tried(probes) => probes,
        How::NotApplicable(_) => &[],
    });
    let mut groups: Vec<&str> = probes
        .filter(|probe| matches!(probe.by, By::Inside(_)))
        .filter_map(|probe| probe.name().split('/').next())
        .collect();
    groups.sort_unstable();
    groups.dedup();
    if groups.is_empty() {
        return Ok(BTreeMap::new());
    }
    let room = stage.room("inside", |_| {}).await?;
    let words: Vec<&str> = ["try"].into_iter().chain(groups).collect();
    let said = room.evil(&words, |request| request.deadline_ms = limits::ATTACK_MS_MAX).await?;
    let tried = said.lines.into_iter().collect();
    // Whatever was tried on it, the guest must still serve.
    room.evil(&["bomb", "nothing"], |_| {}).await?;
    room.end().await?;
    Ok(tried)
}

async fn judged(
    stage: &Arc<Stage>,
    row: &Row,
    probe: &Probe,
    inside: &GuestResult,
) -> Vec<AttemptReport> {
    let limit = Duration::from_millis(limits::ATTACK_MS_MAX);
    let seen = match (&probe.by, inside) {
        (By::Outside(_, act), _) => tokio::time::timeout(limit, act(Arc::clone(stage)))
            .await
            .unwrap_or_else(|_| Err("it hangs".to_owned())),
        (By::Inside(_), Err(error)) => Err(error.clone()),
        (By::Inside(prefix), Ok(tried)) => Ok(tried
            .iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(name, saw)| Observation {
                name: name.clone(),
                saw: saw.clone(),
                ..Observation::default()
            })
            .collect()),
    };
    let failed = |what: String| {
        vec![AttemptReport { attempt: probe.name().to_owned(), seen: what, ..blank(row) }]
    };
    let capabilities = stage.backend().capabilities();
    let whose = [capabilities.backend.clone(), capabilities.isolation.to_string()];
    match seen {
        Err(error) => failed(error),
        Ok(seen) if seen.is_empty() => failed("nothing was tried".to_owned()),
        Ok(seen) => seen.into_iter().map(|seen| judge(&whose, row, probe, seen)).collect(),
    }
}

fn judge(whose: &[String], row: &Row, probe: &Probe, seen: Observation) -> AttemptReport {
    let expect = probe.expects(whose, &seen.name);
    let verdict = match (&seen.lacks, expect.allows(&seen.saw), expect.known) {
        (Some(_), ..) => AttemptVerdict::NotApplicable,
        (None, false, _) => AttemptVerdict::Unexpected,
        (None, true, Some(_)) => AttemptVerdict::Documented,
        (None, true, None) => AttemptVerdict::Held,
    };
    AttemptReport {
        attempt: seen.name,
        expected: expect.any.join(" or "),
        seen: seen.lacks.unwrap_or(seen.saw),
        note: match verdict {
            AttemptVerdict::Documented => {
                let parts = [expect.known.map(str::to_owned), seen.note];
                Some(parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
            }
            AttemptVerdict::Held | AttemptVerdict::Unexpected | AttemptVerdict::NotApplicable => {
                seen.note
            }
        },
        verdict,
        ..blank(row)
    }
}
