//! Leases that are locks of files, beside a database of one machine.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_agent::SessionId;

use super::purpose::LeasePurpose;
use crate::{Error, limits};

/// The files that are locked.
#[derive(Debug)]
pub(super) struct FileLeases {
    directory: PathBuf,
}

/// Held while this process drives a session; the kernel lets go when it dies.
#[derive(Debug)]
pub(super) struct FileLease {
    file: File,
}

fn wrong(error: io::Error) -> Error {
    Error::io("locking a session", error)
}

impl FileLeases {
    pub(super) fn new(store: &Path) -> Self {
        Self { directory: store.join("locks") }
    }

    fn path(&self, session: &SessionId) -> PathBuf {
        self.directory.join(format!("{session}.lock"))
    }

    /// Takes the lock. Who drives says so in it: another one is waited for.
    pub(super) async fn take(
        &self,
        session: &SessionId,
        purpose: LeasePurpose,
    ) -> Result<Option<FileLease>, Error> {
        let path = self.path(session);
        fs::create_dir_all(&self.directory).map_err(wrong)?;
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).read(true).write(true).open(&path);
        let file = file.map_err(wrong)?;
        for look in 0..limits::LEASE_LOOKS_MAX {
            match file.try_lock() {
                Ok(()) => {
                    if purpose == LeasePurpose::Drive {
                        file.set_len(0).map_err(wrong)?;
                        let process = std::process::id().to_string();
                        (&file).write_all(process.as_bytes()).map_err(wrong)?;
                    }
                    return Ok(Some(FileLease { file }));
                }
                Err(TryLockError::WouldBlock) if look > 0 && is_driven(&path) => return Ok(None),
                Err(TryLockError::WouldBlock) => {
                    tokio::time::sleep(Duration::from_millis(limits::LEASE_PAUSE_MS)).await;
                }
                Err(TryLockError::Error(error)) => return Err(wrong(error)),
            }
        }
        Ok(None)
    }

    /// Whoever waits for it has a file that nobody finds any more.
    pub(super) fn forget(&self, session: &SessionId) {
        // One that stays is a few bytes.
        drop(fs::remove_file(self.path(session)));
    }
}

impl Drop for FileLease {
    fn drop(&mut self) {
        // Children that are about to be started have the same file for a moment.
        drop(self.file.unlock());
    }
}

/// Whether the process lives that took the lock to drive. Otherwise one holds it that looks.
fn is_driven(path: &Path) -> bool {
    let process = fs::read_to_string(path).unwrap_or_default();
    !process.is_empty() && Path::new("/proc").join(process).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_looks_at_a_session_is_waited_for_and_who_drives_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (leases, session) = (FileLeases::new(dir.path()), SessionId::new("s").unwrap());
        let take = |purpose| leases.take(&session, purpose);
        let look = take(LeasePurpose::Look).await.unwrap().unwrap();
        let looks = async {
            // poll: what is looked at takes this long.
            tokio::time::sleep(Duration::from_millis(10 * limits::LEASE_PAUSE_MS)).await;
            drop(look);
        };
        let (drives, ()) = tokio::join!(take(LeasePurpose::Drive), looks);
        let drives = drives.unwrap();
        assert!(drives.is_some());
        assert!(take(LeasePurpose::Drive).await.unwrap().is_none());
        assert!(take(LeasePurpose::Look).await.unwrap().is_none());
        drop(drives);
        assert!(take(LeasePurpose::Drive).await.unwrap().is_some());
    }
}
