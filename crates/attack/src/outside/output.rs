//! Output without end, and those who hold it open.

use std::time::Instant;

use outrigger_sandbox::{End, Streams};

use crate::limits;
use crate::observation::{ProbeResult, noted};
use crate::stage::own_memory;
use crate::stage::{EVIL, OnStage};

/// More output than anybody keeps, none of it in lines.
pub(crate) async fn floods(stage: OnStage) -> ProbeResult {
    let room = stage.room("flood", |_| {}).await?;
    let mebibytes: u64 = stage.scaled(128, 2_048);
    let mut all = Vec::new();
    for kind in ["flood", "garbage"] {
        let before = own_memory()?;
        let mut request = room.request(&[EVIL, "bomb", kind, &mebibytes.to_string()]);
        request.streams = Streams::Merged;
        let executed =
            room.sandbox.execute(request, &()).await.map_err(|error| error.to_string())?;
        let grown = own_memory()?.saturating_sub(before);
        let kept = executed.stdout.len() as u64;
        let counted = kept + executed.stdout_dropped_bytes == mebibytes << 20;
        let capped = kept == outrigger_sandbox::limits::OUTPUT_BYTES_DEFAULT;
        let flat = grown < limits::GROWTH_BYTES_MAX;
        let saw = match (executed.end, capped, counted, flat) {
            (End::Exited(0), true, true, true) => {
                "capped, counted to the byte, memory flat".to_owned()
            }
            (end, ..) => format!("{end:?}, capped {capped}, counted {counted}, flat {flat}"),
        };
        let rate = mebibytes * 1_000 / executed.wall_ms.max(1);
        let note = format!("{mebibytes} MiB at {rate} MiB/s, {} KiB more memory", grown >> 10);
        all.push(noted(kind, saw, note));
    }
    room.end().await?;
    Ok(all)
}

/// A command that ends, while a child of it keeps the output open.
pub(crate) async fn hold(stage: OnStage) -> ProbeResult {
    let room = stage.room("hold", |_| {}).await?;
    let begun = Instant::now();
    let said = room.evil(&["bomb", "hold", "60"], |_| {}).await?;
    let took = begun.elapsed().as_millis();
    room.end().await?;
    // Had the call waited for the child, it would have ended with its deadline.
    Ok(vec![noted("hold", said.end, format!("{took} ms, the child holds on for 60 s"))])
}
