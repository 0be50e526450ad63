//! What a session changed in its workspace, against what it was filled with.

use futures_util::{StreamExt, TryStreamExt, stream};
use outrigger_repository::{Change, File, is_git};
use outrigger_sandbox::{
    ContentDigest, EntryKind, FileOp, FileReply, ManifestEntry, Sandbox, limits as sandbox_limits,
};
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::io::Read;

use super::Error;
use crate::limits;

/// What is not as it was, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files and links.
    pub changed: Vec<Change>,
    /// FIFOs, devices and sockets, of which nothing is taken out.
    pub special: Vec<String>,
}

/// What a workspace was filled with: what each path held, by digest.
#[derive(Debug, Clone, Default)]
pub struct Base(BTreeMap<String, BaseEntry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct BaseEntry {
    kind: EntryKind,
    executable: bool,
    /// `None` for a file that is too large to be compared.
    digest: Option<ContentDigest>,
}

impl Base {
    /// Reads what an archive holds.
    ///
    /// # Errors
    /// A damaged archive.
    pub fn read(archive: impl Read) -> Result<Self, Error> {
        let mut base = BTreeMap::new();
        each(archive, |path, kind, executable, entry| {
            let mut hasher = sha2::Sha256::new();
            match entry {
                Content::Target(target) => hasher.update(target),
                Content::Bytes(entry) => {
                    let mut buffer = vec![0; 64 << 10];
                    loop {
                        match entry.read(&mut buffer).map_err(Error::Archive)? {
                            0 => break,
                            count => hasher.update(&buffer[..count]),
                        }
                    }
                }
            }
            let digest = Some(ContentDigest(hasher.finalize().into()));
            base.insert(path, BaseEntry { kind, executable, digest });
            Ok(())
        })?;
        Ok(Self(base))
    }
}

pub(super) enum Content<'a> {
    Target(&'a [u8]),
    Bytes(&'a mut dyn Read),
}

/// Visits the files and links of an archive, but for a repository's own data.
pub(super) fn each(
    archive: impl Read,
    mut visit: impl FnMut(String, EntryKind, bool, Content<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(Error::Archive)? {
        let mut entry = entry.map_err(Error::Archive)?;
        let path = entry.path().map_err(Error::Archive)?.to_string_lossy().into_owned();
        if path.split('/').any(is_git) {
            continue;
        }
        let kind = entry.header().entry_type();
        if kind.is_symlink() {
            let target = entry.link_name_bytes().unwrap_or_default().into_owned();
            visit(path, EntryKind::Link, false, Content::Target(&target))?;
        } else if !kind.is_dir() {
            let executable = entry.header().mode().map_err(Error::Archive)? & 0o111 != 0;
            visit(path, EntryKind::File, executable, Content::Bytes(&mut entry))?;
        }
    }
    Ok(())
}

/// Compares a workspace with what it was filled with, but for the directories in `skip`.
///
/// `archive` is opened twice: once for the digests, once for the contents of what
/// changed, so that only changes are held in memory. `keep` is asked about new paths:
/// what a build leaves behind is not what was changed, nor what is new in a folder that
/// calls itself a cache.
///
/// # Errors
/// A damaged archive, changes above [`limits::CHANGED_BYTES_MAX`], or the sandbox's.
pub async fn changes(
    sandbox: &dyn Sandbox,
    archive: impl AsyncFn() -> Result<Box<dyn Read + Send>, Error>,
    skip: &[String],
    keep: impl Fn(&str) -> bool,
) -> Result<Changes, Error> {
    let base = blocking(archive().await?, Base::read).await?;
    let mut now = manifest(sandbox, ".", skip).await?;
    let special: Vec<String> = now
        .extract_if(.., |_, entry| entry.kind == EntryKind::Other)
        .map(|(path, _)| path)
        .filter(|path| base.0.contains_key(path) || keep(path))
        .collect();
    let mut paths: Vec<String> = Vec::new();
    for (path, known) in &base.0 {
        if now.get(path).is_none_or(|entry| known_of(entry) != *known) {
            paths.push(path.clone());
        }
    }
    let caches = caches(&base, &now);
    let is_new = |path: &&String| !base.0.contains_key(*path) && keep(path);
    let in_cache = |path: &&String| caches.iter().any(|cache| path.starts_with(cache));
    paths.extend(now.keys().filter(is_new).filter(|path| !in_cache(path)).cloned());
    paths.sort();
    let wanted = paths.iter().filter(|path| base.0.contains_key(*path)).cloned().collect();
    let mut before = blocking(archive().await?, |archive| contents(archive, wanted)).await?;
    let after = stream::iter(paths.iter().filter_map(|path| now.get(path)))
        .map(|entry| async {
            Ok((entry.path.clone(), download(sandbox, &entry.path, entry).await?))
        })
        .buffer_unordered(limits::COPIES_MAX)
        .try_fold(
            (BTreeMap::new(), 0u64),
            |(mut files, bytes), (path, file): (_, File)| async move {
                let bytes = bytes + file.contents.len() as u64;
                if bytes > limits::CHANGED_BYTES_MAX {
                    return Err(Error::TooLarge(limits::CHANGED_BYTES_MAX));
                }
                files.insert(path, file);
                Ok((files, bytes))
            },
        );
    let (mut after, _) = after.await?;
    let change =
        |path: String| Change { before: before.remove(&path), after: after.remove(&path), path };
    Ok(Changes { changed: paths.into_iter().map(change).collect(), special })
}

/// Folders that are new and say themselves that they hold what a tool can make again, as
/// those of pytest, mypy and cargo do (bford.info/cachedir), each with a slash at its end.
fn caches(base: &Base, now: &BTreeMap<String, ManifestEntry>) -> Vec<String> {
    let folders = now.keys().filter_map(|path| path.strip_suffix("/CACHEDIR.TAG"));
    let folders = folders.map(|folder| format!("{folder}/"));
    let is_new = |folder: &String| {
        base.0.range(folder.clone()..).next().is_none_or(|(path, _)| !path.starts_with(folder))
    };
    folders.filter(is_new).collect()
}

pub(super) async fn blocking<T: Send + 'static>(
    archive: Box<dyn Read + Send>,
    work: impl FnOnce(Box<dyn Read + Send>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(move || work(archive)).await;
    done.map_err(|panic| Error::Archive(std::io::Error::other(panic)))?
}

fn known_of(entry: &ManifestEntry) -> BaseEntry {
    BaseEntry { kind: entry.kind, executable: entry.executable, digest: entry.digest }
}

fn contents(
    archive: impl Read,
    wanted: std::collections::BTreeSet<String>,
) -> Result<BTreeMap<String, File>, Error> {
    let mut files = BTreeMap::new();
    each(archive, |path, kind, executable, content| {
        if wanted.contains(&path) {
            let mut contents = Vec::new();
            match content {
                Content::Target(target) => contents.extend_from_slice(target),
                Content::Bytes(entry) => {
                    entry.read_to_end(&mut contents).map_err(Error::Archive)?;
                }
            }
            files.insert(path, File { kind, executable, contents });
        }
        Ok(())
    })?;
    Ok(files)
}

/// Every file and link beneath a directory, but for the directories in `skip`.
pub(super) async fn manifest(
    sandbox: &dyn Sandbox,
    root: &str,
    skip: &[String],
) -> Result<BTreeMap<String, ManifestEntry>, Error> {
    let mut found = BTreeMap::new();
    let (mut after, mut last, mut seen) = (None, None, 0);
    loop {
        let op = FileOp::Manifest {
            root: root.to_owned(),
            after: after.take(),
            skip: skip.to_vec(),
            entries_max: limits::MANIFEST_PAGE_ENTRIES,
        };
        let reply = sandbox.files(op).await;
        let what = if root == "." { "the workspace" } else { root };
        let failed = |source| Error::Sandbox { path: what.to_owned(), source };
        let FileReply::Manifest { entries, more } = reply.map_err(failed)? else {
            return Err(Error::Protocol);
        };
        // What a sandbox answers is data: it must come to its end, and name plain paths.
        let rising = entries.iter().all(|entry| {
            let rises = last.as_ref().is_none_or(|last: &String| *last < entry.path);
            last = Some(entry.path.clone());
            rises && is_plain(&entry.path)
        });
        seen += entries.len() as u64;
        if !rising || seen > limits::MANIFEST_ENTRIES_MAX {
            return Err(Error::Protocol);
        }
        after = last.clone();
        // A repository's own data is not part of its content.
        let of_git = |entry: &ManifestEntry| entry.path.split('/').any(is_git);
        let kept = entries
            .into_iter()
            .filter(|entry| entry.kind != EntryKind::Directory && !of_git(entry));
        found.extend(kept.map(|entry| (entry.path.clone(), entry)));
        if !more || after.is_none() {
            return Ok(found);
        }
    }
}

/// Whether a path is relative and in its shortest form.
fn is_plain(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// What a path holds, by its entry.
pub(super) async fn download(
    sandbox: &dyn Sandbox,
    path: &str,
    entry: &ManifestEntry,
) -> Result<File, Error> {
    let failed = |source| Error::Sandbox { path: path.to_owned(), source };
    if let Some(target) = &entry.target {
        let (kind, contents) = (EntryKind::Link, target.clone().into_bytes());
        return Ok(File { kind, executable: false, contents });
    }
    let mut contents = Vec::new();
    if entry.bytes > limits::CHANGED_BYTES_MAX {
        return Err(Error::TooLarge(limits::CHANGED_BYTES_MAX));
    }
    loop {
        let op = FileOp::Read {
            path: path.to_owned(),
            offset: contents.len() as u64,
            bytes_max: sandbox_limits::FILE_CHUNK_BYTES_MAX,
        };
        let FileReply::Bytes { bytes, total_bytes } = sandbox.files(op).await.map_err(failed)?
        else {
            return Err(Error::Protocol);
        };
        contents.extend_from_slice(&bytes);
        if contents.len() as u64 > limits::CHANGED_BYTES_MAX {
            return Err(Error::TooLarge(limits::CHANGED_BYTES_MAX));
        }
        if bytes.is_empty() || contents.len() as u64 >= total_bytes {
            break;
        }
    }
    Ok(File { kind: entry.kind, executable: entry.executable, contents })
}
