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

use super::context::MemoryContext;
use super::print::print_proposed;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::session::now_ms;
use crate::show::{Screen, Tone, word};

/// Between the two texts of a conflict, as in git(1).
const OURS: &str = "<<<<<<< yours\n";
const MIDDLE: &str = "=======\n";
const THEIRS: &str = ">>>>>>> what is there now\n";

/// A file that is edited, wherever it is.
pub(crate) trait EditedFile {
    /// As sessions see it.
    fn path(&self) -> String;

    /// Which revision is there, 0 where nothing is, and what it says.
    async fn current(&self) -> Outcome<(u64, Vec<u8>)>;

    /// Puts a text in the place of that revision.
    async fn write(&self, base: u64, text: Vec<u8>, message: Option<String>) -> Outcome<Written>;
}

/// What became of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is this revision.
    Revision(u64),
    /// Somebody else has to accept it.
    Proposed(u64),
    /// It stands otherwise by now.
    Conflict,
}

/// Opens a file until what comes of it is written, or nothing was changed. `keys`: the variables
/// that hold keys, which are nobody's whom we start.
pub(crate) async fn edit(
    edited: &impl EditedFile,
    (message, keys): (Option<String>, &BTreeSet<String>),
    output: Output,
) -> Outcome {
    let (path, screen) = (edited.path(), Screen::new(output));
    let editor = editor(&path)?;
    let (mut base, mut text) = edited.current().await?;
    let folder = tempfile::tempdir().map_err(|error| Failure::from_error(Kind::Storage, &error))?;
    // The name tells an editor what kind of text it is.
    let file = folder.path().join(path.rsplit('/').next().unwrap_or("memory"));
    loop {
        write(&file, &text)?;
        open(&editor, &file, keys)?;
        let now = fs::read(&file).map_err(|error| Failure::from_error(Kind::Storage, &error))?;
        if now == text {
            screen.note(Tone::Detail, "nothing was changed");
            return Ok(());
        }
        match edited.write(base, now.clone(), message.clone()).await {
            Ok(Written::Revision(revision)) => {
                screen.note(Tone::Good, format!("● {path} is at revision {revision}"));
                return Ok(());
            }
            Ok(Written::Proposed(number)) => return print_proposed(number, &path, output),
            Ok(Written::Conflict) => {
                let kept = keep(&file, &path)?;
                let (newest, theirs) = edited.current().await?;
                if !std::io::stdin().is_terminal() {
                    let text = format!("{path} was changed meanwhile");
                    return Err(Failure::new(Kind::Conflict, text)
                        .hint(format!("What you wrote is in {kept}.")));
                }
                let note = format!(
                    "! {path} was changed meanwhile: bring both together (yours is also in {kept})"
                );
                screen.note(Tone::Warning, note);
                (base, text) = (newest, both(&now, &theirs));
            }
            Err(failure) => {
                let kept = keep(&file, &path)?;
                return Err(failure.hint(format!("What you wrote is in {kept}.")));
            }
        }
    }
}

/// A file of this machine's store.
pub(super) struct OwnFile<'a> {
    pub(super) memory: &'a MemoryContext,
    pub(super) at: EntryAddress,
}

impl EditedFile for OwnFile<'_> {
    fn path(&self) -> String {
        path_of(&self.at)
    }

    async fn current(&self) -> Outcome<(u64, Vec<u8>)> {
        match self.memory.entries.read(&self.memory.scope, &self.at, None).await {
            Ok(read) => Ok((read.version.revision, read.bytes)),
            Err(Error::Absent) => Ok((0, Vec::new())),
            Err(error) => Err(self.memory.failed(&self.at, error)),
        }
    }

    async fn write(&self, base: u64, text: Vec<u8>, message: Option<String>) -> Outcome<Written> {
        let Self { memory, at } = self;
        let expected = match base {
            0 => EntryPrecondition::Absent,
            revision => EntryPrecondition::Revision(revision),
        };
        // A program stays one when its text is another.
        let before = memory.entries.stat(&memory.scope, at).await;
        let executable = before.is_ok_and(|before| before.executable);
        let file = EntryFile { executable, ..EntryFile::of(text) };
        let by = Attribution { message, ..Attribution::person(now_ms()) };
        let change = ChangeRequest::Write { at: at.clone(), expected, file };
        match memory.submit(change, by).await {
            Ok(Submission::Proposed(id)) => Ok(Written::Proposed(id.0)),
            Ok(Submission::Changed(made)) => {
                Ok(Written::Revision(made.version().map_or(0, |version| version.revision)))
            }
            Err(Error::Conflict(_) | Error::Exists) => Ok(Written::Conflict),
            Err(error) => Err(memory.failed(at, error)),
        }
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
fn keep(file: &Path, path: &str) -> Outcome<String> {
    let name = path.replace('/', "-");
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
        .arg("eval \"exec $OUTRIGGER_EDITOR \\\"\\$1\\\"\"")
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
