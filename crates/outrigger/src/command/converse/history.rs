//! What a person wrote in conversations, in a file of the data directory: one JSON string a line,
//! because it may have lines itself. It is a convenience: what can't be read or written is not
//! missed.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::limits;
use crate::paths::Paths;

fn file(paths: &Paths) -> PathBuf {
    paths.harness().join("history")
}

/// What was written before, the oldest first.
pub(super) fn read(paths: &Paths) -> Vec<String> {
    let text = std::fs::read_to_string(file(paths)).unwrap_or_default();
    let all: Vec<String> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let old = all.len().saturating_sub(limits::HISTORY_LINES_MAX);
    if old > limits::HISTORY_LINES_MAX {
        // In place of the file, whole: another conversation may be reading it.
        let kept: String = all[old..].iter().map(|text| line(text)).collect();
        let beside = file(paths).with_extension(std::process::id().to_string());
        let written = std::fs::write(&beside, kept);
        drop(written.and_then(|()| std::fs::rename(&beside, file(paths))));
    }
    all[old..].to_vec()
}

/// Something was written.
pub(super) fn add(paths: &Paths, text: &str) {
    if paths.prepare().is_err() {
        return;
    }
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(file(paths));
    drop(opened.and_then(|mut file| file.write_all(line(text).as_bytes())));
}

fn line(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string() + "\n"
}
