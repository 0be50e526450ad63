//! Into a sandbox.

use outrigger_sandbox::{
    EntryKind, ExecId, FileOp, Precondition, Sandbox, WriteMode, limits as door,
};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinSet;

use super::super::{failed, fresh};
use super::{Count, found};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// Something to be made in the sandbox.
#[derive(Debug)]
enum Item {
    Dir(String),
    Link { path: String, target: String },
    File { path: String, from: PathBuf, executable: bool },
}

pub(super) async fn copy(
    sandbox: Arc<dyn Sandbox>,
    from: &Path,
    to: &str,
    count: Arc<Count>,
) -> Outcome {
    let kind = found(&*sandbox, to).await?;
    let into = to.ends_with('/') || kind == Some(EntryKind::Directory);
    let root = match from.file_name().filter(|_| into) {
        Some(name) => format!("{}/{}", to.trim_end_matches('/'), name.to_string_lossy()),
        None => to.trim_end_matches('/').to_owned(),
    };
    let source = from.to_owned();
    let listed = tokio::task::spawn_blocking(move || list(&source, &root)).await;
    let (items, bytes) = listed.map_err(|error| Failure::from_error(Kind::Usage, &error))??;
    count.total(bytes);
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
                let (sandbox, count) = (Arc::clone(&sandbox), Arc::clone(&count));
                sending
                    .spawn(async move { send(&*sandbox, &path, &from, executable, &count).await });
            }
        }
    }
    while let Some(sent) = sending.join_next().await {
        sent.map_err(|error| Failure::from_error(Kind::Usage, &error))??;
    }
    Ok(())
}

fn id() -> ExecId {
    ExecId::new(fresh("cp")).expect("letters, a dash and digits are plain")
}

/// Everything at a path, directories before what is in them, links not followed,
/// and the bytes of all files.
fn list(from: &Path, to: &str) -> Outcome<(Vec<Item>, u64)> {
    let failed = |path: &Path, error: std::io::Error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => Kind::NotFound,
            _ => Kind::Usage,
        };
        Failure::new(kind, format!("{}: {error}", path.display()))
    };
    let (mut items, mut bytes) = (Vec::new(), 0);
    let mut waiting = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, path)) = waiting.pop() {
        let stat = fs::symlink_metadata(&from).map_err(|error| failed(&from, error))?;
        if stat.is_dir() {
            items.push(Item::Dir(path.clone()));
            for entry in fs::read_dir(&from).map_err(|error| failed(&from, error))? {
                let entry = entry.map_err(|error| failed(&from, error))?;
                let name = entry.file_name();
                let name = name.to_str().ok_or_else(|| {
                    Failure::new(
                        Kind::Usage,
                        format!("{}: its name is no text", entry.path().display()),
                    )
                })?;
                waiting.push((entry.path(), format!("{path}/{name}")));
            }
        } else if stat.is_symlink() {
            let target = fs::read_link(&from).map_err(|error| failed(&from, error))?;
            items.push(Item::Link { path, target: target.to_string_lossy().into_owned() });
        } else if stat.is_file() {
            bytes += stat.len();
            let executable = stat.permissions().mode() & 0o111 != 0;
            items.push(Item::File { path, from, executable });
        }
        if items.len() > limits::COPIED_FILES_MAX {
            let max = limits::COPIED_FILES_MAX;
            return Err(Failure::new(Kind::Usage, format!("more than {max} files at once"))
                .hint("Pack them with tar, copy the archive, and unpack it in the sandbox."));
        }
    }
    Ok((items, bytes))
}

async fn send(
    sandbox: &dyn Sandbox,
    path: &str,
    from: &Path,
    executable: bool,
    count: &Count,
) -> Outcome {
    let unreadable =
        |error: std::io::Error| Failure::new(Kind::Usage, format!("{}: {error}", from.display()));
    let mut file = File::open(from).map_err(unreadable)?;
    let mut mode = WriteMode::Replace;
    loop {
        let mut contents = Vec::new();
        let piece = (&mut file).take(door::FILE_CHUNK_BYTES_MAX).read_to_end(&mut contents);
        let length = piece.map_err(unreadable)?;
        if length == 0 && mode == WriteMode::Append {
            break;
        }
        let (path, precondition) = (path.to_owned(), Precondition::None);
        let executable = Some(executable);
        let op = FileOp::Write { id: id(), path, contents, mode, executable, precondition };
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
