//! What the harness can still do, from before it reads its first word of a model or a sandbox.
//!
//! Owns its Landlock domain (landlock(7)) and when it is entered. It writes where it keeps what
//! it keeps and where it works, reads everything but what holds keys, starts nothing and has no
//! network. All of it stands on the thread that enters, and on those that it starts.

mod calls;
mod places;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope, make_bitflags,
};
use outrigger_repository::WorkTree;
use rustix::fs::{FileType, Mode, OFlags};
use std::io;
use std::path::{Path, PathBuf};

use crate::compose;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::supervisor::Supervisor;
use crate::waiting::PendingApproval;
use crate::{session, shell, workspace};

/// Of files that may only be read.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile});

/// Of where it keeps things, and where it works.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | RemoveFile | RemoveDir | MakeReg | MakeDir
        | MakeSym | Refer
});

/// Of devices, terminals above all.
const DEVICES: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev});

/// What a command works in.
#[derive(Debug)]
pub(crate) enum WorkPlace {
    /// A directory.
    Directory(PathBuf),
    /// The directory that a session began in.
    Session(String),
    /// The directory of a session in which something waits, by the name of what waits.
    Approval(String),
    /// Nothing but what the harness keeps.
    Nowhere,
}

/// Confines this thread for good. Gives the places with who starts programs from now on.
pub(crate) fn enter(paths: Paths, place: &WorkPlace) -> Outcome<Paths> {
    paths.prepare()?;
    // A configuration that is written while this runs can be read if its directory is there.
    if let [_, own] = paths.config_places() {
        drop(own.parent().map(std::fs::create_dir_all));
    }
    // What is not there is told by who needs it.
    let works_in = place.directories(&paths).unwrap_or_default();
    let supervisor = Supervisor::start(paths.data(), paths.named_config(), &works_in)?;
    let home = shell::of_person().home;
    let entered = domain(&home, &paths, &works_in).and_then(|()| calls::filter());
    entered.map_err(|error| {
        Failure::new(Kind::Storage, format!("this process can't be confined: {error}"))
    })?;
    Ok(paths.supervised(supervisor))
}

impl WorkPlace {
    /// The directories that are written into, where the person wants that.
    fn directories(&self, paths: &Paths) -> Outcome<Vec<PathBuf>> {
        let tree = match self {
            Self::Nowhere => return Ok(Vec::new()),
            Self::Directory(dir) => {
                let dir = std::fs::canonicalize(dir);
                workspace::tree(&dir.map_err(|error| Failure::from_error(Kind::NotFound, &error))?)?
            }
            Self::Session(_) | Self::Approval(_) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime =
                    runtime.map_err(|error| Failure::from_error(Kind::Storage, &error))?;
                let Some(source) = runtime.block_on(self.source(paths))? else {
                    return Ok(Vec::new());
                };
                WorkTree::alone(Path::new(&source))
            }
        };
        Ok(tree.places())
    }

    /// The directory of a session.
    async fn source(&self, paths: &Paths) -> Outcome<Option<String>> {
        let store = compose::store(paths).await?;
        let journal = &*store.journal;
        let named = match self {
            Self::Session(name) => session::find(journal, name).await?.session,
            Self::Approval(id) => PendingApproval::find(journal, id).await?.session,
            Self::Directory(_) | Self::Nowhere => return Ok(None),
        };
        let root = session::root(journal, &named).await?;
        let spec = session::opening(&store, &root).await?;
        Ok(spec.and_then(|spec| Some(spec.workspace.as_ref()?.source.clone())))
    }
}

fn domain(home: &Path, paths: &Paths, works_in: &[PathBuf]) -> io::Result<()> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|ruleset| ruleset.scope(Scope::Signal))
        .and_then(|ruleset| ruleset.scope(Scope::AbstractUnixSocket))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let kept = places::unreadable(home, paths);
    // Names tell less than contents, and a directory is looked through to find where one is.
    ruleset = allow(ruleset, Path::new("/"), make_bitflags!(AccessFs::{ReadDir}))?;
    ruleset = allow(ruleset, Path::new("/dev"), DEVICES)?;
    for place in places::around(Path::new("/"), &kept) {
        ruleset = allow(ruleset, &place, READ)?;
    }
    ruleset = allow(ruleset, Path::new("/proc/self"), READ)?;
    ruleset = allow(ruleset, paths.harness(), WRITE)?;
    for file in paths.configs() {
        ruleset = allow(ruleset, file, READ)?;
    }
    for dir in works_in {
        // Who works in the middle of what is kept means it.
        let beneath: Vec<_> =
            kept.iter().filter(|it| *it != dir && it.starts_with(dir)).cloned().collect();
        for place in places::around(dir, &beneath) {
            ruleset = allow(ruleset, &place, WRITE)?;
        }
    }
    rustix::thread::set_no_new_privs(true)?;
    ruleset.restrict_self().map(drop).map_err(io::Error::other)
}

/// Allows something of a file, or of everything beneath a directory. What can't be opened is not
/// there, or nobody's here.
fn allow(
    ruleset: RulesetCreated,
    place: &Path,
    access: BitFlags<AccessFs>,
) -> io::Result<RulesetCreated> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::open(place, flags, Mode::empty()) else { return Ok(ruleset) };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
    let access = if kind.is_dir() { access } else { access & AccessFs::from_file(ABI::V5) };
    ruleset.add_rule(PathBeneath::new(fd, access)).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
