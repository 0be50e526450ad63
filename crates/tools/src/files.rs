//! `ls`, `read_file`, `write_file` and `edit_file`.

use outrigger_agent::{FileBaseline, ToolOutput};
use outrigger_sandbox::{
    ContentDigest, EntryKind, Error, ExecId, FileOp, FileReply, Lines, ListEntry, Occurrences,
    Precondition, WriteMode, limits as door,
};

use crate::arguments::Arguments;
use crate::call::Invocation;
use crate::namespace::Namespace;
use crate::{cut, limits, output};

/// Lists a directory.
pub(crate) async fn ls(arguments: &Arguments, namespace: &Namespace) -> Result<ToolOutput, Error> {
    let path = arguments.required("path").to_owned();
    let op = FileOp::List { path: path.clone(), entries_max: limits::PATHS_MAX };
    let FileReply::Entries { entries, truncated } = namespace.files(op).await? else {
        return Err(output::mismatched("list"));
    };
    if entries.is_empty() {
        return Ok(output::ok(format!("({path} is empty)")));
    }
    let count = entries.len();
    let (mut text, left_out) = output::listing(entries.iter().map(entry));
    if truncated || left_out > 0 {
        let shown = count - left_out;
        text.push_str(&format!("[only the first {shown} are shown; look closer with glob]\n"));
    }
    Ok(output::ok(text.trim_end_matches('\n').to_owned()))
}

fn entry(entry: &ListEntry) -> String {
    let name = cut::name(entry.name.as_bytes(), limits::LINE_CHARS_MAX);
    let bytes = entry.bytes;
    match (entry.kind, entry.executable) {
        (EntryKind::Directory, _) => format!("{name}/"),
        (EntryKind::Link, _) => format!("{name}@"),
        (EntryKind::File, true) => format!("{name}*  {bytes}"),
        (EntryKind::File, false) => format!("{name}  {bytes}"),
        (EntryKind::Other, _) => format!("{name}  (no regular file)"),
    }
}

/// Reads lines of a file.
pub(crate) async fn read_file(
    arguments: &Arguments,
    namespace: &Namespace,
) -> Result<ToolOutput, Error> {
    let path = arguments.required("file_path").to_owned();
    let first = arguments.integer("offset").unwrap_or(1).max(1);
    let lines_max = arguments.integer("limit").unwrap_or(limits::READ_LINES_MAX);
    let op = FileOp::ReadLines {
        path: path.clone(),
        first,
        lines_max,
        bytes_max: limits::FETCH_BYTES_MAX,
    };
    let FileReply::Lines(lines) = namespace.files(op).await? else {
        return Err(output::mismatched("read lines"));
    };
    if lines.text.contains(&0) {
        return Ok(output::error(format!(
            "{path} is a binary file, and read_file shows text only. Look at it with a program, \
             for example `file`, `xxd` or `strings`, through execute."
        )));
    }
    if lines.count == 0 {
        return Ok(match lines.total {
            Some(0) => output::ok(format!("({path} is empty)")),
            Some(total) => {
                let plural = if total == 1 { "line" } else { "lines" };
                output::error(format!(
                    "{path} has {total} {plural}, so there is nothing from line {first} on. Give \
                     an `offset` of 1 to {total}."
                ))
            }
            None => output::error(format!("{path} has no line {first}.")),
        });
    }
    Ok(numbered(&path, &lines))
}

/// Lines as `cat -n` shows them, with notes on what is not shown.
fn numbered(path: &str, lines: &Lines) -> ToolOutput {
    let mut text = String::new();
    let mut hidden = 0;
    let mut cut_lines = Vec::new();
    let mut next = lines.first;
    for line in lines.text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (shown, cut_bytes) = cut::line(line, limits::LINE_CHARS_MAX);
        let row = format!("{next:>6}\t{shown}\n");
        if text.len() + row.len() > limits::READ_BYTES_MAX {
            break;
        }
        text.push_str(&row);
        if cut_bytes > 0 {
            cut_lines.push(next);
            hidden += cut_bytes as u64;
        }
        next += 1;
    }
    let last = next - 1;
    if let [first, ..] = cut_lines.as_slice() {
        let (count, max) = (cut_lines.len(), limits::LINE_CHARS_MAX);
        // The sandbox cuts much longer lines itself, and does not say by how much.
        let least = if lines.cut_lines > 0 { " or more" } else { "" };
        text.push_str(&format!(
            "[lines are cut after {max} characters: {count} here, the first is line {first}; \
             {hidden} bytes{least} are hidden; see them with execute: `cut -c{}- {path}`]\n",
            max + 1
        ));
    }
    let crlf = lines.text.windows(2).filter(|pair| pair == b"\r\n").count();
    if crlf > 0 {
        let all = lines.text.iter().filter(|byte| **byte == b'\n').count();
        text.push_str(if crlf == all {
            "[lines end in CRLF]\n"
        } else {
            "[some lines end in CRLF]\n"
        });
    }
    if lines.cut_lines == 0 && std::str::from_utf8(&lines.text).is_err() {
        text.push_str("[bytes that are no UTF-8 are shown as \u{fffd}]\n");
    }
    if lines.total.is_none_or(|total| last < total) {
        let total = lines.total.map_or_else(|| "many".to_owned(), |total| total.to_string());
        let first = lines.first;
        text.push_str(&format!(
            "[lines {first} to {last} of {total}; read on with offset {next}]\n"
        ));
    }
    text.truncate(text.trim_end_matches('\n').len());
    ToolOutput { hidden_bytes: hidden, ..output::ok(text) }
}

/// Writes a file whole, in pieces whose ids are made from the call's.
pub(crate) async fn write_file(
    arguments: &Arguments,
    call: &Invocation<'_>,
    namespace: &Namespace,
) -> Result<ToolOutput, Error> {
    let path = arguments.required("file_path");
    let content = arguments.required("content").as_bytes();
    let piece_bytes = usize::try_from(door::FILE_CHUNK_BYTES_MAX).unwrap_or(usize::MAX);
    let mut pieces = content.chunks(piece_bytes).enumerate();
    let mut replaced = false;
    let first = pieces.next().unwrap_or_default();
    for (number, piece) in std::iter::once(first).chain(pieces) {
        let mode = match (number, call.seen) {
            (0, Some(FileBaseline::Absent)) => WriteMode::Create,
            (0, Some(FileBaseline::File(_)) | None) => WriteMode::Replace,
            _ => WriteMode::Append,
        };
        let op = FileOp::Write {
            id: part(&call.exec, number)?,
            path: path.to_owned(),
            contents: piece.to_vec(),
            mode,
            executable: None,
            modified_ns: None,
            precondition: if number == 0 { demanded(call) } else { Precondition::None },
        };
        match namespace.files(op).await? {
            FileReply::Written { replaced: was_there, .. } if number == 0 => replaced = was_there,
            FileReply::Written { .. } => {}
            _ => return Err(output::mismatched("write")),
        }
    }
    let (bytes, lines) = (content.len(), content.split_inclusive(|byte| *byte == b'\n').count());
    let did = if replaced { "Replaced" } else { "Made" };
    let plural = if lines == 1 { "line" } else { "lines" };
    Ok(output::ok(format!("{did} {path}: {lines} {plural}, {bytes} bytes.")))
}

/// That the file is as a person saw it who approved the call.
fn demanded(call: &Invocation<'_>) -> Precondition {
    match call.seen {
        Some(FileBaseline::File(digest)) => Precondition::Digest(ContentDigest(digest.to_sha256())),
        Some(FileBaseline::Absent) | None => Precondition::None,
    }
}

/// The id of one piece of a call: the call's own for the first.
fn part(exec: &ExecId, number: usize) -> Result<ExecId, Error> {
    match number {
        0 => Ok(exec.clone()),
        _ => ExecId::new(format!("{exec}.{number}"))
            .map_err(|invalid| Error::Invalid(invalid.to_string())),
    }
}

/// Replaces text in a file.
pub(crate) async fn edit_file(
    arguments: &Arguments,
    call: &Invocation<'_>,
    namespace: &Namespace,
) -> Result<ToolOutput, Error> {
    let path = arguments.required("file_path");
    let (old, new) = (arguments.required("old_string"), arguments.required("new_string"));
    if old == new {
        return Ok(output::error(
            "`old_string` and `new_string` are the same: nothing would change.".to_owned(),
        ));
    }
    let all = arguments.flag("replace_all");
    let op = FileOp::Edit {
        id: call.exec.clone(),
        path: path.to_owned(),
        old: old.as_bytes().to_vec(),
        new: new.as_bytes().to_vec(),
        occurrences: if all { Occurrences::All } else { Occurrences::One },
        precondition: demanded(call),
    };
    let FileReply::Edited(edited) = namespace.files(op).await? else {
        return Err(output::mismatched("edit"));
    };
    let line = edited.first_line;
    Ok(output::ok(match edited.replaced {
        1 => format!("Edited {path} at line {line}."),
        count => format!("Edited {path} at {count} places, the first at line {line}."),
    }))
}
