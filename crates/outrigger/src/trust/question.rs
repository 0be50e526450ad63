//! A file of a repository, put to whoever sits at the terminal.
//!
//! Owns that all of it can be looked at before it is trusted, with what nobody sees written out,
//! and that nothing that was typed before is an answer.

use std::time::Duration;

use super::record::TrustAnswer;
use super::standing::{JudgedFile, Standing};
use crate::config::mcp_json;
use crate::exit::Outcome;
use crate::image::devcontainer;
use crate::limits;
use crate::project_file::Purpose;
use crate::show::amounts::size;
use crate::show::{Screen, Tone, count, escaped, file_text, inert};

/// The keys.
const CHOICES: &str = "  y trust it as it is · n not now · s show it";

/// Asks. Nothing if nobody answers.
pub(super) async fn ask(judged: &JudgedFile, screen: &Screen) -> Outcome<Option<TrustAnswer>> {
    screen.forget_lines().await;
    screen.note(Tone::Warning, format!("? {}", title(judged)));
    for line in effects(judged) {
        screen.note(Tone::Plain, format!("  {line}"));
    }
    loop {
        screen.note(Tone::Strong, CHOICES);
        let patience = Duration::from_millis(limits::QUESTION_MS_MAX);
        let Ok(typed) = tokio::time::timeout(patience, screen.line()).await else {
            return Ok(None);
        };
        let Some(line) = typed? else { return Ok(None) };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(TrustAnswer::Trusted)),
            "n" | "no" => return Ok(Some(TrustAnswer::Declined)),
            "s" | "show" => show(judged, screen),
            _ => {}
        }
    }
}

/// In a line: what it is, and what it would do.
fn title(judged: &JudgedFile) -> String {
    let file = &judged.file;
    let (name, bytes) = (inert(&file.name), size(file.text.len() as u64));
    let lines = count(file.text.lines().count() as u64, "line");
    let how = match judged.standing {
        Standing::Changed => "changed since it was trusted",
        _ => "is new here",
    };
    let what = match file.purpose {
        Purpose::Guide => {
            "Trusted, it guides the agent; otherwise it is only data, and marks the session as untrusted"
        }
        Purpose::Servers => {
            "Trusted, sessions here have the tools of these servers; otherwise they have not"
        }
        Purpose::Image => "Trusted, sandboxes are made as it says; otherwise nothing is made of it",
    };
    format!("{name} {how}: {lines}, {bytes}. {what}")
}

/// What it would do, if that is more than to be read.
pub(crate) fn effects(judged: &JudgedFile) -> Vec<String> {
    match judged.file.purpose {
        Purpose::Guide => Vec::new(),
        Purpose::Servers => {
            mcp_json::described(&judged.file.text).iter().map(|line| escaped(line)).collect()
        }
        Purpose::Image => {
            let lines = devcontainer::described(&judged.file.name, &judged.file.text);
            lines.iter().map(|line| escaped(line)).collect()
        }
    }
}

/// What changed, or all of it.
fn show(judged: &JudgedFile, screen: &Screen) {
    match changes(judged) {
        Some(diff) => screen.whole_diff(&diff),
        None => {
            for line in lines(judged) {
                screen.note(Tone::Plain, format!("  {line}"));
            }
        }
    }
}

/// What differs from what was trusted; nothing where a line is too long to be shown whole.
fn changes(judged: &JudgedFile) -> Option<String> {
    let (name, before) = (inert(&judged.file.name), judged.before.as_ref()?);
    let long = |line: &str| line.chars().count() >= limits::DIFF_LINE_CHARS_MAX;
    if judged.file.text.lines().chain(before.lines()).any(long) {
        return None;
    }
    let after = judged.file.text.as_bytes();
    let diff = outrigger_repository::one_file(&name, Some(before.as_bytes()), after);
    Some(String::from_utf8_lossy(&diff).into_owned())
}

/// All of a file, line by line.
pub(crate) fn lines(judged: &JudgedFile) -> Vec<String> {
    file_text(&judged.file.text)
}
