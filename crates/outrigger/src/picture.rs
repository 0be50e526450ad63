//! Pictures that a person shows the agent: files of this machine, which become blobs.
//!
//! Owns which files are pictures, told by their first bytes and never by their names, and
//! how large they may be. Must never decode one, nor read more of a file than a picture has.

mod mention;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use outrigger_agent::{Picture, limits};
use outrigger_api::AttachedPicture;
use outrigger_beneath::{Dir, Error};
use outrigger_engine::{PictureFault, media_type};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::compose;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::show::amounts::size;

pub(crate) use mention::mentioned;

/// The file of a picture.
#[derive(Debug)]
pub(crate) struct PictureFile {
    /// As it was named.
    path: PathBuf,
    content: Vec<u8>,
}

impl PictureFile {
    /// A file that a person named.
    fn named(path: &Path) -> Outcome<Self> {
        Self::read(path, open(path).map_err(|error| unreadable(path, &error))?)
    }

    /// Reads a file. It is an error if that is no picture.
    fn read(path: &Path, file: File) -> Outcome<Self> {
        Self::if_picture(path, file)?.ok_or_else(|| no_picture(path))
    }

    /// Reads a file, if it is a picture.
    fn if_picture(path: &Path, file: File) -> Outcome<Option<Self>> {
        let failed =
            |error: io::Error| Failure::new(Kind::Usage, format!("{}: {error}", path.display()));
        let mut content = Vec::new();
        (&file).take(HEAD_BYTES).read_to_end(&mut content).map_err(failed)?;
        if media_type(&content).is_none() {
            return Ok(None);
        }
        let bytes = file.metadata().map_err(failed)?.len();
        let max = limits::PICTURE_BYTES_MAX;
        (&file).take(max).read_to_end(&mut content).map_err(failed)?;
        if bytes > max || content.len() as u64 > max {
            let (bytes, max) = (size(bytes.max(max + 1)), size(max));
            let text = format!("{} has {bytes}; a picture may have {max}", path.display());
            return Err(Failure::new(Kind::Usage, text).hint(SMALLER));
        }
        Ok(Some(Self { path: path.to_owned(), content }))
    }

    /// What is known of it.
    pub(crate) fn picture(&self) -> Outcome<Picture> {
        let named = self.path.display().to_string();
        let known = outrigger_engine::picture(&named, &self.content).map_err(|fault| {
            let failure = Failure::from_error(Kind::Usage, &fault);
            match fault {
                PictureFault::TooLong { .. } | PictureFault::TooWide { .. } => {
                    failure.hint(SMALLER)
                }
                PictureFault::NoPicture(_) | PictureFault::Damaged(_) => failure,
            }
        })?;
        Ok(Picture { name: name(&self.path), ..known })
    }

    /// As it is sent to a server, which looks at it once more.
    pub(crate) fn attached(&self) -> Outcome<AttachedPicture> {
        let name = self.picture()?.name;
        Ok(AttachedPicture { name, content: BASE64_STANDARD.encode(&self.content) })
    }
}

/// The files that a person named.
pub(crate) fn named(paths: &[PathBuf]) -> Outcome<Vec<PictureFile>> {
    ensure_few(paths.len())?;
    paths.iter().map(|path| PictureFile::named(path)).collect()
}

/// The files that a person named, as they are sent to a server.
pub(crate) fn attached(paths: &[PathBuf]) -> Outcome<Vec<AttachedPicture>> {
    named(paths)?.iter().map(PictureFile::attached).collect()
}

/// An error where a message would have too many, before more of them are read.
fn ensure_few(count: usize) -> Outcome {
    let max = limits::PICTURES_PER_MESSAGE_MAX;
    match count <= max {
        true => Ok(()),
        false => Err(outrigger_engine::Error::TooManyPictures { count, max }.into()),
    }
}

/// As many bytes as tell what a file is.
const HEAD_BYTES: u64 = 12;
const SMALLER: &str = "Make it smaller, or a JPEG or WebP of it.";

/// Opens a file that a person named, through whatever links they did.
fn open(path: &Path) -> Result<File, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let whole = fs::canonicalize(path).map_err(io)?;
    match Dir::around(&whole)? {
        Some((dir, name)) => dir.file(&name),
        None => Err(io(io::ErrorKind::IsADirectory.into())),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn no_picture(path: &Path) -> Failure {
    let text = format!("{} is no picture: no PNG, JPEG, GIF or WebP", path.display());
    Failure::new(Kind::Usage, text).hint("What a file is, its first bytes say, and not its name.")
}

fn unreadable(path: &Path, error: &Error) -> Failure {
    let path = path.display();
    match error {
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Failure::new(Kind::NotFound, format!("there is no {path}"))
                .hint("Name a file that is there.")
        }
        Error::Io { source, .. } => Failure::new(Kind::Usage, format!("{path}: {source}")),
        Error::Outside(_) | Error::Link(_) | Error::NoFile { .. } => {
            Failure::from_error(Kind::Usage, error)
        }
    }
}

/// Stores what pictures are, before anything names them.
pub(crate) async fn keep(paths: &Paths, files: Vec<PictureFile>) -> Outcome<Vec<Picture>> {
    let pictures: Vec<_> = files.iter().map(PictureFile::picture).collect::<Outcome<_>>()?;
    if !files.is_empty() {
        let store = compose::store(paths).await?;
        for file in files {
            store.blobs.put(file.content).await?;
        }
    }
    Ok(pictures)
}
