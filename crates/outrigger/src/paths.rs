//! Where things are kept: the XDG base directories, resolved once.

use std::env;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::exit::{Failure, Kind, Outcome};

/// The places of this installation.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    data: PathBuf,
    configs: Vec<PathBuf>,
}

impl Paths {
    /// From the environment, unless the command line says otherwise.
    pub(crate) fn resolve(data: Option<PathBuf>, config: Option<PathBuf>) -> Outcome<Self> {
        let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let xdg = |name: &str, beneath_home: &str| {
            let set = env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
            set.or_else(|| Some(home.as_ref()?.join(beneath_home)))
        };
        let nowhere = || {
            Failure::new(Kind::Usage, "neither HOME nor XDG_DATA_HOME names a directory")
                .hint("Set HOME, or say where sessions are kept with --data-dir.")
        };
        let data = match data {
            Some(data) => std::path::absolute(&data)
                .map_err(|error| Failure::from_error(Kind::Usage, &error))?,
            None => xdg("XDG_DATA_HOME", ".local/share").ok_or_else(nowhere)?.join("outrigger"),
        };
        let configs = match config {
            Some(file) => vec![file],
            None => [Some(PathBuf::from("/etc")), xdg("XDG_CONFIG_HOME", ".config")]
                .into_iter()
                .flatten()
                .map(|dir| dir.join("outrigger/config.toml"))
                .filter(|file| file.exists())
                .collect(),
        };
        Ok(Self { data, configs })
    }

    /// Makes the root of what is kept, for its owner only: journals and patches hold
    /// what a repository holds.
    pub(crate) fn prepare(&self) -> Outcome {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.data);
        made.map_err(|error| {
            Failure::new(Kind::Storage, format!("{}: {error}", self.data.display()))
                .hint("Say where sessions are kept with --data-dir.")
        })
    }

    /// Configuration files, the weaker first.
    pub(crate) fn configs(&self) -> &[PathBuf] {
        &self.configs
    }

    /// The root of everything that is kept.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.data.join("native")
    }

    pub(crate) fn patch(&self, session: &str) -> PathBuf {
        self.data.join("patches").join(format!("{session}.patch"))
    }

    pub(crate) fn lock(&self, session: &str) -> PathBuf {
        self.data.join("locks").join(format!("{session}.lock"))
    }
}
