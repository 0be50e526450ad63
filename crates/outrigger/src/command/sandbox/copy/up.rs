//! Into a sandbox.

use outrigger_beneath::{Dir, words};
use outrigger_sandbox::{
    EntryKind, ExecId, FileOp, Precondition, Sandbox, WriteMode, limits as door,
};
use rustix::fs::FileType;
use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinSet;

use super::count::Count;
use super::stat::stat;
use crate::command::sandbox::context::fresh;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::sandbox::failed;

/// Something to be made in the sandbox.
#[derive(Debug)]
pub(crate) enum Item {
    Dir(String),
    Link { path: String, target: String },
    File { path: String, from: PathBuf, executable: bool },
}

/// What there is to copy.
pub(crate) struct UploadPlan {
    /// What it is to be in the sandbox.
    pub(crate) root: String,
    /// Beneath this are the files.
    dir: Dir,
    /// Where that is.
    place: PathBuf,
    pub(crate) items: Vec<Item>,
    pub(crate) bytes: u64,
    pub(crate) left_out: Vec<String>,
}

impl UploadPlan {
    /// Everything at a path, for a path in a sandbox at which is what is said.
    pub(crate) async fn list(from: &Path, to: &str, kind: Option<EntryKind>) -> Outcome<Self> {
        let into = to.ends_with('/') || kind == Some(EntryKind::Directory);
        let root = match from.file_name().filter(|_| into) {
            Some(name) => format!("{}/{}", to.trim_end_matches('/'), name.to_string_lossy()),
            None => to.trim_end_matches('/').to_owned(),
        };
        let source = from.to_owned();
        let listed = tokio::task::spawn_blocking(move || list(&source, root)).await;
        listed.map_err(|error| Failure::from_error(Kind::Usage, &error))?
    }

    /// One of its files.
    pub(crate) fn open(&self, from: &Path) -> Outcome<File> {
        self.dir.file(from).map_err(|error| unreadable(&self.place, &error))
    }
}

/// Copies, and gives what was left out.
pub(super) async fn copy(
    sandbox: Arc<dyn Sandbox>,
    from: &Path,
    to: &str,
    count: &Arc<Count>,
) -> Outcome<Vec<String>> {
    let kind = stat(&*sandbox, to).await?.map(|entry| entry.kind);
    let mut plan = UploadPlan::list(from, to, kind).await?;
    let (items, left_out) = (mem::take(&mut plan.items), mem::take(&mut plan.left_out));
    let plan = Arc::new(plan);
    count.total(plan.bytes);
    let mut sending = JoinSet::new();
    for item in items {
        if sending.len() >= limits::COPIES_AT_ONCE_MAX
            && let Some(sent) = sending.join_next().await
        {
            sent.map_err(|error| Failure::from_error(Kind::Usage, &error))??;
        }
        match item {
            // In order: what follows may stand in it.
            Item::Dir(path) => {
                let op = FileOp::MakeDir { id: id(), path };
                sandbox.files(op).await.map_err(|error| failed(&error))?;
            }
            Item::Link { path, target } => {
                let op = FileOp::Link { id: id(), path, target };
                sandbox.files(op).await.map_err(|error| failed(&error))?;
                count.file();
            }
            Item::File { path, from, executable } => {
                let (sandbox, count) = (Arc::clone(&sandbox), Arc::clone(count));
                let plan = Arc::clone(&plan);
                sending.spawn(async move {
                    let pieces = Pieces::File(plan.open(&from)?, plan.place.join(from));
                    send(&*sandbox, &path, pieces, Some(executable), &count).await
                });
            }
        }
    }
    while let Some(sent) = sending.join_next().await {
        sent.map_err(|error| Failure::from_error(Kind::Usage, &error))??;
    }
    Ok(left_out)
}

/// Writes standard input to a file.
pub(super) async fn copy_input(sandbox: &dyn Sandbox, to: &str, count: &Count) -> Outcome {
    names_a_file(to, stat(sandbox, to).await?.map(|entry| entry.kind))?;
    send(sandbox, to, Pieces::Input, None, count).await
}

/// Whether standard input can be at a path, at which is what is said.
pub(crate) fn names_a_file(to: &str, kind: Option<EntryKind>) -> Outcome {
    if to.ends_with('/') || kind == Some(EntryKind::Directory) {
        let what = if kind.is_some() { format!("{to} is a directory") } else { to.to_owned() };
        let text = format!("{what}: name the file that standard input is to be");
        return Err(Failure::new(Kind::Usage, text));
    }
    Ok(())
}

fn id() -> ExecId {
    ExecId::new(fresh("cp")).expect("letters, a dash and digits are plain")
}

/// What the host said of something beneath a folder.
fn unreadable(place: &Path, error: &outrigger_beneath::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => Kind::NotFound,
        _ => Kind::Usage,
    };
    let mut failure = Failure::from_error(kind, error);
    failure.message = match error {
        outrigger_beneath::Error::Io { path, source } => {
            format!("{}: {source}", place.join(path).display())
        }
        _ => failure.message,
    };
    failure
}

/// Everything at a path, directories before what is in them, links not followed,
/// and the bytes of all files.
fn list(from: &Path, root: String) -> Outcome<UploadPlan> {
    let nowhere = Path::new("");
    let around = Dir::around(from).map_err(|error| unreadable(nowhere, &error))?;
    let (dir, first, place) = match around {
        Some((dir, name)) => (dir, name, from.parent().unwrap_or(nowhere).to_owned()),
        // Written so that it is a directory.
        None => {
            let dir = Dir::open(from).map_err(|error| unreadable(nowhere, &error))?;
            (dir, PathBuf::from("."), from.to_owned())
        }
    };
    let mut waiting = vec![(first.clone(), root.clone())];
    let (items, left_out) = (Vec::new(), Vec::new());
    let mut listed = UploadPlan { root, dir, place, items, bytes: 0, left_out };
    while let Some((from, path)) = waiting.pop() {
        let failed = |error| unreadable(&listed.place, &error);
        let (kind, stat) = if from == Path::new(".") {
            (FileType::Directory, None)
        } else {
            let stat = listed.dir.stat(&from).map_err(failed)?.ok_or_else(|| {
                let text = format!("there is nothing at {}", listed.place.join(&from).display());
                Failure::new(Kind::NotFound, text)
            })?;
            (stat.kind, Some(stat))
        };
        match kind {
            FileType::Directory => {
                listed.items.push(Item::Dir(path.clone()));
                let names =
                    listed.dir.dir(&from).and_then(|opened| opened.names()).map_err(failed)?;
                for name in names {
                    let name = name.map_err(failed)?;
                    let below =
                        if stat.is_some() { from.join(&name) } else { PathBuf::from(&name) };
                    let name = name.to_str().ok_or_else(|| {
                        let place = listed.place.join(&below);
                        Failure::new(
                            Kind::Usage,
                            format!("{}: its name is no text", place.display()),
                        )
                    })?;
                    waiting.push((below, format!("{path}/{name}")));
                }
            }
            FileType::Symlink => {
                let target = listed.dir.read_link(&from).map_err(failed)?;
                let target = target.to_string_lossy().into_owned();
                listed.items.push(Item::Link { path, target });
            }
            FileType::RegularFile => {
                listed.bytes += stat.map_or(0, |stat| stat.bytes);
                let executable = stat.is_some_and(|stat| stat.is_executable());
                listed.items.push(Item::File { path, from, executable });
            }
            kind => {
                let place = listed.place.join(&from);
                if from == first {
                    let text = format!("{} is {}", place.display(), words(kind));
                    return Err(Failure::new(Kind::Usage, text).hint("Only files are copied."));
                }
                listed.left_out.push(format!("{}: {}", place.display(), words(kind)));
            }
        }
        if listed.items.len() > limits::COPIED_FILES_MAX {
            let max = limits::COPIED_FILES_MAX;
            return Err(Failure::new(Kind::Usage, format!("more than {max} files at once"))
                .hint("Pack them with tar, copy the archive, and unpack it in the sandbox."));
        }
    }
    Ok(listed)
}

/// Where the bytes of a file come from.
enum Pieces {
    File(File, PathBuf),
    Input,
}

impl Pieces {
    /// The next piece; a shorter one than can be is the last.
    async fn next(&mut self) -> Outcome<Vec<u8>> {
        let read = |from: &mut dyn Read| {
            let mut piece = Vec::new();
            from.take(door::FILE_CHUNK_BYTES_MAX).read_to_end(&mut piece).map(|_| piece)
        };
        let (name, piece) = match self {
            Self::File(file, path) => (path.display().to_string(), read(file)),
            Self::Input => {
                let reading = tokio::task::spawn_blocking(move || read(&mut io::stdin().lock()));
                let piece = reading.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
                ("standard input".to_owned(), piece)
            }
        };
        piece.map_err(|error| Failure::new(Kind::Usage, format!("{name}: {error}")))
    }
}

async fn send(
    sandbox: &dyn Sandbox,
    path: &str,
    mut pieces: Pieces,
    executable: Option<bool>,
    count: &Count,
) -> Outcome {
    let mut mode = WriteMode::Replace;
    loop {
        let contents = pieces.next().await?;
        let length = contents.len();
        if length == 0 && mode == WriteMode::Append {
            break;
        }
        let (path, precondition) = (path.to_owned(), Precondition::None);
        let op = FileOp::Write {
            id: id(),
            path,
            contents,
            mode,
            executable,
            modified_ns: None,
            precondition,
        };
        sandbox.files(op).await.map_err(|error| failed(&error))?;
        count.piece(length);
        mode = WriteMode::Append;
        if (length as u64) < door::FILE_CHUNK_BYTES_MAX {
            break;
        }
    }
    count.file();
    Ok(())
}
