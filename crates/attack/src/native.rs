//! The native backend on a state directory of its own.
//!
//! Owns the directory and its end. The program that opens it must be one that becomes
//! a spawner when its first argument is [`NativeWorld::SPAWNER`].

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use outrigger_sandbox::{Backend, Error};
use outrigger_sandbox_native::{Archive, Config, Launch, Native};

use crate::target::{Images, TEMPLATE, Target};

/// A native backend whose sandboxes go away at the end.
#[derive(Debug)]
pub struct NativeWorld {
    backend: Arc<Native>,
    // Held for its end: with the directory the spawner goes.
    state: tempfile::TempDir,
    program: PathBuf,
    // Held for its end too.
    _shown: Option<SharedDirectory>,
}

/// A directory that sandboxes are shown, in which somebody of the host listens.
#[derive(Debug)]
struct SharedDirectory {
    dir: tempfile::TempDir,
    _listener: UnixListener,
}

impl SharedDirectory {
    /// Beside this program: where temporary files are, sandboxes have their own.
    fn beside(program: &Path) -> std::io::Result<Self> {
        let place = program.parent().unwrap_or(Path::new("/"));
        let dir = tempfile::Builder::new().prefix("outrigger-shown-").tempdir_in(place)?;
        let socket = dir.path().join("socket");
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755))?;
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o777))?;
        Ok(Self { dir, _listener: listener })
    }
}

/// Its images.
#[derive(Debug)]
struct NativeImages {
    backend: Arc<Native>,
    state: PathBuf,
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
        // Where this user may not write, there is none to attack.
        let shown = SharedDirectory::beside(&program).ok();
        let config = Config {
            state_dir: state.path().join("state"),
            scratch: state.path().to_owned(),
            launcher: Arc::new(Launch {
                program: program.clone(),
                args: vec![Self::SPAWNER.into()],
            }),
            guest: outrigger_guest::PROGRAM,
            read_only: shown.iter().map(|shown| shown.dir.path().to_owned()).collect(),
            trees: None,
        };
        let backend = Arc::new(Native::open(config).await?);
        Ok(Self { backend, state, program, _shown: shown })
    }

    /// What of it is attacked.
    #[must_use]
    pub fn target(&self) -> Target {
        let (backend, state) = (Arc::clone(&self.backend), self.state.path().join("state"));
        let images = Arc::new(NativeImages { backend: Arc::clone(&backend), state });
        let (networks, program) = (Arc::clone(&self.backend) as _, self.program.clone());
        Target { backend, images, networks, program }
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

#[async_trait]
impl Images for NativeImages {
    fn foreign_reader(&self) -> Option<&'static str> {
        None
    }

    async fn import(&self, archive: File) -> Result<(), String> {
        match self.backend.import(TEMPLATE, Archive::new(archive), &|_| ()).await {
            Ok(_) => Ok(()),
            Err(Error::Invalid(reason)) => Err(reason),
            Err(error) => Err(format!("failed: {error}")),
        }
    }

    async fn forget(&self) -> Result<(), String> {
        self.backend.remove_template(TEMPLATE).await.map_err(|error| error.to_string())
    }

    async fn left(&self) -> Result<Vec<String>, String> {
        let mut left = Vec::new();
        for part in ["templates", "layers", "incoming"] {
            let entries = std::fs::read_dir(self.state.join(part)).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| format!("{part}/{}", entry.file_name().display())));
        }
        Ok(left)
    }
}
