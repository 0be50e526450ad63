//! `outrigger sandbox cp`: files into and out of a sandbox.
//!
//! Owns which side is which, and the count of what went over. Files go as bytes
//! through the sandbox's own door: nothing on the host walks a sandbox's disk.

pub(crate) mod count;
pub(crate) mod down;
mod stat;
pub(crate) mod target;
pub(crate) mod up;

use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::context::SandboxContext;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::show::{self, Screen, Tone};
use count::Count;

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

/// Where sandboxes are that files are copied into and out of. What was left out is given.
pub(crate) trait FileHost {
    /// A file or a directory into a sandbox.
    async fn send(&self, from: &Path, to: (&str, &str), count: &Arc<Count>)
    -> Outcome<Vec<String>>;

    /// Standard input into a file of a sandbox.
    async fn send_input(&self, to: (&str, &str), count: &Arc<Count>) -> Outcome;

    /// A file or a directory out of a sandbox.
    async fn fetch(
        &self,
        from: (&str, &str),
        to: &Path,
        count: &Arc<Count>,
    ) -> Outcome<Vec<String>>;

    /// A file of a sandbox to standard output.
    async fn fetch_output(&self, from: (&str, &str), count: &Arc<Count>) -> Outcome;
}

impl FileHost for SandboxContext {
    async fn send(
        &self,
        from: &Path,
        (name, path): (&str, &str),
        count: &Arc<Count>,
    ) -> Outcome<Vec<String>> {
        up::copy(self.existing(name).await?, from, path, count).await
    }

    async fn send_input(&self, (name, path): (&str, &str), count: &Arc<Count>) -> Outcome {
        up::copy_input(&*self.existing(name).await?, path, count).await
    }

    async fn fetch(
        &self,
        (name, path): (&str, &str),
        to: &Path,
        count: &Arc<Count>,
    ) -> Outcome<Vec<String>> {
        down::copy(self.existing(name).await?, path, to, count).await
    }

    async fn fetch_output(&self, (name, path): (&str, &str), count: &Arc<Count>) -> Outcome {
        down::copy_output(&*self.existing(name).await?, path, count).await
    }
}

pub(crate) async fn execute(
    host: &impl FileHost,
    from: &str,
    to: &str,
    output: Output,
) -> Outcome<u8> {
    let mut screen = Screen::new(output);
    let count = Arc::new(Count::default());
    let copying = async {
        match (Side::parse(from), Side::parse(to)) {
            (Side::Here(from), Side::There { sandbox, path }) => {
                host.send(&from, (&sandbox, &path), &count).await
            }
            (Side::Stream, Side::There { sandbox, path }) => {
                host.send_input((&sandbox, &path), &count).await.map(|()| Vec::new())
            }
            (Side::There { sandbox, path }, Side::Here(to)) => {
                host.fetch((&sandbox, &path), &to, &count).await
            }
            (Side::There { .. }, Side::Stream) if output.json.is_some() => {
                let text = "standard output can't have a file and JSON";
                Err(Failure::new(Kind::Usage, text).hint("Name a file, or leave --json away."))
            }
            (Side::There { sandbox, path }, Side::Stream) => {
                host.fetch_output((&sandbox, &path), &count).await.map(|()| Vec::new())
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
