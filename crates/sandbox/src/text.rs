//! What file operations do to bytes, apart from any file system: replacing text,
//! cutting out lines, and searching.
//!
//! Every backend uses these functions, so that the same operation gives the same
//! answer and the same words of complaint everywhere. They must never touch a
//! file, a clock or the environment.

use sha2::{Digest as _, Sha256};

use crate::{ContentDigest, EditReport, FileError, FileErrorKind, Lines, Occurrences, limits};

mod search;

pub use search::{Glob, GrepMatcher, SkipList, is_binary};

/// SHA-256 of some bytes.
#[must_use]
pub fn digest(bytes: &[u8]) -> ContentDigest {
    ContentDigest(Sha256::digest(bytes).into())
}

/// A path that no backend accepts: empty, with a NUL byte, or too long.
///
/// # Errors
/// `invalid_path`, saying which of these it is.
pub fn check_path(path: &str) -> Result<(), FileError> {
    let detail = if path.is_empty() {
        "the path is empty".to_owned()
    } else if path.contains('\0') {
        "the path has a NUL byte".to_owned()
    } else if path.len() > limits::PATH_BYTES_MAX {
        format!("the path has {} bytes; {} is the most", path.len(), limits::PATH_BYTES_MAX)
    } else {
        return Ok(());
    };
    let path = path.chars().take(80).collect();
    Err(FileError { kind: FileErrorKind::InvalidPath, path, detail })
}

/// Replaces text in the contents of a file. Bytes outside the replaced places stay
/// as they are. Places do not overlap: after one, the search goes on behind it.
///
/// # Errors
/// `invalid_argument` for an empty `old`; `conflict` when `old` is absent, or is
/// there more than once and one was asked for, with the count and the lines;
/// `too_large` for a result above [`limits::EDIT_FILE_BYTES_MAX`].
pub fn edit(
    path: &str,
    contents: &[u8],
    old: &[u8],
    new: &[u8],
    occurrences: Occurrences,
) -> Result<(Vec<u8>, EditReport), FileError> {
    let error = |kind, detail| FileError { kind, path: path.to_owned(), detail };
    if old.is_empty() {
        let detail = "the text to replace is empty".to_owned();
        return Err(error(FileErrorKind::InvalidArgument, detail));
    }
    // Looked for twice rather than kept: there may be a place for every byte.
    let Some(first) = occurrences_of(contents, old).next() else {
        return Err(error(FileErrorKind::Conflict, absent(contents, old)));
    };
    let replaced = occurrences_of(contents, old).count();
    if occurrences == Occurrences::One && replaced > 1 {
        return Err(error(FileErrorKind::Conflict, repeated(contents, old, replaced)));
    }
    // Known before anything is made: what replaces may be a thousand times as long.
    let length = contents.len() as u64 - (replaced * old.len()) as u64;
    let length = length.saturating_add((replaced as u64).saturating_mul(new.len() as u64));
    if length > limits::EDIT_FILE_BYTES_MAX {
        let max = limits::EDIT_FILE_BYTES_MAX;
        let detail = format!("the file would have {length} bytes after it; {max} is the most");
        return Err(error(FileErrorKind::TooLarge, detail));
    }
    let mut edited = Vec::with_capacity(usize::try_from(length).unwrap_or(contents.len()));
    let mut rest = 0;
    for place in occurrences_of(contents, old) {
        edited.extend_from_slice(&contents[rest..place]);
        edited.extend_from_slice(new);
        rest = place + old.len();
    }
    edited.extend_from_slice(&contents[rest..]);
    let replaced = replaced as u64;
    let report =
        EditReport { replaced, first_line: line_of(contents, first), digest: digest(&edited) };
    Ok((edited, report))
}

/// Offsets at which `needle`, which is not empty, stands; none overlaps another.
fn occurrences_of<'a>(contents: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memchr::memmem::find_iter(contents, needle)
}

fn line_of(contents: &[u8], offset: usize) -> u64 {
    1 + contents[..offset].iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Says that a text is absent, and names the usual reason if it is that one.
fn absent(contents: &[u8], old: &[u8]) -> String {
    let plain = "the text to replace was found 0 times";
    let has =
        |needle: &[u8]| !needle.is_empty() && memchr::memmem::find(contents, needle).is_some();
    if has(&with_crlf(old)) && !old.contains(&b'\r') {
        return format!("{plain}; it is there with CRLF line ends, so give \\r\\n instead of \\n");
    }
    if has(old.trim_ascii()) {
        return format!("{plain}; it is there with other white space at its start or end");
    }
    format!("{plain}; read the file again and copy the text exactly, with its white space")
}

fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut wide = Vec::with_capacity(text.len() + 16);
    for byte in text {
        if *byte == b'\n' {
            wide.push(b'\r');
        }
        wide.push(*byte);
    }
    wide
}

fn repeated(contents: &[u8], old: &[u8], count: usize) -> String {
    let named = occurrences_of(contents, old).take(limits::NAMED_LINES_MAX);
    let lines: Vec<_> = named.map(|place| line_of(contents, place).to_string()).collect();
    let more = if count > limits::NAMED_LINES_MAX { " and more" } else { "" };
    format!(
        "the text to replace was found {count} times, at lines {}{more}; add lines around it until it \
         is unique, or ask for all occurrences",
        lines.join(", "),
    )
}

/// Cuts whole lines out of the contents of a file. See [`LineSlicer`].
#[must_use]
pub fn slice_lines(contents: &[u8], first: u64, lines_max: u64, bytes_max: u64) -> Lines {
    let mut slicer = LineSlicer::new(first, lines_max, bytes_max);
    slicer.push(contents);
    slicer.finish()
}

/// Cuts whole lines out of a file that arrives in pieces, counts all its lines and
/// takes its digest, in memory that does not grow with the file.
///
/// A line longer than [`limits::LINE_BYTES_MAX`] is cut there and keeps its line
/// end. If the first line alone is above `bytes_max` it is cut to fit, so that a
/// reader always makes progress.
#[derive(Debug, Clone)]
pub struct LineSlicer {
    first: u64,
    lines_max: u64,
    bytes_max: usize,
    /// Number of the line that the next byte belongs to.
    line: u64,
    /// Kept bytes of that line, its line end apart.
    body: Vec<u8>,
    /// All its bytes so far.
    body_bytes: usize,
    /// Its last byte so far.
    last: Option<u8>,
    /// Nothing more is taken: a line did not fit.
    full: bool,
    lines: Lines,
    hash: Sha256,
}

impl LineSlicer {
    /// A slicer that takes `lines_max` lines from line `first` (from 1; 0 means 1),
    /// `bytes_max` bytes in all.
    #[must_use]
    pub fn new(first: u64, lines_max: u64, bytes_max: u64) -> Self {
        let first = first.max(1);
        let lines =
            Lines { text: Vec::new(), first, count: 0, total: None, cut_lines: 0, digest: None };
        Self {
            first,
            lines_max,
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            line: 1,
            body: Vec::new(),
            body_bytes: 0,
            last: None,
            full: false,
            lines,
            hash: Sha256::new(),
        }
    }

    /// Whether every line asked for was taken. What follows only counts for the
    /// total and the digest.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.full || self.lines.count >= self.lines_max
    }

    /// Takes the next piece of the file.
    pub fn push(&mut self, piece: &[u8]) {
        self.hash.update(piece);
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (body, ended) = match part.split_last() {
                Some((b'\n', body)) => (body, true),
                _ => (part, false),
            };
            if self.is_wanted() {
                // One byte above the limit, for a carriage return that is no part of the text.
                let room = (limits::LINE_BYTES_MAX + 1).saturating_sub(self.body.len());
                self.body.extend_from_slice(&body[..body.len().min(room)]);
            }
            self.body_bytes += body.len();
            self.last = body.last().copied().or(self.last);
            if ended {
                self.end_line(true);
            }
        }
    }

    /// The lines. `total` and `digest` are there because the whole file was seen;
    /// a caller that stopped early clears them.
    #[must_use]
    pub fn finish(mut self) -> Lines {
        if self.body_bytes > 0 {
            self.end_line(false);
        }
        self.lines.total = Some(self.line - 1);
        self.lines.digest = Some(ContentDigest(self.hash.finalize().into()));
        self.lines
    }

    fn is_wanted(&self) -> bool {
        self.line >= self.first && !self.is_complete()
    }

    fn end_line(&mut self, newline: bool) {
        if self.is_wanted() {
            self.take_line(newline);
        }
        self.line += 1;
        self.body.clear();
        self.body_bytes = 0;
        self.last = None;
    }

    fn take_line(&mut self, newline: bool) {
        let carriage = newline && self.last == Some(b'\r');
        let end: &[u8] = match (newline, carriage) {
            (true, true) => b"\r\n",
            (true, false) => b"\n",
            (false, _) => b"",
        };
        let whole = self.body_bytes - usize::from(carriage);
        let room = self.bytes_max - self.lines.text.len();
        let mut kept = whole.min(limits::LINE_BYTES_MAX);
        if kept + end.len() > room {
            if self.lines.count > 0 || room <= end.len() {
                self.full = true;
                return;
            }
            kept = room - end.len();
        }
        self.lines.text.extend_from_slice(&self.body[..kept]);
        self.lines.text.extend_from_slice(end);
        self.lines.count += 1;
        self.lines.cut_lines += u64::from(kept < whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check_edit(contents: &str, old: &str, occurrences: Occurrences, expected: Expect) {
        let shown = match edit("f", contents.as_bytes(), old.as_bytes(), b"NEW", occurrences) {
            Ok((bytes, edited)) => {
                assert_eq!(edited.digest, digest(&bytes));
                let (count, line) = (edited.replaced, edited.first_line);
                format!("{count} from line {line}: {:?}", String::from_utf8_lossy(&bytes))
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn an_edit_that_grows_beyond_a_file_is_refused_before_it_is_made() {
        let contents = vec![b'a'; 1 << 20];
        let error = edit("f", &contents, b"a", &[b'b'; 1 << 10], Occurrences::All).unwrap_err();
        assert_eq!(error.kind, FileErrorKind::TooLarge);
        expect!["the file would have 1073741824 bytes after it; 16777216 is the most"]
            .assert_eq(&error.detail);
        assert!(edit("f", &contents, b"a", b"bb", Occurrences::All).is_ok());
    }

    #[test]
    fn edit_replaces_or_says_why_not() {
        use Occurrences::{All, One};
        check_edit("a\nb\nc", "b", One, expect![[r#"1 from line 2: "a\nNEW\nc""#]]);
        check_edit("aaaa", "aa", All, expect![[r#"2 from line 1: "NEWNEW""#]]);
        check_edit("a\r\nb\r\n", "b", One, expect![[r#"1 from line 2: "a\r\nNEW\r\n""#]]);
        check_edit("a", "", One, expect!["invalid_argument: f: the text to replace is empty"]);
        check_edit(
            "a",
            "z",
            All,
            expect![
                "conflict: f: the text to replace was found 0 times; read the file again and copy the text exactly, with its white space"
            ],
        );
        check_edit(
            "a\r\nb",
            "a\nb",
            One,
            expect![[
                r"conflict: f: the text to replace was found 0 times; it is there with CRLF line ends, so give \r\n instead of \n"
            ]],
        );
        check_edit(
            "a b",
            " a b ",
            One,
            expect![
                "conflict: f: the text to replace was found 0 times; it is there with other white space at its start or end"
            ],
        );
        check_edit(
            "x\ny\nx\n",
            "x",
            One,
            expect![
                "conflict: f: the text to replace was found 2 times, at lines 1, 3; add lines around it until it is unique, or ask for all occurrences"
            ],
        );
    }

    fn check_lines(contents: &str, first: u64, lines_max: u64, bytes_max: u64, expected: Expect) {
        let whole = slice_lines(contents.as_bytes(), first, lines_max, bytes_max);
        let mut slicer = LineSlicer::new(first, lines_max, bytes_max);
        contents.as_bytes().chunks(1).for_each(|piece| slicer.push(piece));
        assert_eq!(slicer.finish(), whole, "pieces make no difference");
        assert_eq!(whole.digest, Some(digest(contents.as_bytes())));
        let text = String::from_utf8_lossy(&whole.text);
        let (count, total, cut) = (whole.count, whole.total, whole.cut_lines);
        expected.assert_eq(&format!("{text:?} {count} of {total:?}, {cut} cut"));
    }

    #[test]
    fn lines_are_whole_and_counted() {
        check_lines("a\nb\nc\n", 1, 9, 99, expect![[r#""a\nb\nc\n" 3 of Some(3), 0 cut"#]]);
        check_lines("a\nb\nc", 2, 1, 99, expect![[r#""b\n" 1 of Some(3), 0 cut"#]]);
        check_lines("a\nb\nc", 3, 1, 99, expect![[r#""c" 1 of Some(3), 0 cut"#]]);
        check_lines("a\r\n\r\n", 1, 9, 99, expect![[r#""a\r\n\r\n" 2 of Some(2), 0 cut"#]]);
        check_lines("", 1, 9, 99, expect![[r#""" 0 of Some(0), 0 cut"#]]);
        check_lines("a\n", 7, 9, 99, expect![[r#""" 0 of Some(1), 0 cut"#]]);
        check_lines("a\nb\n", 1, 0, 99, expect![[r#""" 0 of Some(2), 0 cut"#]]);
        check_lines("aa\nbbbb\nc\n", 1, 9, 5, expect![[r#""aa\n" 1 of Some(3), 0 cut"#]]);
        check_lines("abcdef\r\nb\n", 1, 9, 5, expect![[r#""abc\r\n" 1 of Some(2), 1 cut"#]]);
    }

    #[test]
    fn a_long_line_is_cut_at_the_limit() {
        for (extra, end) in [(0, ""), (0, "\r\n"), (1, "\n"), (5_000, "\r\n")] {
            let line = "x".repeat(limits::LINE_BYTES_MAX + extra) + end;
            let lines = slice_lines(line.as_bytes(), 1, 10, 1 << 20);
            assert_eq!(lines.text.len(), limits::LINE_BYTES_MAX + end.len());
            assert!(lines.text.ends_with(end.as_bytes()));
            assert_eq!(lines.cut_lines, u64::from(extra > 0));
        }
    }

    #[test]
    fn paths_that_nobody_accepts() {
        for bad in ["", "a\0b", &"x".repeat(limits::PATH_BYTES_MAX + 1)] {
            assert_eq!(check_path(bad).unwrap_err().kind, FileErrorKind::InvalidPath);
        }
        check_path("/a/b c").unwrap();
    }
}
