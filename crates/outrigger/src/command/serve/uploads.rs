//! Directories that people sent, until a session begins with each.
//!
//! Owns that who sent one is who begins with it, and that none is kept for longer than a day.

use outrigger_agent::{HiddenCharPolicy, Message, visible};
use outrigger_api::{ProblemCode, SentWorkspace, TrustedContent, UploadedWorkspace};
use outrigger_beneath::Dir;
use outrigger_repository::{DirectoryArchive, Limits, WorkTree};
use outrigger_server::{RequestError, Upload};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::failure::told;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::repository::failed;
use crate::show::inert;
use crate::workspace::SentDirectory;

/// What is in the folder of one: what is known of it, its archive, and its files.
const ABOUT: &str = "about.json";
const ARCHIVE: &str = "archive.tar";
const FILES: &str = "files";

/// Where they are kept.
#[derive(Debug, Clone)]
pub(super) struct Uploads {
    dir: PathBuf,
    most: Limits,
}

/// What is known of one.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    /// Who sent it.
    person: String,
    /// Files and links in it; nothing before it was looked through.
    files: Option<u64>,
    /// Whether the history of a repository is in it.
    has_history: bool,
}

/// A directory that a session begins with.
#[derive(Debug)]
pub(super) struct TakenUpload {
    archive: File,
    /// How many files and links are in it.
    count: u64,
    has_history: bool,
    files: PathBuf,
    place: PathBuf,
}

impl Uploads {
    pub(super) fn new(paths: &Paths, config: &Config) -> Self {
        let most =
            Limits { bytes_max: config.workspace_bytes_max, files_max: config.workspace_files_max };
        Self { dir: paths.uploads(), most }
    }

    /// Makes room for one.
    pub(super) fn begin(&self, person: &str) -> Result<Upload, RequestError> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let place = self.dir.join(&id);
        let made = || {
            fs::create_dir_all(&self.dir)?;
            if self.swept()? >= limits::UPLOADS_MAX {
                return Ok(None);
            }
            fs::create_dir(&place)?;
            About { person: person.to_owned(), files: None, has_history: false }.write(&place)?;
            let archive = File::create_new(place.join(ARCHIVE))?;
            Ok(Some(archive))
        };
        let archive = made().map_err(|error| told(storage(&place, &error)))?;
        let archive = archive.ok_or_else(|| {
            let text = "too many directories were sent with which no session began";
            let error = RequestError::new(ProblemCode::RateLimited, text);
            RequestError { retryable: true, ..error }
        })?;
        // Each file has a header, and is filled up.
        let headers = self.most.files_max.saturating_mul(limits::ARCHIVE_HEADER_BYTES);
        Ok(Upload { id, archive, bytes_max: self.most.bytes_max.saturating_add(headers) })
    }

    /// Looks through what was sent. Where it is no directory it is gone.
    pub(super) fn end(&self, id: &str) -> Outcome<UploadedWorkspace> {
        let place = self.dir.join(id);
        let ended = self.looked_through(&place, id);
        if ended.is_err() {
            // What can't be deleted is swept a day later.
            drop(fs::remove_dir_all(&place));
        }
        ended
    }

    fn looked_through(&self, place: &Path, id: &str) -> Outcome<UploadedWorkspace> {
        let storage = |error: std::io::Error| storage(place, &error);
        let files = place.join(FILES);
        fs::create_dir(&files).map_err(storage)?;
        let sent = File::open(place.join(ARCHIVE)).map_err(storage)?;
        let refused = |error: &_| {
            let place = Path::new("the directory that was sent");
            Failure { kind: Kind::Usage, ..failed(place, error) }
        };
        let packed = outrigger_repository::unpack(sent, &files, &self.dir, self.most);
        let DirectoryArchive { mut archive, files, bytes, has_history, .. } =
            packed.map_err(|it| refused(&it))?;
        let mut kept = File::create(place.join(ARCHIVE)).map_err(storage)?;
        std::io::copy(&mut archive, &mut kept).map_err(storage)?;
        let about = About::read(place).map_err(storage)?;
        About { files: Some(files), has_history, ..about }.write(place).map_err(storage)?;
        Ok(UploadedWorkspace { id: id.to_owned(), files, bytes })
    }

    /// The one of that name, if this person sent it.
    pub(super) fn take(&self, person: &str, id: &str) -> Outcome<TakenUpload> {
        let unknown = || {
            let text = "`workspace.id`: no directory of that name waits; send it again";
            Failure::new(Kind::NotFound, text)
        };
        let is_name = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let place = self.dir.join(id);
        let about = is_name.then(|| About::read(&place).ok()).flatten();
        let about = about.filter(|about| about.person == person).ok_or_else(unknown)?;
        let count = about.files.ok_or_else(unknown)?;
        let archive = File::open(place.join(ARCHIVE)).map_err(|_| unknown())?;
        let files = fs::canonicalize(place.join(FILES)).map_err(|_| unknown())?;
        let has_history = about.has_history;
        Ok(TakenUpload { archive, count, has_history, files, place })
    }

    /// Deletes what is too old. Gives how many there are.
    fn swept(&self) -> std::io::Result<usize> {
        let age = Duration::from_millis(limits::UPLOAD_MS_MAX);
        let mut left = 0;
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let made = entry.metadata().and_then(|meta| meta.modified());
            let is_old = made.is_ok_and(|made| {
                SystemTime::now().duration_since(made).is_ok_and(|passed| passed > age)
            });
            if !is_old || fs::remove_dir_all(entry.path()).is_err() {
                left += 1;
            }
        }
        Ok(left)
    }
}

impl About {
    fn read(place: &Path) -> std::io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(place.join(ABOUT))?)?)
    }

    fn write(&self, place: &Path) -> std::io::Result<()> {
        fs::write(place.join(ABOUT), serde_json::to_vec(self)?)
    }
}

impl TakenUpload {
    /// It, and where in it the person works.
    pub(super) fn tree(&self, prefix: &str) -> Outcome<WorkTree> {
        let tree = WorkTree { top: self.files.clone(), prefix: PathBuf::from(prefix) };
        let there = Dir::open(&tree.top).and_then(|top| match prefix {
            "" => Ok(top),
            prefix => top.dir(Path::new(prefix)),
        });
        let is_plain = visible(prefix, HiddenCharPolicy::Marked) == prefix
            && prefix.len() <= outrigger_repository::limits::PREFIX_BYTES_MAX;
        match there {
            Ok(_) if is_plain => Ok(tree),
            Ok(_) | Err(_) => {
                let text = format!("`workspace.prefix`: {} is no folder of it", inert(prefix));
                Err(Failure::new(Kind::Usage, text))
            }
        }
    }

    /// What it is told to agents as, as whose word.
    pub(super) fn messages(tree: &WorkTree, sent: &SentWorkspace, person: &str) -> Vec<Message> {
        let trusts = |file: &ProjectFile| {
            let of =
                |it: &TrustedContent| it.path == file.name && it.sha256 == file.digest.as_str();
            !file.is_cut && sent.trusted.iter().any(of)
        };
        let guides = ProjectFile::guides(tree).into_iter();
        let message = |file: ProjectFile| match trusts(&file) {
            true => file.trusted_by(person),
            false => file.untrusted(),
        };
        guides.map(message).collect()
    }

    /// As the content of a session.
    pub(super) fn content(&self, source: &str) -> Outcome<SentDirectory> {
        let archive = self.archive.try_clone().map_err(|error| storage(&self.place, &error))?;
        let source = inert(source).chars().take(limits::SOURCE_CHARS_MAX).collect();
        let (files, has_history) = (self.count, self.has_history);
        Ok(SentDirectory { archive, files, has_history, source })
    }

    /// A session began with it.
    pub(super) fn done(self) {
        // What can't be deleted is swept a day later.
        drop(fs::remove_dir_all(self.place));
    }
}

fn storage(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
}
