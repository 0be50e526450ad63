//! A repository for a sandbox: the history that a person has, and nothing that runs.
//!
//! Owns what of a repository goes along: where it stands, its branches and tags, its index.
//! Objects are not copied: the sandbox is shown them, and its repository borrows them
//! (gitrepository-layout(5), `objects/info/alternates`). Left behind are settings, hooks,
//! remotes with a password in their address, stashes and logs. Runs no git.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::remotes::{self, Remote};
use super::{Git, bounded};
use crate::layer::LayerBuilder;
use crate::{Error, limits};

/// When all of it was made: the same archive for the same repository.
const OLD: (i64, i64) = (0, 0);

/// Where a repository has its objects.
pub(crate) const OBJECTS_FOLDER: &str = "objects";

/// The folders that git knows a repository by, and those that it expects.
pub(crate) const FOLDERS: [&str; 7] =
    ["", OBJECTS_FOLDER, "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"];

/// Where a sandbox is shown the objects.
pub const OBJECTS: &str = "/var/outrigger/objects";

/// A repository as a sandbox gets it.
#[derive(Debug)]
pub struct SandboxRepository {
    /// The directory of the host with the objects.
    pub objects: PathBuf,
    /// What a person should know of it.
    pub notes: Vec<String>,
    files: BTreeMap<&'static str, Vec<u8>>,
}

impl SandboxRepository {
    /// Of the repository whose top `dir` is. `None` if it is the top of none; with a reason
    /// if it is one that can't go along.
    ///
    /// # Errors
    /// If a file of it can't be read.
    pub fn read(dir: &Path) -> Result<Option<Result<Self, String>>, Error> {
        let Some(git) = Git::find(dir)?.filter(|git| git.top == dir) else { return Ok(None) };
        if !git.is_of_top() && !git.is_submodule() {
            let why = "its `.git` leads to a repository that does not know the directory";
            return Ok(Some(Err(why.to_owned())));
        }
        if let Some(why) = git.unsuited() {
            return Ok(Some(Err(why.to_owned())));
        }
        let Some(head) = git.read(&git.own, "HEAD", limits::GIT_FILE_BYTES_MAX)? else {
            return Ok(None);
        };
        let Some(refs) = refs(&git)? else {
            let most = limits::REFS_MAX;
            return Ok(Some(Err(format!("it has more than {most} references"))));
        };
        let sha256 = refs.values().chain([&head]).any(|value| value.trim_ascii_end().len() == 64);
        let mut files = BTreeMap::from([
            ("HEAD", head),
            ("config", config(sha256, &remotes::of(&git)?)),
            ("packed-refs", packed(&refs)),
        ]);
        let mut notes = Vec::new();
        if let Some(index) = git.index()? {
            files.insert("index", index);
        }
        if let Some(shallow) = git.read(&git.common, "shallow", limits::REFS_BYTES_MAX)? {
            files.insert("shallow", shallow);
            notes.push("the clone is shallow: its history ends where it was cut".to_owned());
        }
        let objects = git.common_place.join(OBJECTS_FOLDER);
        Ok(Some(Ok(Self { objects, notes, files })))
    }

    /// What it has beside its objects, by the names in `.git`.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &Vec<u8>)> {
        self.files.iter().map(|(name, contents)| (*name, contents))
    }

    /// A tar archive of it, in which it stands in `top` and belongs to the user `owner`, and
    /// borrows its objects.
    ///
    /// # Errors
    /// None that memory does not have.
    pub fn archive(&self, top: &Path, owner: u64) -> io::Result<Vec<u8>> {
        let mut layer = LayerBuilder::new(Vec::new(), top, owner);
        let git = Path::new(".git");
        layer.folder(Path::new(""), 0o755, OLD)?;
        FOLDERS.iter().try_for_each(|folder| layer.folder(&git.join(folder), 0o755, OLD))?;
        let alternates = format!("{OBJECTS}\n").into_bytes();
        let borrowed = ("objects/info/alternates", &alternates);
        for (name, contents) in self.files().chain([borrowed]) {
            let bytes = (contents.as_slice(), contents.len() as u64);
            layer.file(&git.join(name), (0o644, OLD), bytes)?;
        }
        layer.finish()
    }
}

impl Git {
    /// Why a sandbox can't have it, nor give anything to it, if it can't.
    pub(crate) fn unsuited(&self) -> Option<&'static str> {
        let has = |path: &str| matches!(self.common.stat(Path::new(path)), Ok(Some(_)));
        let objects = self.common.stat(Path::new("objects"));
        if !objects.is_ok_and(|found| found.is_some_and(|stat| stat.is_dir())) {
            // A link could show another repository's.
            return Some("its objects are in no folder of its own");
        }
        if has("reftable") {
            return Some("its references are in a reftable, which is not read here");
        }
        if has("objects/info/alternates") {
            return Some(
                "it borrows objects of another repository; `git repack -a -d` makes it whole",
            );
        }
        None
    }
}

/// What such settings are where these were.
pub(crate) fn rewritten(settings: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(settings);
    let sha256 = text.lines().any(|line| {
        let parts = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        parts.is_some_and(|(key, value)| {
            key.eq_ignore_ascii_case("objectformat") && value.eq_ignore_ascii_case("sha256")
        })
    });
    config(sha256, &remotes::parse(&text))
}

/// Settings that make it a repository, and let commits be made.
fn config(sha256: bool, remotes: &[Remote]) -> Vec<u8> {
    let (version, extensions) =
        if sha256 { (1, "[extensions]\n\tobjectFormat = sha256\n") } else { (0, "") };
    let remotes = remotes.iter().map(|Remote { name, url }| {
        format!(
            "[remote \"{name}\"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/{name}/*\n"
        )
    });
    let remotes: String = remotes.collect();
    format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n{extensions}[user]\n\tname = agent\n\temail = agent@localhost\n[gc]\n\tauto = 0\n{remotes}"
    )
    .into_bytes()
}

/// Branches, tags and what remotes had, by name. `None`: more than are taken.
pub(crate) fn refs(git: &Git) -> Result<Option<BTreeMap<String, Vec<u8>>>, Error> {
    let mut refs = BTreeMap::new();
    if let Some(packed) = git.read(&git.common, "packed-refs", limits::REFS_BYTES_MAX)? {
        for line in packed.split(|byte| *byte == b'\n') {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let Some((value, name)) = line.split_once(' ').filter(|(value, _)| is_hash(value))
            else {
                continue;
            };
            if is_wanted(name) {
                refs.insert(name.to_owned(), value.as_bytes().to_owned());
            }
        }
    }
    let mut folders: Vec<String> =
        ["heads", "tags", "remotes"].map(|it| format!("refs/{it}")).into();
    while let Some(folder) = folders.pop() {
        let Ok(opened) = git.common.dir(Path::new(&folder)) else { continue };
        let names = opened.names().map_err(Error::unreadable(&git.place, Path::new(&folder)))?;
        for name in names.flatten() {
            let Some(name) = name.to_str() else { continue };
            let path = format!("{folder}/{name}");
            match opened.stat(Path::new(name)) {
                Ok(Some(stat)) if stat.is_dir() => folders.push(path),
                Ok(Some(stat)) if stat.is_file() => {
                    let Ok(file) = opened.file(Path::new(name)) else { continue };
                    let value = bounded(file, Path::new(&path), limits::GIT_FILE_BYTES_MAX)?;
                    let value = value.trim_ascii_end();
                    if std::str::from_utf8(value).is_ok_and(is_hash) {
                        refs.insert(path, value.to_owned());
                    }
                }
                _ => {}
            }
            if refs.len() + folders.len() > limits::REFS_MAX {
                return Ok(None);
            }
        }
    }
    Ok(Some(refs).filter(|refs| refs.len() <= limits::REFS_MAX))
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && is_hex(text)
}

pub(crate) fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_wanted(name: &str) -> bool {
    ["refs/heads/", "refs/tags/", "refs/remotes/"].iter().any(|top| name.starts_with(top))
}

/// As git packs them, sorted.
fn packed(refs: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in refs {
        text.extend_from_slice(value);
        text.extend_from_slice(format!(" {name}\n").as_bytes());
    }
    text
}
