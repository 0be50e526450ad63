//! What a call gave, in the words that the model reads.

use outrigger_agent::{Status, ToolOutput};
use outrigger_sandbox::{Error, FileError, FileErrorKind};

use crate::catalogue::ToolName;
use crate::limits;

/// An output that says what went well.
pub(crate) fn ok(text: String) -> ToolOutput {
    ToolOutput::new(Status::Ok, text)
}

/// An output that says what failed and what to change.
pub(crate) fn error(text: String) -> ToolOutput {
    ToolOutput::new(Status::Error, text)
}

/// What the model is told of an error that is its to act on.
///
/// # Errors
/// The error itself, if its meaning is the engine's to say.
pub(crate) fn failure(tool: ToolName, failed: Error) -> Result<ToolOutput, Error> {
    match failed {
        Error::File(failed) => Ok(error(file_failure(tool, &failed))),
        Error::Invalid(_) | Error::CannotStart { .. } | Error::Unsupported { .. } => {
            Ok(error(format!("Not done: {failed}.")))
        }
        Error::Forgotten { .. }
        | Error::Lost { .. }
        | Error::Busy { .. }
        | Error::Absent { .. }
        | Error::Altered { .. }
        | Error::Unavailable { .. }
        | Error::Backend(_) => Err(failed),
    }
}

fn file_failure(tool: ToolName, failed: &FileError) -> String {
    let hint = match (failed.kind, tool) {
        (FileErrorKind::FileNotFound, ToolName::ReadFile | ToolName::Ls) => {
            " Find out what there is with ls or glob."
        }
        (FileErrorKind::FileNotFound, ToolName::EditFile) => {
            " edit_file changes files that are there; make a new one with write_file."
        }
        (FileErrorKind::IsDirectory, ToolName::ReadFile) => " List it with ls.",
        (FileErrorKind::NotADirectory, ToolName::Ls) => " Read a file with read_file.",
        (FileErrorKind::InvalidArgument, ToolName::Grep) => {
            " To search for plain text, set `literal` to true."
        }
        _ => "",
    };
    // Paths and details can hold what was in a file's name: no control gets through.
    let shown = crate::cut::plain(failed.to_string().as_bytes());
    format!("{shown}.{hint}")
}

/// Lines that fit into a listing, each with its line break, and how many did not.
pub(crate) fn listing(lines: impl Iterator<Item = String>) -> (String, usize) {
    let mut text = String::new();
    let mut left_out = 0;
    for line in lines {
        let fits = left_out == 0 && text.len() + line.len() < limits::LISTING_BYTES_MAX;
        if fits {
            text.push_str(&line);
            text.push('\n');
        } else {
            left_out += 1;
        }
    }
    (text, left_out)
}

/// A reply of another operation than the one that was asked for: a backend's fault.
pub(crate) fn mismatched(asked: &str) -> Error {
    Error::Backend(format!("the sandbox answered `{asked}` with the reply to something else"))
}
