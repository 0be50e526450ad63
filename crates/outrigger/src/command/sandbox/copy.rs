//! `outrigger sandbox cp`: files into and out of a sandbox.
//!
//! Owns which side is which, and the count of what went over. Files go as bytes
//! through the sandbox's own door: nothing on the host walks a sandbox's disk.

mod count;
mod down;
mod stat;
mod up;

use serde_json::json;
use std::path::PathBuf;
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

pub(super) async fn execute(
    sandboxes: &SandboxContext,
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
