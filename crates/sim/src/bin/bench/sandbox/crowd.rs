//! A thousand sandboxes alive at once: what they take, and what a command takes then.

use outrigger_sandbox::{Backend, CreateSpec, Sandbox};
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

use super::Samples;
use super::native::{BenchBackend, name, run_true};
use crate::error::{Error, ErrorContext, Outcome};
use crate::home::Home;
use crate::sizes;
use crate::spawner::field_kib;

/// Memory that the kernel counts as used and can't give back: everything of it is
/// counted, pages of processes as much as its own tables.
fn used_kib() -> Outcome<u64> {
    // What is only cached goes first, so that it is counted neither before nor after.
    rustix::fs::sync();
    drop(std::fs::write("/proc/sys/vm/drop_caches", "3"));
    let field = |name| {
        let missing = || Error::Astray(format!("/proc/meminfo does not tell `{name}`"));
        field_kib("/proc/meminfo", name).ok_or_else(missing)
    };
    Ok(field("MemTotal:")? - field("MemAvailable:")?)
}

/// Makes them, runs `true` in each, and ends them.
pub(super) async fn measure(home: &Home, samples: &mut Samples) -> Outcome<()> {
    let opened = BenchBackend::new(home, "crowd").await?;
    let native = Arc::clone(&opened.native);
    let first = native.create(&name("first"), &CreateSpec::default()).await;
    first.doing("making a sandbox")?;
    let before = used_kib()?;
    let begin = Instant::now();
    let mut makers = JoinSet::new();
    for maker in 0..sizes::SANDBOX_MAKERS {
        let native = Arc::clone(&native);
        makers.spawn(async move {
            let mut made: Vec<Arc<dyn Sandbox>> = Vec::new();
            for number in (maker..sizes::SANDBOX_CROWD).step_by(sizes::SANDBOX_MAKERS) {
                let id = name(&format!("c{number}"));
                let sandbox = native.create(&id, &CreateSpec::default()).await;
                made.push(sandbox.doing("making one of many sandboxes")?);
            }
            Ok::<_, Error>(made)
        });
    }
    let mut all = Vec::new();
    while let Some(made) = makers.join_next().await {
        all.extend(made.doing("making many sandboxes")??);
    }
    samples.add("native/creates_per_s", all.len() as f64 / begin.elapsed().as_secs_f64());
    let after = used_kib()?;
    samples.add("native/live_1000_mib", after.saturating_sub(before) as f64 / 1024.0);
    for sandbox in &all {
        samples.time("native/live_1000_exec", run_true(&**sandbox, "e")).await?;
    }
    drop((all, native));
    opened.close().await
}
