//! A patch as lines for people. Pure. Text stands there as it is; of a file that is none
//! there is one line, and of what is too long for a screen it is said how much is left out.

use super::amounts::{count, size};
use super::inert::escaped;
use super::timeline::{Line, Tone, cut};
use crate::limits;

/// What the part of each file begins with.
const FILE: &[u8] = b"diff --git ";

/// The lines, as many and of as many bytes as that.
pub(super) fn lines(patch: &[u8], (lines_max, bytes_max): (usize, usize)) -> Vec<Line> {
    let mut shown = Vec::new();
    let (mut bytes, mut left_out, mut bytes_out) = (0, 0, 0);
    for file in files(patch) {
        let is_text = !file.contains(&0);
        let all: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
        // Of a file that is no text, only what stands before its contents.
        let head = all.iter().take_while(|line| !line.starts_with(b"@@")).count();
        let of_file = if is_text { all.len() } else { head };
        for text in &all[..of_file] {
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
            let size = size(file.len() as u64);
            shown.push(Line::new(Tone::Detail, format!("[no text: {size} of the patch]")));
        }
    }
    if left_out > 0 {
        let (more, size) = (count(left_out, "more line"), size(bytes_out as u64));
        shown.push(Line::new(Tone::Detail, format!("[{more} in the patch, {size}]")));
    }
    shown
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
        let binary = b"diff --git a/i b/i\nnew file mode 100644\n--- /dev/null\n+++ b/i\n@@ -0,0 +1 @@\n+\0\xff\n";
        check(
            &[binary, TEXT].concat(),
            (99, 999),
            &expect![[r#"
                diff --git a/i b/i
                new file mode 100644
                --- /dev/null
                +++ b/i
                [no text: 80 bytes of the patch]
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
