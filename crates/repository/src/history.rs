//! The history of a directory that goes to another machine, in the archive of the directory.
//!
//! Owns what of `.git` is taken on both sides: what git needs to know the history, and nothing
//! that runs. Settings are written anew there too, since whoever sends an archive can put
//! anything into it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use outrigger_beneath::Dir;

use crate::git::inside::{FOLDERS, OBJECTS_FOLDER, SandboxRepository, is_hex, rewritten};
use crate::{DirectoryArchive, Error, limits};

/// What an archive ends with; see tar(5).
const TRAILER_BYTES: i64 = 1_024;
const GIT: &str = ".git";

/// The history of a repository, to go along with the files of its top directory.
#[derive(Debug)]
pub struct History {
    repository: SandboxRepository,
    objects: Dir,
    /// Files beneath the folder of objects, with their sizes.
    files: Vec<(PathBuf, u64)>,
}

impl History {
    /// Of the repository whose top `dir` is. `None` if it is the top of none; with a reason if
    /// it can't go along.
    ///
    /// # Errors
    /// If a file of it can't be read.
    pub fn read(dir: &Path) -> Result<Option<Result<Self, String>>, Error> {
        let repository = match SandboxRepository::read(dir)? {
            None => return Ok(None),
            Some(Err(why)) => return Ok(Some(Err(why))),
            Some(Ok(repository)) => repository,
        };
        let place = repository.objects.clone();
        let objects = Dir::open(&place).map_err(Error::unreadable(&place, Path::new("")))?;
        let mut files = Vec::new();
        let names = objects.names().map_err(Error::unreadable(&place, Path::new("")))?;
        for folder in names.flatten().map(PathBuf::from).filter(|it| is_object_folder(it)) {
            let opened = objects.dir(&folder).map_err(Error::unreadable(&place, &folder))?;
            let names = opened.names().map_err(Error::unreadable(&place, &folder))?;
            for name in names.flatten().filter(|name| is_object(&folder, Path::new(name))) {
                let stat = opened.stat(Path::new(&name)).ok().flatten();
                if let Some(stat) = stat.filter(outrigger_beneath::Stat::is_file) {
                    files.push((folder.join(name), stat.bytes));
                }
            }
            if files.len() > limits::HISTORY_FILES_MAX {
                let most = limits::HISTORY_FILES_MAX;
                let why = format!("its objects are in more than {most} files; `git gc` packs them");
                return Ok(Some(Err(why)));
            }
        }
        files.sort();
        let history = Self { repository, objects, files };
        let (bytes, most) = (history.bytes() >> 20, limits::HISTORY_BYTES_MAX >> 20);
        if history.bytes() > limits::HISTORY_BYTES_MAX {
            let why = format!("it has {bytes} MiB, and {most} MiB are sent at most");
            return Ok(Some(Err(why)));
        }
        Ok(Some(Ok(history)))
    }

    /// How many bytes its objects have.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// What a person should know of it.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.repository.notes
    }

    /// Puts it behind the files of the directory.
    ///
    /// # Errors
    /// If an object is not there any more, or the archive can't be written.
    pub fn join(&self, packed: &mut DirectoryArchive) -> Result<(), Error> {
        let mut joined = JoinedArchive::begin(packed)?;
        for (name, contents) in self.repository.files() {
            joined.file(Path::new(name), contents.as_slice(), contents.len() as u64)?;
        }
        for (path, bytes) in &self.files {
            let file = self.objects.file(path);
            let file = file.map_err(Error::unreadable(&self.repository.objects, path))?;
            joined.file(&Path::new(OBJECTS_FOLDER).join(path), file, *bytes)?;
        }
        joined.end(true)
    }
}

/// Takes the history over from an archive that was sent into that of its files.
pub(crate) fn take_over(sent: File, packed: &mut DirectoryArchive) -> Result<(), Error> {
    let mut sent = tar::Archive::new(rewound(sent).map_err(Error::Archive)?);
    let (mut joined, mut is_whole) = (JoinedArchive::begin(packed)?, false);
    for entry in sent.entries().map_err(Error::Archive)? {
        let mut entry = entry.map_err(Error::Archive)?;
        let path = entry.path().map_err(Error::Archive)?.into_owned();
        let Some(path) = inside(&path).filter(|_| entry.header().entry_type().is_file()) else {
            continue;
        };
        let bytes = entry.size();
        if path == Path::new("config") {
            let mut settings = Vec::new();
            let most = limits::GIT_FILE_BYTES_MAX;
            entry.take(most).read_to_end(&mut settings).map_err(Error::Archive)?;
            let settings = rewritten(&settings);
            joined.file(&path, settings.as_slice(), settings.len() as u64)?;
        } else if is_taken(&path) {
            is_whole |= path == Path::new("HEAD");
            joined.file(&path, &mut entry, bytes)?;
        }
    }
    joined.end(is_whole)
}

/// An archive whose end is written anew.
struct JoinedArchive<'a> {
    packed: &'a mut DirectoryArchive,
    builder: tar::Builder<File>,
}

impl<'a> JoinedArchive<'a> {
    fn begin(packed: &'a mut DirectoryArchive) -> Result<Self, Error> {
        let mut file = packed.archive.try_clone().map_err(Error::Archive)?;
        file.seek(SeekFrom::End(-TRAILER_BYTES)).map_err(Error::Archive)?;
        let mut builder = tar::Builder::new(file);
        for folder in FOLDERS {
            let mut header = header(tar::EntryType::Directory, 0, 0o755);
            let path = Path::new(GIT).join(folder);
            builder.append_data(&mut header, path, io::empty()).map_err(Error::Archive)?;
        }
        Ok(Self { packed, builder })
    }

    fn file(&mut self, path: &Path, contents: impl Read, bytes: u64) -> Result<(), Error> {
        let mut header = header(tar::EntryType::Regular, bytes, 0o644);
        let mut contents = contents.take(bytes);
        let path = Path::new(GIT).join(path);
        self.builder.append_data(&mut header, &path, &mut contents).map_err(Error::Archive)?;
        match contents.limit() {
            0 => Ok(()),
            _ => Err(Error::Shorter(path)),
        }
    }

    fn end(self, has_history: bool) -> Result<(), Error> {
        self.builder.into_inner().map_err(Error::Archive)?;
        self.packed.has_history = has_history;
        self.packed.archive.rewind().map_err(Error::Archive)
    }
}

fn header(kind: tar::EntryType, bytes: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(bytes);
    header.set_mode(mode);
    header.set_mtime(0);
    header
}

fn rewound(mut file: File) -> io::Result<File> {
    file.rewind()?;
    Ok(file)
}

/// A path of an archive, as it is beneath the `.git` of its top.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components().filter(|part| *part != Component::CurDir);
    let is_git = parts.next() == Some(Component::Normal(GIT.as_ref()));
    let parts: Vec<_> = parts.collect();
    let is_plain = parts.iter().all(|part| matches!(part, Component::Normal(_)));
    (is_git && is_plain).then(|| parts.iter().collect())
}

/// Whether a file beneath `.git` goes along: references, objects, and what else git asks for.
/// Not among them are hooks, logs, and what is of other checkouts.
fn is_taken(path: &Path) -> bool {
    if let Ok(object) = path.strip_prefix(OBJECTS_FOLDER) {
        let name = object.file_name().map(Path::new);
        let folder = object.parent().filter(|folder| is_object_folder(folder));
        return folder.zip(name).is_some_and(|(folder, name)| is_object(folder, name));
    }
    let whole = ["HEAD", "packed-refs", "index", "shallow"];
    whole.iter().any(|name| path == Path::new(name)) || path.starts_with("refs")
}

fn is_object_folder(folder: &Path) -> bool {
    folder.to_str().is_some_and(|name| name == "pack" || (name.len() == 2 && is_hex(name)))
}

/// Whether a file in one of these folders has objects.
fn is_object(folder: &Path, name: &Path) -> bool {
    let Some(name) = name.to_str() else { return false };
    if folder != Path::new("pack") {
        return matches!(name.len(), 38 | 62) && is_hex(name);
    }
    let stem = name.strip_suffix(".pack").or_else(|| name.strip_suffix(".idx"));
    stem.and_then(|stem| stem.strip_prefix("pack-")).is_some_and(is_hex)
}
