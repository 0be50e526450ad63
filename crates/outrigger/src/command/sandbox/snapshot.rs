//! `outrigger sandbox snapshot` and `snapshots`: disks that are kept.

use clap::Subcommand;
use outrigger_sandbox::Snapshot;
use serde_json::{Value, json};

use super::context::{SandboxContext, fresh, removed, sandbox_id, snapshot_id};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::sandbox::failed;
use crate::show::{self, Screen};

#[derive(Debug, Subcommand)]
pub(crate) enum Snapshots {
    /// List snapshots.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Forget snapshots. Sandboxes and snapshots that stand on them stay as they are.
    Rm {
        /// The snapshots.
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
}

pub(super) async fn take(
    sandboxes: &SandboxContext,
    name: &str,
    snapshot: Option<String>,
) -> Outcome<Snapshot> {
    let id = sandbox_id(name)?;
    let snapshot = snapshot_id(snapshot.unwrap_or_else(|| fresh("snapshot")))?;
    let snapshots = sandboxes.backend.snapshots().map_err(|error| failed(&error))?;
    snapshots.take(&id, &snapshot).await.map_err(|error| failed(&error))
}

pub(super) async fn snapshot(
    sandboxes: &SandboxContext,
    name: &str,
    new: Option<String>,
    output: Output,
) -> Outcome<u8> {
    if let Some(new) = &new
        && sandboxes.snapshots().await?.iter().any(|kept| kept.name.as_str() == new)
    {
        let text = format!("there is a snapshot `{new}` already");
        return Err(Failure::new(Kind::Conflict, text).hint("Give another name."));
    }
    let mut screen = Screen::new(output);
    let kept = screen.during("keeping the disk", take(sandboxes, name, new)).await?;
    print_kept(kept.name.as_str(), &json!(kept), output)
}

/// Says that a disk is kept.
pub(crate) fn print_kept(name: &str, object: &Value, output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&json!({ "type": "snapshot", "snapshot": object }))?;
    } else {
        show::out(name)?;
    }
    Ok(0)
}

pub(super) async fn forget(
    sandboxes: &SandboxContext,
    names: &[String],
    output: Output,
) -> Outcome<u8> {
    let snapshots = sandboxes.backend.snapshots().map_err(|error| failed(&error))?;
    let there = sandboxes.snapshots().await?;
    for name in names {
        let id = snapshot_id(name.clone())?;
        if !there.iter().any(|kept| kept.name == id) {
            return Err(Failure::new(Kind::NotFound, format!("there is no snapshot `{name}`"))
                .hint("`outrigger sandbox snapshots ls` lists the snapshots."));
        }
        snapshots.remove(&id).await.map_err(|error| failed(&error))?;
    }
    removed(names, output)
}
