//! Changes as a patch that `git apply` takes.

mod binary;
mod renames;

use self::renames::{Rename, renames};
use outrigger_sandbox::EntryKind;
use std::collections::BTreeSet;
use std::fmt::Write;

use crate::{Change, File, Grade, Hazard, hunks};

/// The patch, in git's extended format, with renames. Contents are in it byte for byte, also
/// where they are no text: what is not in the patch is lost with the sandbox. It begins with
/// what does more than lie there, in lines that git passes over.
#[must_use]
pub fn patch(changes: &[Change], hazards: &[Hazard]) -> Vec<u8> {
    let mut text = Vec::new();
    for hazard in hazards {
        let grade = match hazard.grade {
            Grade::Refused => ", and is never written back",
            Grade::Named => "",
        };
        text.extend_from_slice(format!("# {hazard}{grade}\n").as_bytes());
    }
    let renames = renames(changes);
    let moved: BTreeSet<_> = renames.values().map(|rename| rename.from.path.as_str()).collect();
    for Change { path, before, after } in changes {
        let after = after.as_ref();
        match (before, renames.get(path.as_str())) {
            (None, Some(Rename { from, similarity })) => {
                let paths = (from.path.as_str(), path.as_str());
                one(&mut text, paths, Some(*similarity), (from.before.as_ref(), after));
            }
            (Some(_), _) if moved.contains(path.as_str()) => {}
            // Git changes no file into a link: one goes, the other comes.
            (Some(before), _) if after.is_some_and(|after| before.kind != after.kind) => {
                one(&mut text, (path, path), None, (Some(before), None));
                one(&mut text, (path, path), None, (None, after));
            }
            (before, _) => one(&mut text, (path, path), None, (before.as_ref(), after)),
        }
    }
    text
}

/// The patch that gives one file these contents, whose mode stays as it is.
#[must_use]
pub fn one_file(path: &str, before: Option<&[u8]>, after: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let file = |contents: &[u8]| File {
        kind: EntryKind::File,
        executable: false,
        contents: contents.to_vec(),
    };
    let path = path.trim_start_matches('/');
    one(&mut text, (path, path), None, (before.map(file).as_ref(), Some(&file(after))));
    text
}

/// One file, with its path before and its path now, and how much of it is the same if it was
/// renamed.
fn one(
    text: &mut Vec<u8>,
    (from, to): (&str, &str),
    similarity: Option<u64>,
    (before, after): (Option<&File>, Option<&File>),
) {
    let mut line = |line: String| {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    };
    line(format!("diff --git {} {}", side("a/", from), side("b/", to)));
    match (before, after) {
        (None, Some(after)) => line(format!("new file mode {}", mode(after))),
        (Some(before), None) => line(format!("deleted file mode {}", mode(before))),
        (Some(before), Some(after)) if mode(before) != mode(after) => {
            line(format!("old mode {}", mode(before)));
            line(format!("new mode {}", mode(after)));
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    if let Some(similarity) = similarity {
        line(format!("similarity index {similarity}%"));
        line(format!("rename from {}", quoted(from)));
        line(format!("rename to {}", quoted(to)));
    }
    let contents = |file: Option<&File>| file.map_or(Vec::new(), |file| file.contents.clone());
    let (old, new) = (contents(before), contents(after));
    if old == new {
        return;
    }
    if binary::is_binary(&old) || binary::is_binary(&new) {
        let name = |file: Option<&File>, contents| binary::blob_name(file.map(|_| contents));
        let (before_name, after_name) = (name(before, &old), name(after, &new));
        // Where both sides have one mode, git says it here.
        let mode = before.zip(after).filter(|(before, after)| mode(before) == mode(after));
        let mode = mode.map(|(file, _)| format!(" {}", self::mode(file))).unwrap_or_default();
        line(format!("index {before_name}..{after_name}{mode}"));
        return binary::write(text, &old, &new);
    }
    let name = |prefix: &str, path: &str, file: Option<&File>| match file {
        Some(_) => side(prefix, path),
        None => "/dev/null".to_owned(),
    };
    line(format!("--- {}", name("a/", from, before)));
    line(format!("+++ {}", name("b/", to, after)));
    hunks::write(text, &old, &new);
}

fn mode(file: &File) -> &'static str {
    match (file.kind, file.executable) {
        (EntryKind::Link, _) => "120000",
        (_, true) => "100755",
        (_, false) => "100644",
    }
}

fn side(prefix: &str, path: &str) -> String {
    let text = quoted(path);
    match text.strip_prefix('"') {
        Some(rest) => format!("\"{prefix}{rest}"),
        None => format!("{prefix}{text}"),
    }
}

/// As git quotes names: a line break in one must not become a line of the patch.
fn quoted(path: &str) -> String {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if path.bytes().all(plain) {
        return path.to_owned();
    }
    let mut text = String::from("\"");
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            byte if plain(byte) => text.push(char::from(byte)),
            byte => write!(text, "\\{byte:03o}").expect("writing to a string never fails"),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn file(contents: &str) -> Option<File> {
        let contents = contents.as_bytes().to_vec();
        Some(File { kind: EntryKind::File, executable: false, contents })
    }

    #[test]
    fn a_patch_reads_as_git_writes_it() {
        let change = |path: &str, before, after| Change { path: path.to_owned(), before, after };
        let link = File { kind: EntryKind::Link, executable: false, contents: b"b.txt".to_vec() };
        let tool = File { executable: true, ..file("#!/bin/sh\n").unwrap() };
        let changes = [
            change("a.txt", file("one\ntwo\nthree"), file("one\n2\nthree")),
            change("gone", file("x\n"), None),
            change("link", None, Some(link)),
            change("odd \"name\"\n", None, file("")),
            change("tool", file("#!/bin/sh\n"), Some(tool)),
        ];
        let text = patch(&changes, &crate::hazards(None, &changes));
        expect![[r#"
            # tool: it may be executed, which it could not before
            diff --git a/a.txt b/a.txt
            --- a/a.txt
            +++ b/a.txt
            @@ -1,3 +1,3 @@
             one
            -two
            +2
             three
            \ No newline at end of file
            diff --git a/gone b/gone
            deleted file mode 100644
            --- a/gone
            +++ /dev/null
            @@ -1 +0,0 @@
            -x
            diff --git a/link b/link
            new file mode 120000
            --- /dev/null
            +++ b/link
            @@ -0,0 +1 @@
            +b.txt
            \ No newline at end of file
            diff --git "a/odd \"name\"\012" "b/odd \"name\"\012"
            new file mode 100644
            diff --git a/tool b/tool
            old mode 100644
            new mode 100755
        "#]]
        .assert_eq(&String::from_utf8(text).unwrap());
    }

    #[test]
    fn what_is_no_text_is_kept_byte_for_byte() {
        let bytes =
            |contents: &[u8]| Some(File { contents: contents.to_vec(), ..file("").unwrap() });
        let before = bytes(b"a\xff\nlone\rreturn\n\x01");
        let after = bytes(b"a\xfe\nlone\rreturn\n\x01");
        let text = patch(&[Change { path: "x".to_owned(), before, after }], &[]);
        let expected = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-a\xff\n+a\xfe\n lone\rreturn\n \x01\n\\ No newline at end of file\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_file_that_becomes_a_link_goes_and_comes() {
        let link = File { kind: EntryKind::Link, executable: false, contents: b"b".to_vec() };
        let text =
            patch(&[Change { path: "x".to_owned(), before: file("x\n"), after: Some(link) }], &[]);
        expect![[r#"
            diff --git a/x b/x
            deleted file mode 100644
            --- a/x
            +++ /dev/null
            @@ -1 +0,0 @@
            -x
            diff --git a/x b/x
            new file mode 120000
            --- /dev/null
            +++ b/x
            @@ -0,0 +1 @@
            +b
            \ No newline at end of file
        "#]]
        .assert_eq(&String::from_utf8(text).unwrap());
    }
}
