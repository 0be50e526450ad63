//! A patch as lines for people. Pure. Text stands there as it is; of a file that is none
//! there is one line, and of what is too long for a screen it is said how much is left out.

use super::amounts::{count, size};
use super::inert::escaped;
use super::timeline::{Line, Tone, cut};
use crate::limits;

/// What the part of each file begins with.
const FILE: &[u8] = b"diff --git ";

/// What the contents of a file begin with that is no text.
const BINARY: &[u8] = b"GIT binary patch";

/// The lines, as many and of as many bytes as that.
pub(super) fn lines(patch: &[u8], (lines_max, bytes_max): (usize, usize)) -> Vec<Line> {
    let mut shown = Vec::new();
    let (mut bytes, mut left_out, mut bytes_out) = (0, 0, 0);
    for file in files(patch) {
        let all: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
        // Of a file that is no text, only what stands before its contents.
        let head = all.iter().take_while(|line| !line.starts_with(BINARY)).count();
        let is_text = head == all.len();
        for text in &all[..head] {
            if shown.len() >= lines_max || bytes >= bytes_max {
                left_out += 1;
                bytes_out += text.len();
                continue;
            }
            bytes += text.len();
            let text = String::from_utf8_lossy(text);
            let text = cut(text.trim_end_matches('\n'), limits::DIFF_LINE_CHARS_MAX);
            shown.push(line(&text));
        }
        if !is_text && shown.len() < lines_max {
            let size = size(all.iter().filter_map(|line| literal(line)).max().unwrap_or(0));
            shown.push(Line::new(Tone::Detail, format!("[no text: {size}]")));
        }
    }
    if left_out > 0 {
        let (more, size) = (count(left_out, "more line"), size(bytes_out as u64));
        shown.push(Line::new(Tone::Detail, format!("[{more} in the patch, {size}]")));
    }
    shown
}

/// How many bytes follow, where a line of a patch says so of what is no text.
fn literal(line: &[u8]) -> Option<u64> {
    std::str::from_utf8(line.strip_prefix(b"literal ")?).ok()?.trim_end().parse().ok()
}

/// One line of a patch.
pub(super) fn line(text: &str) -> Line {
    let tone = match text.as_bytes().first() {
        Some(b'+') => Tone::Added,
        Some(b'-') => Tone::Removed,
        Some(b'@') => Tone::Detail,
        _ => Tone::Plain,
    };
    Line::new(tone, escaped(text))
}

/// The parts of a patch, one for each file: no line of a content begins as they do.
fn files(patch: &[u8]) -> Vec<&[u8]> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(FILE) && at > 0 {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| patch.get(*start..end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(patch: &[u8], most: (usize, usize), expected: &Expect) {
        let text = |line: &Line| format!("{}\n", line.text);
        expected.assert_eq(&lines(patch, most).iter().map(text).collect::<String>());
    }

    const TEXT: &[u8] = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+diff --git\n";

    #[test]
    fn a_file_that_is_no_text_is_one_line() {
        let binary = b"diff --git a/i b/i\nnew file mode 100644\nindex 0..1\nGIT binary patch\nliteral 2\nJ\n\nliteral 0\nH\n\n";
        check(
            &[binary, TEXT].concat(),
            (99, 999),
            &expect![[r#"
                diff --git a/i b/i
                new file mode 100644
                index 0..1
                [no text: 2 bytes]
                diff --git a/x b/x
                --- a/x
                +++ b/x
                @@ -1 +1 @@
                -a
                +diff --git
            "#]],
        );
    }

    #[test]
    fn what_is_too_much_is_counted() {
        check(
            TEXT,
            (2, 999),
            &expect![[r#"
            diff --git a/x b/x
            --- a/x
            [4 more lines in the patch, 35 bytes]
        "#]],
        );
        check(
            TEXT,
            (99, 20),
            &expect![[r#"
            diff --git a/x b/x
            --- a/x
            [4 more lines in the patch, 35 bytes]
        "#]],
        );
        check(b"", (99, 20), &expect![""]);
    }
}
