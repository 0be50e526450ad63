//! `outrigger sandbox cp` at a server: files go as one archive, either way.
//!
//! What comes is hostile: it is read as the archive that it says it is, and made here as what comes
//! out of a sandbox of this machine.

use futures_util::TryStreamExt;
use outrigger_api::{FileList, ProblemCode, SandboxInfo};
use outrigger_client::{Error, with_query};
use outrigger_repository::nameless;
use outrigger_sandbox::EntryKind;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use tar::{Archive, Builder, EntryType, Header};

use super::connection::Remote;
use super::sandbox_names::{address, sandbox};
use crate::command::sandbox::copy::FileHost;
use crate::command::sandbox::copy::count::Count;
use crate::command::sandbox::copy::down::{nothing_at, print};
use crate::command::sandbox::copy::target::{CopiedFile, CopyTarget};
use crate::command::sandbox::copy::up::{Item, UploadPlan, names_a_file};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits::COPY_PIECE_BYTES;

impl FileHost for Remote {
    async fn send(
        &self,
        from: &Path,
        (name, to): (&str, &str),
        count: &Arc<Count>,
    ) -> Outcome<Vec<String>> {
        let info = sandbox(self, name).await?;
        let mut plan = UploadPlan::list(from, to, kind(self, &info, to).await?).await?;
        let (above, name) = plan.root.rsplit_once('/').unwrap_or((".", &plan.root));
        let above = if above.is_empty() { "/" } else { above };
        let archive = pack(&plan, name, scratch(self)?)?;
        let path = with_query(&format!("{}/archive", address(&info)), &[("path", above)]);
        put(self, &path, archive, count).await?;
        plan.items.iter().filter(|item| !matches!(item, Item::Dir(_))).for_each(|_| count.file());
        count.settle(plan.bytes);
        Ok(std::mem::take(&mut plan.left_out))
    }

    async fn send_input(&self, (name, to): (&str, &str), count: &Arc<Count>) -> Outcome {
        let info = sandbox(self, name).await?;
        names_a_file(to, kind(self, &info, to).await?)?;
        let mut file = scratch(self)?;
        io::copy(&mut io::stdin().lock(), &mut file)
            .map_err(|error| Failure::new(Kind::Usage, format!("standard input: {error}")))?;
        let path = with_query(&format!("{}/files/content", address(&info)), &[("path", to)]);
        put(self, &path, file, count).await?;
        count.file();
        Ok(())
    }

    async fn fetch(
        &self,
        (name, from): (&str, &str),
        to: &Path,
        count: &Arc<Count>,
    ) -> Outcome<Vec<String>> {
        let info = sandbox(self, name).await?;
        let kind = kind(self, &info, from).await?.ok_or_else(|| nothing_at(from))?;
        let target = CopyTarget::new(from, to)?;
        let mut archive = scratch(self)?;
        let path = with_query(&format!("{}/archive", address(&info)), &[("path", from)]);
        let store = |bytes: &[u8]| archive.write_all(bytes).map_err(|error| kept(&error));
        each_piece(self, &path, count, store).await?;
        archive.rewind().map_err(|error| kept(&error))?;
        count.settle(0);
        unpack(archive, (kind, from), &target, count)
    }

    async fn fetch_output(&self, (name, from): (&str, &str), count: &Arc<Count>) -> Outcome {
        let info = sandbox(self, name).await?;
        let path = with_query(&format!("{}/files/content", address(&info)), &[("path", from)]);
        each_piece(self, &path, count, print).await?;
        count.file();
        Ok(())
    }
}

/// What is at a path in a sandbox, if anything is: a directory, or something that is none.
async fn kind(remote: &Remote, info: &SandboxInfo, path: &str) -> Outcome<Option<EntryKind>> {
    let asked = with_query(&format!("{}/files", address(info)), &[("path", path)]);
    match remote.client.get::<FileList>(&asked).await {
        Ok(_) => Ok(Some(EntryKind::Directory)),
        Err(Error::Problem(problem)) if problem.code == ProblemCode::FileNotFound => Ok(None),
        Err(Error::Problem(problem)) if problem.code == ProblemCode::NotADirectory => {
            Ok(Some(EntryKind::File))
        }
        Err(error) => Err(error.into()),
    }
}

/// A file for what is on its way.
fn scratch(remote: &Remote) -> Outcome<File> {
    remote.paths.prepare()?;
    nameless(&remote.paths.scratch()).map_err(|error| kept(&error))
}

/// Sends a file from its beginning.
async fn put(remote: &Remote, path: &str, mut file: File, count: &Arc<Count>) -> Outcome {
    file.rewind().map_err(|error| kept(&error))?;
    count.total(file.metadata().map_err(|error| kept(&error))?.len());
    let sent = Arc::clone(count);
    Ok(remote.client.put_file(path, file, move |bytes| sent.piece(bytes)).await?)
}

/// Gives the pieces of an answer to somebody, in order.
async fn each_piece(
    remote: &Remote,
    path: &str,
    count: &Count,
    mut put: impl FnMut(&[u8]) -> Outcome,
) -> Outcome {
    let mut pieces = pin!(remote.client.get_pieces(path).await?);
    while let Some(piece) = pieces.try_next().await? {
        put(&piece)?;
        count.piece(piece.len());
    }
    Ok(())
}

/// What there is to send, all of it beneath a name.
fn pack(plan: &UploadPlan, name: &str, archive: File) -> Outcome<File> {
    let mut builder = Builder::new(archive);
    let named = |path: &str| format!("{name}{}", &path[plan.root.len()..]);
    for item in &plan.items {
        let mut header = Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o755);
        match item {
            Item::Dir(path) => {
                header.set_entry_type(EntryType::Directory);
                builder.append_data(&mut header, format!("{}/", named(path)), io::empty())
            }
            Item::Link { path, target } => {
                header.set_entry_type(EntryType::Symlink);
                builder.append_link(&mut header, named(path), target)
            }
            Item::File { path, from, executable } => {
                let file = plan.open(from)?;
                let bytes = file.metadata().map_err(|error| kept(&error))?.len();
                header.set_size(bytes);
                header.set_mode(if *executable { 0o755 } else { 0o644 });
                let mut whole = file.take(bytes);
                let packed = builder.append_data(&mut header, named(path), &mut whole);
                if packed.is_ok() && whole.limit() > 0 {
                    let text = format!("{} became shorter while it was read", from.display());
                    return Err(Failure::new(Kind::Conflict, text));
                }
                packed
            }
        }
        .map_err(|error| kept(&error))?;
    }
    builder.into_inner().map_err(|error| kept(&error))
}

/// Makes here what came, and gives what was left out.
fn unpack(
    archive: File,
    (kind, from): (EntryKind, &str),
    target: &CopyTarget,
    count: &Count,
) -> Outcome<Vec<String>> {
    let mut archive = Archive::new(archive);
    let mut entries = archive.entries().map_err(|error| strange(&error))?;
    if kind != EntryKind::Directory {
        let first = entries.next().ok_or_else(|| strange(&io::ErrorKind::UnexpectedEof.into()))?;
        let mut first = first.map_err(|error| strange(&error))?;
        let executable = is_executable(first.header())?;
        fill(target.file(executable)?, &mut first, count)?;
        return Ok(Vec::new());
    }
    let tree = target.directory()?;
    let mut links = Vec::new();
    for entry in entries {
        let mut entry = entry.map_err(|error| strange(&error))?;
        let path = PathBuf::from(String::from_utf8_lossy(&entry.path_bytes()).into_owned());
        if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            tree.folder(above)?;
        }
        match entry.header().entry_type() {
            EntryType::Directory => tree.folder(&path)?,
            EntryType::Symlink => {
                let said = entry.link_name_bytes().unwrap_or_default();
                let inside = format!("{}/{}", from.trim_end_matches('/'), path.display());
                links.push((path, String::from_utf8_lossy(&said).into_owned(), inside));
            }
            _ => {
                let executable = is_executable(entry.header())?;
                fill(tree.file(&path, executable)?, &mut entry, count)?;
            }
        }
    }
    tree.link(links, count)
}

fn is_executable(header: &Header) -> Outcome<bool> {
    Ok(header.mode().map_err(|error| strange(&error))? & 0o111 != 0)
}

fn fill(mut file: CopiedFile, from: &mut impl Read, count: &Count) -> Outcome {
    let mut piece = vec![0; COPY_PIECE_BYTES];
    loop {
        let read = from.read(&mut piece).map_err(|error| strange(&error))?;
        if read == 0 {
            break;
        }
        file.write(&piece[..read])?;
        count.piece(read);
    }
    file.put()?;
    count.file();
    Ok(())
}

/// What is on its way can't be kept here.
fn kept(error: &io::Error) -> Failure {
    Failure::new(Kind::Storage, format!("what is copied can't be kept meanwhile: {error}"))
}

fn strange(error: &io::Error) -> Failure {
    Failure::new(Kind::ServerFailed, format!("the server's archive can't be read: {error}"))
}
