//! Everything at once, and what a neighbour feels.
//!
//! Owns the measurement. It judges no time: the ratio is said, and whether it is above
//! what is promised.

use std::time::{Duration, Instant};

use super::{OnStage, Tried};
use crate::limits;
use crate::stage::{EVIL, Room, noted};

/// Latencies of a neighbour's commands, until `until` or as many as `count`.
async fn visits(neighbour: &Room, count: usize) -> Result<Vec<Duration>, String> {
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        let said = neighbour.evil(&["bomb", "nothing"], |_| {}).await?;
        if said.end != "ended" {
            return Err(format!("the neighbour's command: {}", said.end));
        }
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    Ok(took)
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or_default()
}

/// One bomb again and again until the time is over.
async fn again(room: &Room, words: &[&str], time: Duration) {
    let begun = Instant::now();
    while let Some(left) = time.checked_sub(begun.elapsed()) {
        let words: Vec<&str> = [EVIL].iter().chain(words).copied().collect();
        let mut request = room.request(&words);
        request.deadline_ms = u64::try_from(left.as_millis()).unwrap_or(1).max(1);
        // Refused while the fork bomb has all processes, or its disk is full: once more.
        if room.sandbox.execute(request, &()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A fork bomb, a memory bomb, a full disk and a flood in one sandbox; commands of another.
pub(crate) async fn pressure(stage: OnStage) -> Tried {
    let count = stage.scaled(30, 400);
    let time = Duration::from_millis(stage.scaled(1_500, 12_000));
    let neighbour = stage.room("neighbour", |_| {}).await?;
    let room = stage.room("pressure", |_| {}).await?;
    let idle = visits(&neighbour, count).await?;
    let disk = (limits::DISK_BYTES_MAX / 2).to_string();
    let fill = ["disk", "fill", &disk];
    let attack = async {
        tokio::join!(
            again(&room, &["bomb", "fork"], time),
            again(&room, &["bomb", "memory"], time),
            again(&room, &fill, time),
            again(&room, &["bomb", "flood", "1000000"], time),
        )
    };
    // What is measured is what happens while the bombs go off, and not after them.
    let measured = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let begun = Instant::now();
        let mut took = Vec::new();
        while took.len() < count && begun.elapsed() < time.mul_f32(0.8) {
            took.extend(visits(&neighbour, 1).await?);
        }
        took.sort_unstable();
        Ok::<_, String>(took)
    };
    let ((..), busy) = tokio::join!(attack, measured);
    let busy = busy?;
    let alive = room.alive().await;
    room.end().await?;
    neighbour.end().await?;
    let [idle50, idle99, busy50, busy99] = [(&idle, 50), (&idle, 99), (&busy, 50), (&busy, 99)]
        .map(|(all, percent)| percentile(all, percent));
    let ratio = busy99.as_secs_f64() / idle99.as_secs_f64().max(1e-9);
    let above = if ratio * 100.0 > limits::NEIGHBOUR_PERCENT as f64 {
        ", ABOVE the promised 2.0"
    } else {
        ""
    };
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let note = format!(
        "neighbour's exec p50/p99: idle {:.2}/{:.2} ms, under attack {:.2}/{:.2} ms of {} commands; p99 ratio {ratio:.2}{above}; the attacker is {alive}",
        ms(idle50),
        ms(idle99),
        ms(busy50),
        ms(busy99),
        busy.len()
    );
    Ok(vec![noted("pressure", "served", note)])
}
