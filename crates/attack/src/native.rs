//! The native backend on a state directory of its own.
//!
//! Owns the directory and its end. The program that opens it must be one that becomes
//! a spawner when its first argument is [`NativeWorld::SPAWNER`].

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_sandbox::{Backend, Error};
use outrigger_sandbox_native::{Config, Launch, Native};

/// A native backend whose sandboxes go away at the end.
#[derive(Debug)]
pub struct NativeWorld {
    backend: Arc<Native>,
    // Held for its end: with the directory the spawner goes.
    state: tempfile::TempDir,
}

impl NativeWorld {
    /// The word that makes a program a spawner.
    pub const SPAWNER: &'static str = "--spawner";

    /// Opens the backend.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where no sandbox can be made, [`Error::Backend`] where
    /// no directory can.
    pub async fn open(program: PathBuf) -> Result<Self, Error> {
        let state = tempfile::Builder::new().prefix("outrigger-attack-").tempdir();
        let state = state.map_err(|error| Error::Backend(format!("no directory: {error}")))?;
        let config = Config {
            state_dir: state.path().join("state"),
            launch: Launch { program, args: vec![Self::SPAWNER.into()] },
            guest: outrigger_guest::PROGRAM,
            read_only: Vec::new(),
            warm: 0,
        };
        Ok(Self { backend: Arc::new(Native::open(config).await?), state })
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> Arc<Native> {
        Arc::clone(&self.backend)
    }

    /// Destroys every sandbox that is left, and the directory with them.
    ///
    /// # Errors
    /// Those of the backend; the directory is left then, to be looked at.
    pub async fn close(self) -> Result<(), Error> {
        for listed in self.backend.list().await? {
            self.backend.destroy(&listed.id).await?;
        }
        self.state.close().map_err(|error| Error::Backend(format!("the state stays: {error}")))
    }
}
