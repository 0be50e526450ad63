//! Suites in another language that look at a program which was built: what can go wrong with one
//! before it looks, and how it is begun.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::child::{self, Child};
use crate::workspace::Workspace;

/// Why nothing was looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Programs are not there.
    #[error(
        "missing: {}; on Debian and Ubuntu, as root: apt-get install --yes --no-install-recommends {}",
        .0.iter().map(|(program, _)| *program).collect::<Vec<_>>().join(", "),
        .0.iter().map(|(_, package)| *package).collect::<Vec<_>>().join(" "),
    )]
    Missing(Vec<(&'static str, &'static str)>),
    /// There is no program to look at.
    #[error("there is no {}: `cargo build` makes it, or name another one with --program", .0.display())]
    Program(PathBuf),
    /// Packages could not be installed.
    #[error("`{0}` fails")]
    Install(String),
    /// A program could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// A file or directory of it could not be made.
    #[error("cannot read or write {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Our own output is gone.
    #[error("cannot write the progress")]
    Write(#[from] std::io::Error),
}

/// The program that is looked at: the one that was named, else the one that `cargo build` makes.
pub(crate) fn program(named: Option<&Path>, workspace: &Workspace) -> Result<PathBuf, Error> {
    let program = named.map_or_else(|| workspace.target.join("debug/outrigger"), Path::to_owned);
    fs::canonicalize(&program).map_err(|_| Error::Program(program))
}

/// Installs what a list of packages names, unless that very list was installed last: a copy of it
/// is kept at `installed`.
pub(crate) fn install(
    list: &Path,
    installed: &Path,
    children: &[Child],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let named = fs::read(list).map_err(at(list))?;
    if fs::read(installed).is_ok_and(|there| there == named) {
        return Ok(());
    }
    for child in children {
        writeln!(out, "== {}", child.typed())?;
        out.flush()?;
        if !child.run()?.success() {
            return Err(Error::Install(child.typed()));
        }
    }
    fs::write(installed, named).map_err(at(installed))
}

/// A suite that ends after so many seconds. In the foreground it hears the Ctrl-C that is meant
/// for it.
pub(crate) fn begin(
    seconds: u64,
    interpreter: &str,
    main: &Path,
    given: impl IntoIterator<Item = (&'static str, String)>,
) -> Child {
    let seconds = seconds.to_string();
    let words = ["timeout", "--foreground", "--kill-after=30", &seconds, interpreter];
    let words = words.into_iter().map(str::to_owned).chain([text(main)]);
    Child::new(words.chain(given.into_iter().map(|(name, value)| format!("--{name}={value}"))))
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path, source }
}
