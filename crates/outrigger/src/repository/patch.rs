//! Changes as a patch that `git apply` takes.

use outrigger_engine::workspace::{Change, File};
use outrigger_sandbox::EntryKind;
use similar::TextDiff;
use std::fmt::Write;

/// The patch, in git's extended format. Contents that are no text are kept out of
/// it and named, since a patch is there to be read; `--apply` writes them all the same.
pub(crate) fn patch(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        one(&mut text, change);
    }
    text
}

fn one(text: &mut String, change: &Change) {
    let path = quoted(&change.path);
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    line(format!("diff --git {} {}", side("a/", &change.path), side("b/", &change.path)));
    match (before, after) {
        (None, Some(after)) => line(format!("new file mode {}", mode(after))),
        (Some(before), None) => line(format!("deleted file mode {}", mode(before))),
        (Some(before), Some(after)) if mode(before) != mode(after) => {
            line(format!("old mode {}", mode(before)));
            line(format!("new mode {}", mode(after)));
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    let contents = |file: Option<&File>| file.map_or(Vec::new(), |file| file.contents.clone());
    let (old, new) = (contents(before), contents(after));
    if old == new {
        return;
    }
    let (Ok(old), Ok(new)) = (String::from_utf8(old), String::from_utf8(new)) else {
        line(format!("Binary files differ: {path}"));
        return;
    };
    let name = |prefix: &str, file: Option<&File>| match file {
        Some(_) => side(prefix, &change.path),
        None => "/dev/null".to_owned(),
    };
    let diff = TextDiff::from_lines(&old, &new);
    let (old_name, new_name) = (name("a/", before), name("b/", after));
    let unified = diff.unified_diff().context_radius(3).header(&old_name, &new_name).to_string();
    write!(text, "{unified}").expect("writing to a string never fails");
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
        let text = patch(&[
            change("a.txt", file("one\ntwo\nthree"), file("one\n2\nthree")),
            change("gone", file("x\n"), None),
            change("link", None, Some(link)),
            change("odd \"name\"\n", None, file("")),
            change("tool", file("#!/bin/sh\n"), Some(tool)),
        ]);
        expect![[r#"
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
        .assert_eq(&text);
    }
}
