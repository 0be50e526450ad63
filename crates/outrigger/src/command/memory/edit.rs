//! `outrigger memory edit`: a file in an editor, and what to do if it moved meanwhile.

use outrigger_engine::path_of;
use outrigger_store::entries::{
    Attribution, ChangeRequest, EntryAddress, EntryFile, EntryPrecondition, Error, Submission,
};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::process::Command;

use super::change::tell_proposed;
use super::context::MemoryContext;
use crate::exit::{Failure, Kind, Outcome};
use crate::session::now_ms;
use crate::show::{Tone, word};

/// Between the two texts of a conflict, as in git(1).
const OURS: &str = "<<<<<<< yours\n";
const MIDDLE: &str = "=======\n";
const THEIRS: &str = ">>>>>>> what is there now\n";

/// Opens a file until what comes of it is written, or nothing was changed.
pub(super) async fn edit(memory: &MemoryContext, path: &str, message: Option<String>) -> Outcome {
    let at = memory.place(path)?;
    let editor = editor(path)?;
    let (mut base, mut text) = current(memory, &at).await?;
    // A program stays one when its text is another.
    let before = memory.entries.stat(&memory.scope, &at).await;
    let executable = before.is_ok_and(|before| before.executable);
    let folder = tempfile::tempdir().map_err(|error| Failure::from_error(Kind::Storage, &error))?;
    // The name tells an editor what kind of text it is.
    let name = if at.path.name().is_empty() { "memory" } else { at.path.name() };
    let file = folder.path().join(name);
    loop {
        write(&file, &text)?;
        open(&editor, &file, &memory.keys)?;
        let edited = fs::read(&file).map_err(|error| Failure::from_error(Kind::Storage, &error))?;
        if edited == text {
            memory.screen.note(Tone::Detail, "nothing was changed");
            return Ok(());
        }
        let by = Attribution { message: message.clone(), ..Attribution::person(now_ms()) };
        let change = ChangeRequest::Write {
            at: at.clone(),
            expected: base,
            file: EntryFile { executable, ..EntryFile::of(edited.clone()) },
        };
        match memory.submit(change, by).await {
            Err(Error::Conflict(_) | Error::Exists) => {
                let kept = keep(&file, &at)?;
                let (now, theirs) = current(memory, &at).await?;
                if !std::io::stdin().is_terminal() {
                    let text = format!("{} was changed meanwhile", path_of(&at));
                    return Err(Failure::new(Kind::Conflict, text)
                        .hint(format!("What you wrote is in {kept}.")));
                }
                let note = format!(
                    "! {} was changed meanwhile: bring both together (yours is also in {kept})",
                    path_of(&at)
                );
                memory.screen.note(Tone::Warning, note);
                (base, text) = (now, both(&edited, &theirs));
            }
            Err(error) => {
                let kept = keep(&file, &at)?;
                return Err(memory
                    .failed(&at, error)
                    .hint(format!("What you wrote is in {kept}.")));
            }
            Ok(Submission::Proposed(id)) => return tell_proposed(memory, &at, id),
            Ok(Submission::Changed(made)) => {
                let revision = made.version().map_or(0, |version| version.revision);
                let said = format!("● {} is at revision {revision}", path_of(&at));
                memory.screen.note(Tone::Good, said);
                return Ok(());
            }
        }
    }
}

/// What is there, and what a change of it expects.
async fn current(
    memory: &MemoryContext,
    at: &EntryAddress,
) -> Outcome<(EntryPrecondition, Vec<u8>)> {
    match memory.entries.read(&memory.scope, at, None).await {
        Ok(read) => Ok((EntryPrecondition::Revision(read.version.revision), read.bytes)),
        Err(Error::Absent) => Ok((EntryPrecondition::Absent, Vec::new())),
        Err(error) => Err(memory.failed(at, error)),
    }
}

fn both(ours: &[u8], theirs: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for (mark, part) in [(OURS, ours), (MIDDLE, theirs)] {
        text.extend_from_slice(mark.as_bytes());
        text.extend_from_slice(part);
        if !part.ends_with(b"\n") && !part.is_empty() {
            text.push(b'\n');
        }
    }
    text.extend_from_slice(THEIRS.as_bytes());
    text
}

fn write(file: &Path, text: &[u8]) -> Outcome {
    fs::write(file, text).map_err(|error| Failure::from_error(Kind::Storage, &error))
}

/// Keeps what somebody wrote where they find it again.
fn keep(file: &Path, at: &EntryAddress) -> Outcome<String> {
    let name = path_of(at).replace('/', "-");
    let kept =
        tempfile::Builder::new().prefix(&format!("outrigger{name}-")).tempfile().and_then(|kept| {
            fs::copy(file, kept.path())?;
            kept.keep().map_err(|failed| failed.error)
        });
    let (_, path) = kept.map_err(|error| Failure::from_error(Kind::Storage, &error))?;
    Ok(path.display().to_string())
}

/// The editor that a person chose, or the usual one, which needs a terminal.
fn editor(path: &str) -> Outcome<OsString> {
    let set = |name| std::env::var_os(name).filter(|editor| !editor.is_empty());
    if let Some(editor) = ["VISUAL", "EDITOR"].into_iter().find_map(set) {
        return Ok(editor);
    }
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok("vi".into());
    }
    Err(Failure::new(Kind::Usage, "there is no terminal to edit on, and EDITOR is not set")
        .hint(format!("`outrigger memory put {} FILE` writes it without an editor.", word(path)))
        .hint("Or set EDITOR to a program that changes the file it is given."))
}

/// Opens the editor, which gets no key of ours, and waits for it.
fn open(editor: &OsStr, file: &Path, keys: &BTreeSet<String>) -> Outcome {
    // It may come with arguments: a shell takes them apart, as git(1) has it done.
    let mut shell = Command::new("/bin/sh");
    for variable in keys {
        shell.env_remove(variable);
    }
    let status = shell
        .arg("-c")
        .arg("exec $OUTRIGGER_EDITOR \"$1\"")
        .arg("sh")
        .arg(file)
        .env("OUTRIGGER_EDITOR", editor)
        .status();
    let editor = editor.to_string_lossy();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let text = format!("the editor `{editor}` ended with {status}; nothing was written");
            Err(Failure::new(Kind::Usage, text))
        }
        Err(error) => Err(Failure::new(Kind::Usage, format!("`{editor}`: {error}"))
            .hint("Set EDITOR to an editor that is there.")),
    }
}
