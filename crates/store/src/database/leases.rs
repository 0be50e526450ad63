//! Who drives which session, and which are to be driven.
//!
//! Owns that of all processes one drives a session. Beside SQLite that is a lock of a file, which
//! the kernel lets go of; in PostgreSQL it is a row with the number of a process that lives. What
//! keeps a journal whole is its fence, whoever believes to drive it.

mod files;
mod purpose;
mod rows;

use std::path::Path;

use outrigger_agent::{Digest, SessionId};

use super::installation::{installation, random};
use super::notices::Notices;
use super::place::DatabasePlace;
use crate::Error;
use files::{FileLease, FileLeases};
pub use purpose::LeasePurpose;
use rows::{RowLease, RowLeases};

/// A session that nobody else drives. Ends when it is dropped, and with the process.
#[derive(Debug)]
pub struct Lease(LeaseKind);

#[derive(Debug)]
enum LeaseKind {
    File(#[expect(dead_code, reason = "it is held")] FileLease),
    Row(RowLease),
}

impl Lease {
    /// Of which session it is, where another process may take it although this one lives.
    pub(super) fn may_be_lost(&self) -> Option<&SessionId> {
        match &self.0 {
            // The kernel takes no lock away from a process that lives.
            LeaseKind::File(_) => None,
            LeaseKind::Row(row) => Some(row.session()),
        }
    }

    /// Over when another process may have it, because this one was taken for dead.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + 'static {
        let lost = match &self.0 {
            LeaseKind::File(_) => None,
            LeaseKind::Row(row) => Some(row.lost()),
        };
        async move {
            match lost {
                Some(lost) => lost.await,
                None => std::future::pending().await,
            }
        }
    }
}

/// The leases of a store.
#[derive(Debug)]
pub(super) struct Leases {
    kind: LeasesKind,
    /// By which notifications of this process are known.
    pub(super) process: i64,
    /// By which this installation is known; 0 where it needs no name.
    pub(super) server: i64,
}

#[derive(Debug)]
enum LeasesKind {
    Files(FileLeases),
    Rows(RowLeases),
}

/// The number of a name, which is never 0.
fn number(name: &str) -> i64 {
    let digest = Digest::of(name.as_bytes());
    let digits = digest.as_str().get(..16).unwrap_or_default();
    u64::from_str_radix(digits, 16).map_or(0, u64::cast_signed) | 1
}

impl Leases {
    pub(super) fn new(directory: &Path, place: &DatabasePlace) -> Result<Self, Error> {
        // Not 0, as that of a server is not.
        let process = (random() | 1).cast_signed();
        Ok(match place {
            DatabasePlace::Sqlite(_) => {
                let kind = LeasesKind::Files(FileLeases::new(directory));
                Self { kind, process, server: 0 }
            }
            DatabasePlace::Postgres(database) => {
                let server = number(&installation(directory)?);
                let kind = LeasesKind::Rows(RowLeases::start(database, (process, server)));
                Self { kind, process, server }
            }
        })
    }

    /// Whether they are rows of the database.
    pub(super) fn are_rows(&self) -> bool {
        matches!(self.kind, LeasesKind::Rows(_))
    }

    pub(super) async fn take(
        &self,
        session: &SessionId,
        purpose: LeasePurpose,
    ) -> Result<Option<Lease>, Error> {
        let kind = match &self.kind {
            LeasesKind::Files(files) => files.take(session, purpose).await?.map(LeaseKind::File),
            LeasesKind::Rows(rows) => rows.take(session, purpose).await?.map(LeaseKind::Row),
        };
        Ok(kind.map(Lease))
    }

    /// From now on this process is a server.
    pub(super) fn serve(&self) -> Notices {
        match &self.kind {
            LeasesKind::Files(_) => Notices::none(),
            LeasesKind::Rows(rows) => {
                rows.serve();
                rows.listen(self.process)
            }
        }
    }

    /// Nobody needs a lease of a session that is not there any more.
    pub(super) fn forget(&self, session: &SessionId) {
        if let LeasesKind::Files(files) = &self.kind {
            files.forget(session);
        }
    }
}
