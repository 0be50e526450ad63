//! What changed between two contents, in the hunks of a unified diff.

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};
use std::ops::Range;

/// Lines that are shown before and after what changed, as git does.
const CONTEXT_LINES: u32 = 3;

/// What changed from one text to another, as a unified diff with these names at its top; empty
/// where nothing did. Nothing if one of them is no UTF-8.
#[must_use]
pub fn diff(before: &[u8], after: &[u8], names: [&str; 2]) -> Option<String> {
    let are_text = [before, after].iter().all(|bytes| std::str::from_utf8(bytes).is_ok());
    if !are_text || before == after {
        return are_text.then(String::new);
    }
    let mut text = format!("--- {}\n+++ {}\n", names[0], names[1]).into_bytes();
    write(&mut text, before, after);
    String::from_utf8(text).ok()
}

/// Appends the hunks. Only a line feed ends a line, as in git.
pub(crate) fn write(text: &mut Vec<u8>, before: &[u8], after: &[u8]) {
    let mut input = InternedInput::default();
    input.update_before(byte_lines(before));
    input.update_after(byte_lines(after));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let changes: Vec<Hunk> = diff.hunks().collect();
    let near = |one: &Hunk, next: &Hunk| next.before.start - one.before.end <= 2 * CONTEXT_LINES;
    for group in changes.chunk_by(near) {
        write_hunk(text, &input, group);
    }
}

/// Changes that stand so near each other that they are shown as one.
fn write_hunk(text: &mut Vec<u8>, input: &InternedInput<&[u8]>, group: &[Hunk]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let ahead = first.before.start.min(CONTEXT_LINES);
    let behind = (count(&input.before) - last.before.end).min(CONTEXT_LINES);
    let old = first.before.start - ahead..last.before.end + behind;
    let new = first.after.start - ahead..last.after.end + behind;
    text.extend_from_slice(format!("@@ -{} +{} @@\n", span(&old), span(&new)).as_bytes());
    let mut lines = |sign: u8, of: &[Token], range: Range<u32>| {
        for token in &of[range.start as usize..range.end as usize] {
            let line = input.interner[*token];
            text.push(sign);
            text.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                text.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    };
    let mut at = old.start;
    for change in group {
        lines(b' ', &input.before, at..change.before.start);
        lines(b'-', &input.before, change.before.clone());
        lines(b'+', &input.after, change.after.clone());
        at = change.before.end;
    }
    lines(b' ', &input.before, at..old.end);
}

/// How many lines there are: the library refuses what has more than fit.
fn count(lines: &[Token]) -> u32 {
    u32::try_from(lines.len()).unwrap_or(u32::MAX)
}

/// A hunk's range, which counts from 1 unless it is empty, and is silent of one line.
fn span(range: &Range<u32>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_diff() {
        let shown = diff(b"a\nb\nc\n", b"a\nB\nc\nd", ["notes.md@1", "notes.md@2"]).unwrap();
        expect![[r#"
            --- notes.md@1
            +++ notes.md@2
            @@ -1,3 +1,4 @@
             a
            -b
            +B
             c
            +d
            \ No newline at end of file
        "#]]
        .assert_eq(&shown);
        assert_eq!(diff(b"a", b"a", ["1", "2"]).unwrap(), "");
        assert_eq!(diff(b"\xff", b"a", ["1", "2"]), None);
    }

    #[test]
    fn changes_far_apart_are_hunks_of_their_own() {
        let before: String = (0..20).map(|line| format!("{line}\n")).collect();
        let after = before
            .replace("\n3\n", "\nthree\n")
            .replace("\n10\n", "\n")
            .replace("\n18\n", "\n18\n18b\n");
        let shown = diff(before.as_bytes(), after.as_bytes(), ["a", "b"]).unwrap();
        let headers: Vec<_> = shown.lines().filter(|line| line.starts_with("@@")).collect();
        assert_eq!(headers, ["@@ -1,14 +1,13 @@", "@@ -17,4 +16,5 @@"]);
    }

    #[test]
    fn texts_with_little_in_common_are_compared() {
        let text = |of: u32| -> Vec<u8> {
            (0..50_000_u32)
                .flat_map(|line| format!("{}\n", line.wrapping_mul(of) % 4_099).into_bytes())
                .collect()
        };
        let shown = diff(&text(2_654_435_761), &text(40_503), ["a", "b"]).unwrap();
        assert!(shown.len() > 100_000);
    }
}
