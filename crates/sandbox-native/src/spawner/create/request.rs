//! What somebody asks a sandbox to be like.
//!
//! Owns what can be refused of it without looking at anything.

use std::path::{Component, Path, PathBuf};

use outrigger_sandbox::limits::LIFETIME_MS_MAX;
use outrigger_sandbox::{CreateSpec, DiskOrigin, Error, SnapshotId};

/// What somebody asks a sandbox to be like.
#[derive(Debug, Clone)]
pub(crate) struct CreateRequest {
    pub(crate) spec: CreateSpec,
    /// Paths of the host, seen read-only.
    pub(crate) read_only: Vec<PathBuf>,
}

impl CreateRequest {
    /// The origin is checked when a disk is made, everything else before anything is.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { spec, read_only } = self;
        if spec.memory_bytes_max < (1 << 20) || spec.pids_max == 0 || spec.cpu_millis_max == 0 {
            return Err(Error::Invalid(
                "a limit of the sandbox is too small to run anything".to_owned(),
            ));
        }
        if spec.disk_bytes_max == 0 || spec.disk_inodes_max == 0 {
            return Err(Error::Invalid("a sandbox without any disk can't be made".to_owned()));
        }
        let times = [spec.lifetime.idle_ms_max, spec.lifetime.age_ms_max];
        let lasts = 1..=LIFETIME_MS_MAX;
        if let Some(time) = times.into_iter().flatten().find(|time| !lasts.contains(time)) {
            return Err(Error::Invalid(format!(
                "a sandbox is not kept for {time} ms; 1 to {LIFETIME_MS_MAX} can be asked for"
            )));
        }
        if let DiskOrigin::Template(name) = &spec.origin
            && SnapshotId::new(name.clone()).is_err()
        {
            return Err(Error::Invalid(format!("`{name}` is no name for a template")));
        }
        if let Some(path) = read_only.iter().find(|path| !is_plain(path)) {
            return Err(Error::Invalid(format!(
                "`{}` is not a plain absolute path",
                path.display()
            )));
        }
        spec.check_served()?;
        let both = |path: &&String| {
            read_only
                .iter()
                .any(|shown| shown.starts_with(path) || Path::new(path).starts_with(shown))
        };
        match spec.served.iter().find(both) {
            Some(path) => Err(Error::Invalid(format!(
                "`{path}` can't be a served folder: something of the host is shown there"
            ))),
            None => Ok(()),
        }
    }
}

/// Whether a path is absolute, in its shortest form, and not the root itself.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path.parent().is_some()
        && path.components().skip(1).all(|part| matches!(part, Component::Normal(_)))
}
