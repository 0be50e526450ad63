//! What a change of a file would make of it, before it is made: for who is to approve it.
//!
//! Owns that what was looked at is what gets changed: the file as it was found is named
//! by its digest, and a call that was approved changes no other.

use outrigger_agent::{Digest, FileBaseline, Status, ToolOutput};
use outrigger_sandbox::{
    Error, FileError, FileErrorKind, FileOp, FileReply, Occurrences, limits as door, text,
};

use crate::arguments::Arguments;
use crate::call::Invocation;
use crate::catalogue::ToolName;
use crate::namespace::Namespace;
use crate::output;

/// A file before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The file, as the call names it.
    pub path: String,
    /// Its content, if there is such a file.
    pub before: Option<Vec<u8>>,
    /// What it would be.
    pub after: Vec<u8>,
}

impl Preview {
    /// What the approval of it is bound to.
    #[must_use]
    pub fn seen(&self) -> FileBaseline {
        match &self.before {
            Some(bytes) => FileBaseline::File(Digest::of(bytes)),
            None => FileBaseline::Absent,
        }
    }
}

/// What a call would make of a file. Nothing for a call that changes none, or that
/// would fail as the file is now.
///
/// # Errors
/// What is wrong with the sandbox, not with the call.
pub async fn preview(
    call: &Invocation<'_>,
    namespace: &Namespace,
) -> Result<Option<Preview>, Error> {
    let Ok((tool, arguments)) = call.parsed.checked() else { return Ok(None) };
    let changes = matches!(tool.name, ToolName::WriteFile | ToolName::EditFile);
    if !changes {
        return Ok(None);
    }
    let path = arguments.required("file_path").to_owned();
    let before = match whole(&path, namespace).await {
        Ok(bytes) => Some(bytes),
        Err(Error::File(error)) if error.kind == FileErrorKind::FileNotFound => None,
        Err(Error::File(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let after = match (tool.name, &before) {
        (ToolName::EditFile, Some(before)) => {
            let (old, new) = (arguments.required("old_string"), arguments.required("new_string"));
            let all = arguments.flag("replace_all");
            let places = if all { Occurrences::All } else { Occurrences::One };
            let edited = text::edit(&path, before, old.as_bytes(), new.as_bytes(), places);
            edited.ok().map(|(bytes, _)| bytes)
        }
        (ToolName::EditFile, None) => None,
        _ => Some(arguments.required("content").as_bytes().to_vec()),
    };
    Ok(after.map(|after| Preview { path, before, after }))
}

async fn whole(path: &str, namespace: &Namespace) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    loop {
        let bytes_max = door::FILE_CHUNK_BYTES_MAX;
        let (path, offset) = (path.to_owned(), bytes.len() as u64);
        let read = FileOp::Read { path: path.clone(), offset, bytes_max };
        let FileReply::Bytes { bytes: piece, .. } = namespace.files(read).await? else {
            return Err(output::mismatched("read"));
        };
        if piece.is_empty() {
            return Ok(bytes);
        }
        bytes.extend(piece);
        if bytes.len() as u64 > door::EDIT_FILE_BYTES_MAX {
            let detail = "the file is too large to be shown".to_owned();
            return Err(FileError { kind: FileErrorKind::TooLarge, path, detail }.into());
        }
    }
}

/// Whether an approved call failed because the file is not the one that was looked at.
pub(crate) fn is_change(error: &FileError) -> bool {
    use FileErrorKind::{AlreadyExists, Conflict, FileNotFound};
    matches!(error.kind, AlreadyExists | Conflict | FileNotFound)
}

/// What the model is told then.
pub(crate) fn changed(arguments: &Arguments) -> ToolOutput {
    let path = arguments.required("file_path");
    let text = format!(
        "Not performed: {path} changed after a person approved this change of it. Read it \
         again, and ask again if the change is still wanted."
    );
    ToolOutput { status: Status::Denied, ..output::error(text) }
}
