//! `outrigger store`: where everything is kept, and how it comes elsewhere.
//!
//! Must never write into a database in which anything is.

use clap::Subcommand;
use outrigger_store::transfer::{self, CopyError, CopyOutcome, CopyProgress};
use serde_json::json;

use crate::compose;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::show::{self, Screen, Tone, count, inert};

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// Copy everything from the data directory's SQLite into an empty database of PostgreSQL,
    /// all of it or nothing, and check what came. The source stays as it is.
    Copy {
        /// The database, as `postgres:///outrigger?host=/run/postgresql`.
        #[arg(value_name = "URL")]
        to: String,
        #[command(flatten)]
        output: Output,
    },
}

impl Store {
    pub(crate) fn output(&self) -> Output {
        let Self::Copy { output, .. } = self;
        *output
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Store) -> Outcome<u8> {
    let Store::Copy { to, output } = asked;
    if !paths.database().is_sqlite() {
        let text = "a store is copied from SQLite, and another database is named as its place";
        return Err(
            Failure::new(Kind::Usage, text).hint("Leave --database and OUTRIGGER_DATABASE away.")
        );
    }
    let place = paths.clone().with_database(Some(&to))?;
    // None is made for the sake of a copy.
    outrigger_store::Audit::open(paths.harness(), paths.database()).await?;
    let source = compose::database(paths).await?;
    let destination = compose::database(&place).await?;
    let (progress, mut screen) = (CopyProgress::default(), Screen::new(output));
    let what = || {
        let ((rows, rows_all), (blobs, blobs_all)) = progress.now();
        match progress.audit.now() {
            (0, ..) => {
                let blobs_all = count(blobs_all, "content");
                format!("copying · {blobs} of {blobs_all} · {rows} of {}", count(rows_all, "row"))
            }
            (sessions, done, _) => format!("checking · {done} of {}", count(sessions, "session")),
        }
    };
    let work = transfer::copy(&source, &destination, &progress);
    let copied = screen.watching(what, work).await;
    destination.close().await;
    let outcome = copied.map_err(refused)?;
    tell(&outcome, &to, &screen)?;
    match outcome.report.faults.first() {
        None => Ok(0),
        Some(first) => {
            let text =
                format!("what was copied is not as it was written: {}", inert(&first.to_string()));
            Err(Failure::new(Kind::AuditFailed, text)
                .hint("All of it was copied all the same. `outrigger audit verify` without OUTRIGGER_DATABASE says whether the source was so before."))
        }
    }
}

fn tell(outcome: &CopyOutcome, to: &str, screen: &Screen) -> Outcome {
    let CopyOutcome { tables, row_bytes, blobs, blob_bytes, report } = outcome;
    if screen.is_json() {
        return show::line(&json!({
            "type": "store_copied", "ok": report.is_clean(), "rows": tables,
            "row_bytes": row_bytes, "blobs": blobs, "blob_bytes": blob_bytes,
            "checkpoint": report.checkpoint,
        }));
    }
    let rows = count(tables.values().sum(), "row");
    let (sessions, blobs) = (count(report.sessions, "session"), count(*blobs, "content"));
    let text = format!("● {sessions} with {rows} and {blobs} copied and checked");
    screen.note(Tone::Good, text);
    screen.note(Tone::Plain, format!("next: OUTRIGGER_DATABASE='{}' outrigger serve", inert(to)));
    let text = "journal.db stays as it was: move it away, so that nobody goes on in it";
    screen.note(Tone::Detail, text);
    Ok(())
}

/// Why it was not copied, and what helps.
fn refused(error: CopyError) -> Failure {
    match &error {
        CopyError::InUse => Failure::from_error(Kind::Conflict, &error)
            .hint("Stop `outrigger serve`, and wait until no session runs (`outrigger sessions ls`). Nothing was copied."),
        CopyError::Occupied { .. } => Failure::from_error(Kind::Conflict, &error)
            .hint("Make an empty one (createdb) and name that. Nothing was copied."),
        CopyError::Different { .. } => Failure::from_error(Kind::Storage, &error)
            .hint("Nothing was kept of it. `outrigger audit verify` says whether the source is as it was written."),
        CopyError::Store(error) => Failure::from(error),
    }
}
