//! Packs a directory's state into a tar archive: in a git repository the tracked,
//! changed and untracked-not-ignored files, elsewhere everything that is not ignored.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};

/// An archive of a directory.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The archive, at its beginning.
    pub(crate) archive: File,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// What was left out, and why.
    pub(crate) left_out: Vec<String>,
}

/// Packs. `scratch` is where the archive is built; it has no name there when this returns.
pub(crate) fn pack(dir: &Path, scratch: &Path, config: &Config) -> Outcome<Packed> {
    let readable = |error: io::Error| {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => Kind::NotFound,
            _ => Kind::Usage,
        };
        Failure::new(kind, format!("{}: {error}", dir.display()))
            .hint("Name a directory that you may read with --dir.")
    };
    fs::read_dir(dir).map_err(readable)?;
    let paths = if is_tracked(dir) { listed(dir, &STATE)? } else { walked(dir, config)? };
    measure(dir, config, &paths)?;
    let archive = nameless(scratch).map_err(|error| storage(scratch, &error))?;
    let mut packing = Packing {
        dir,
        builder: tar::Builder::new(archive),
        size: Size::new(dir, config),
        left_out: Vec::new(),
    };
    for path in paths {
        packing.add(&path)?;
    }
    let Packing { builder, size: Size { files, bytes, .. }, left_out, .. } = packing;
    let finished = builder.into_inner().and_then(|mut archive| {
        archive.rewind()?;
        Ok(archive)
    });
    let archive = finished.map_err(|error| storage(scratch, &error))?;
    Ok(Packed { archive, files, bytes, left_out })
}

fn storage(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
        .hint("Free some disk space, or keep sessions elsewhere with --data-dir.")
}

/// A file that is gone with its last handle, also when we are killed.
fn nameless(scratch: &Path) -> io::Result<File> {
    fs::create_dir_all(scratch)?;
    let flags =
        rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    Ok(File::from(rustix::fs::open(scratch, flags, mode)?))
}

/// What git knows of, and what it does not ignore.
const STATE: [&str; 4] = ["--cached", "--others", "--exclude-standard", "--deduplicate"];
/// What git is told of our environment: where programs and its settings are. No key
/// that it could pass on, and no `GIT_DIR` of somebody else's repository.
const GIT_ENVIRONMENT: [&str; 6] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];

/// Whether git says what belongs to a directory: a repository, or a part of one.
/// One that merely lies somewhere beneath a repository, for example in a home
/// directory that is one, is none.
fn is_tracked(dir: &Path) -> bool {
    let holds = |dir: &Path| dir.join(".git").exists();
    let known = || listed(dir, &["--cached"]).is_ok_and(|known| !known.is_empty());
    holds(dir) || dir.ancestors().skip(1).any(holds) && known()
}

/// Asks git. Hooks and monitors of the repository are programs that somebody else
/// wrote: none of them is run.
fn listed(dir: &Path, what: &[&str]) -> Outcome<Vec<PathBuf>> {
    let known = |name: &&'static str| std::env::var_os(name).map(|value| (*name, value));
    let output = Command::new("git")
        .env_clear()
        .envs(GIT_ENVIRONMENT.iter().filter_map(known))
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .arg("-C")
        .arg(dir)
        .args(["ls-files", "-z"])
        .args(what)
        .output();
    let output = output.map_err(|error| {
        Failure::new(Kind::Usage, format!("git can't be run: {error}"))
            .hint("Install git: this directory is a git repository, and git knows which files belong to it.")
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::new(Kind::Usage, format!("git can't list {}: {said}", dir.display())));
    }
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let mut paths: Vec<PathBuf> =
        names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
    paths.sort();
    Ok(paths)
}

/// What is not ignored. Who names a directory that is itself ignored, by a rule
/// from above, means it all the same.
fn walked(dir: &Path, config: &Config) -> Outcome<Vec<PathBuf>> {
    let paths = walked_under(dir, config, Above::Obeyed)?;
    if paths.is_empty() { walked_under(dir, config, Above::Ignored) } else { Ok(paths) }
}

/// What becomes of ignore files of the directories above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Above {
    Obeyed,
    Ignored,
}

/// Looks at no more than may be copied: a home directory has millions of files.
fn walked_under(dir: &Path, config: &Config, above: Above) -> Outcome<Vec<PathBuf>> {
    let walk = ignore::WalkBuilder::new(dir)
        .parents(above == Above::Obeyed)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let (mut paths, mut size) = (Vec::new(), Size::new(dir, config));
    for entry in walk {
        let entry = entry.map_err(|error| {
            Failure::new(Kind::Usage, error.to_string())
                .hint("Make it readable, or list it in .gitignore to leave it out.")
        })?;
        let is_dir = entry.file_type().is_none_or(|kind| kind.is_dir());
        if let (false, Ok(path)) = (is_dir, entry.path().strip_prefix(dir)) {
            size.count(0)?;
            paths.push(path.to_owned());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Checks the limits before anything is copied, which takes its time.
fn measure(dir: &Path, config: &Config, paths: &[PathBuf]) -> Outcome {
    let mut size = Size::new(dir, config);
    let found = paths.iter().filter_map(|path| fs::symlink_metadata(dir.join(path)).ok());
    found.filter(fs::Metadata::is_file).try_for_each(|meta| size.count(meta.len()))
}

/// How much it is so far.
struct Size<'a> {
    dir: &'a Path,
    config: &'a Config,
    files: u64,
    bytes: u64,
}

struct Packing<'a> {
    dir: &'a Path,
    builder: tar::Builder<File>,
    size: Size<'a>,
    left_out: Vec<String>,
}

impl Packing<'_> {
    fn add(&mut self, path: &Path) -> Outcome {
        let full = self.dir.join(path);
        let Some(name) = path.to_str() else {
            self.left_out.push(format!("{}: the name is no UTF-8", path.display()));
            return Ok(());
        };
        let unreadable = |error: io::Error| {
            Failure::new(Kind::Usage, format!("{}: {error}", full.display()))
                .hint("Make it readable, or list it in .gitignore to leave it out.")
        };
        let meta = match fs::symlink_metadata(&full) {
            Ok(meta) => meta,
            // Tracked, and deleted in the working tree: that is its state.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unreadable(error)),
        };
        let mut header = tar::Header::new_gnu();
        header.set_mtime(0);
        if meta.is_symlink() {
            let target = fs::read_link(&full).map_err(unreadable)?;
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            header.set_mode(0o777);
            self.size.count(0)?;
            let added = self.builder.append_link(&mut header, name, target);
            return added.map_err(|error| storage(&full, &error));
        }
        if !meta.is_file() {
            self.left_out.push(format!("{name}: {}", what(&meta)));
            return Ok(());
        }
        let file = File::open(&full).map_err(unreadable)?;
        self.size.count(meta.len())?;
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(meta.len());
        header.set_mode(if meta.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 });
        // A file that grows meanwhile is cut.
        let mut contents = file.take(meta.len());
        let added = self.builder.append_data(&mut header, name, &mut contents);
        added.map_err(|error| storage(&full, &error))?;
        if contents.limit() > 0 {
            let text = format!("{} became shorter while it was copied", full.display());
            return Err(
                Failure::new(Kind::Conflict, text).hint("Try again when nothing writes it.")
            );
        }
        Ok(())
    }
}

impl<'a> Size<'a> {
    fn new(dir: &'a Path, config: &'a Config) -> Self {
        Self { dir, config, files: 0, bytes: 0 }
    }

    fn count(&mut self, bytes: u64) -> Outcome {
        self.files += 1;
        self.bytes += bytes;
        let too_large = |what: String, key: &str| {
            Failure::new(Kind::Usage, format!("{} is too large to copy: {what}", self.dir.display()))
                .hint(format!(
                    "Leave large files out with .gitignore, name a smaller directory with --dir, or raise workspace.{key} in the configuration."
                ))
        };
        if self.bytes > self.config.workspace_bytes_max {
            let limit = self.config.workspace_bytes_max >> 20;
            return Err(too_large(format!("more than {limit} MiB"), "mib_max"));
        }
        if self.files > self.config.workspace_files_max {
            let limit = self.config.workspace_files_max;
            return Err(too_large(format!("more than {limit} files"), "files_max"));
        }
        Ok(())
    }
}

fn what(meta: &fs::Metadata) -> &'static str {
    if meta.is_dir() {
        return "a submodule or nested repository is not copied";
    }
    "a FIFO, device or socket is not copied"
}
