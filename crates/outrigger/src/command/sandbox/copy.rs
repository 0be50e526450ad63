//! `outrigger sandbox cp`: files into and out of a sandbox.
//!
//! Owns which side is which, and the count of what went over. Files go as bytes
//! through the sandbox's own door: nothing on the host walks a sandbox's disk.

mod down;
mod up;

use outrigger_sandbox::{
    Error, FileError, FileErrorKind, FileOp, FileReply, ListEntry, Sandbox, limits as door,
};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{SandboxCommand, failed};
use crate::cli::Output;
use crate::exit::{Failure, Kind, Outcome};
use crate::show::{self, Screen, Tone};

/// One side of a copy.
#[derive(Debug, PartialEq, Eq)]
enum Side {
    Here(PathBuf),
    /// Standard input or output.
    Stream,
    There {
        sandbox: String,
        path: String,
    },
}

impl Side {
    /// `NAME:PATH` is in a sandbox. A path here that has a colon is written with a
    /// slash before it, as for scp(1).
    fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((sandbox, path)) if !sandbox.is_empty() && !sandbox.contains('/') => {
                let path = if path.is_empty() { "." } else { path };
                Self::There { sandbox: sandbox.to_owned(), path: path.to_owned() }
            }
            _ if text == "-" => Self::Stream,
            _ => Self::Here(PathBuf::from(text)),
        }
    }
}

/// What went over so far.
#[derive(Debug, Default)]
struct Count {
    files: AtomicU64,
    bytes: AtomicU64,
    /// What there is to go over, once it is known.
    bytes_total: AtomicU64,
}

impl Count {
    fn piece(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    fn total(&self, bytes: u64) {
        self.bytes_total.store(bytes, Ordering::Relaxed);
    }

    fn taken(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn words(&self) -> String {
        let (files, bytes) = self.taken();
        let total = self.bytes_total.load(Ordering::Relaxed).max(bytes);
        format!("copied {} · {} of {} MiB", show::count(files, "file"), bytes >> 20, total >> 20)
    }
}

pub(super) async fn execute(
    sandboxes: &SandboxCommand,
    from: &str,
    to: &str,
    output: Output,
) -> Outcome<u8> {
    let mut screen = Screen::new(output);
    let count = Arc::new(Count::default());
    let copying = async {
        match (Side::parse(from), Side::parse(to)) {
            (Side::Here(from), Side::There { sandbox, path }) => {
                let sandbox = sandboxes.existing(&sandbox).await?;
                up::copy(sandbox, &from, &path, Arc::clone(&count)).await
            }
            (Side::Stream, Side::There { sandbox, path }) => {
                let sandbox = sandboxes.existing(&sandbox).await?;
                up::copy_input(&*sandbox, &path, &count).await
            }
            (Side::There { sandbox, path }, Side::Here(to)) => {
                let sandbox = sandboxes.existing(&sandbox).await?;
                down::copy(sandbox, &path, &to, Arc::clone(&count)).await
            }
            (Side::There { .. }, Side::Stream) if output.json.is_some() => {
                let text = "standard output can't have a file and JSON";
                Err(Failure::new(Kind::Usage, text).hint("Name a file, or leave --json away."))
            }
            (Side::There { sandbox, path }, Side::Stream) => {
                let sandbox = sandboxes.existing(&sandbox).await?;
                down::copy_output(&*sandbox, &path, &count).await
            }
            _ => Err(Failure::new(Kind::Usage, "exactly one side must be in a sandbox").hint(
                "Write it as NAME:PATH, for example `outrigger sandbox cp notes.txt work:docs/`.",
            )),
        }
    };
    let left_out = screen.watching(|| count.words(), copying).await?;
    let (files, bytes) = count.taken();
    if output.json.is_some() {
        let copied =
            json!({ "type": "copied", "files": files, "bytes": bytes, "left_out": left_out });
        show::line(&copied)?;
    } else {
        show::not_copied(&left_out).into_iter().for_each(|text| screen.note(Tone::Warning, text));
        let text = format!("copied {}, {bytes} bytes", show::count(files, "file"));
        screen.note(Tone::Detail, text);
    }
    Ok(0)
}

/// What a file error means for the one who typed.
pub(super) fn file_failed(error: &FileError) -> Failure {
    let kind = match error.kind {
        FileErrorKind::FileNotFound => Kind::NotFound,
        FileErrorKind::Conflict | FileErrorKind::AlreadyExists => Kind::Conflict,
        FileErrorKind::NoSpace | FileErrorKind::Io => Kind::Storage,
        FileErrorKind::PermissionDenied => Kind::Denied,
        _ => Kind::Usage,
    };
    Failure::from_error(kind, error)
}

/// What is at a path in the sandbox, if anything is.
async fn found(sandbox: &dyn Sandbox, path: &str) -> Outcome<Option<ListEntry>> {
    match sandbox.files(FileOp::Stat { path: path.to_owned() }).await {
        Ok(FileReply::Entry(entry)) => Ok(Some(entry)),
        Err(Error::File(error)) if error.kind == FileErrorKind::FileNotFound => Ok(None),
        Err(error) => Err(failed(&error)),
        Ok(_) => Err(astray()),
    }
}

/// Gives the pieces of a file in the sandbox to somebody, in order.
async fn each_piece(
    sandbox: &dyn Sandbox,
    from: &str,
    count: &Count,
    mut put: impl FnMut(&[u8]) -> Outcome,
) -> Outcome {
    let mut offset = 0;
    loop {
        let (path, bytes_max) = (from.to_owned(), door::FILE_CHUNK_BYTES_MAX);
        let reply = sandbox.files(FileOp::Read { path, offset, bytes_max }).await;
        let (bytes, total) = match reply {
            Ok(FileReply::Bytes { bytes, total_bytes }) => (bytes, total_bytes),
            Ok(_) => return Err(astray()),
            Err(Error::File(error)) if error.kind == FileErrorKind::IsDirectory => {
                let text = format!("{from} is a link to a directory");
                return Err(Failure::new(Kind::Usage, text).hint("Name the directory itself."));
            }
            Err(error) => return Err(failed(&error)),
        };
        put(&bytes)?;
        offset += bytes.len() as u64;
        count.piece(bytes.len());
        if bytes.is_empty() || offset >= total {
            count.file();
            return Ok(());
        }
    }
}

fn astray() -> Failure {
    Failure::new(Kind::SandboxUnavailable, "the sandbox's answer is not one to what was asked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_here_or_there() {
        let there = |sandbox: &str, path: &str| Side::There {
            sandbox: sandbox.to_owned(),
            path: path.to_owned(),
        };
        for (text, expected) in [
            ("notes.txt", Side::Here("notes.txt".into())),
            ("./a:b", Side::Here("./a:b".into())),
            ("/tmp/a:b", Side::Here("/tmp/a:b".into())),
            (":b", Side::Here(":b".into())),
            ("-", Side::Stream),
            ("./-", Side::Here("./-".into())),
            ("work:docs/", there("work", "docs/")),
            ("work:", there("work", ".")),
            ("work:-", there("work", "-")),
            ("work:a:b", there("work", "a:b")),
        ] {
            assert_eq!(Side::parse(text), expected, "{text}");
        }
    }
}
