//! Each tool, when it goes well and when it does not.

use expect_test::{Expect, expect};
use outrigger_agent::Status;
use outrigger_tools::limits;
use serde_json::{Value, json};

use crate::world::World;

async fn check(world: &mut World, tool: &str, arguments: Value, expected: Expect) {
    expected.assert_eq(&world.shown(tool, arguments).await);
}

#[tokio::test(start_paused = true)]
async fn execute_states_how_it_ended() {
    let mut world = World::new().await;
    for (line, expected) in [
        (
            "echo out; echo err >&2",
            expect![[r#"
            ok
            out
            err
            [exit code 0]
        "#]],
        ),
        (
            "echo -n no line end; exit 7",
            expect![[r#"
            ok
            no line end
            [exit code 7]
        "#]],
        ),
        (
            "true",
            expect![[r#"
            ok
            (no output)
            [exit code 0]
        "#]],
        ),
        (
            "kill -9 $$",
            expect![[r#"
            ok
            (no output)
            [ended by signal 9, exit code 137]
        "#]],
        ),
        (
            "no-such-program",
            expect![[r#"
            ok
            sh: no-such-program: not found
            [exit code 127]
        "#]],
        ),
    ] {
        check(&mut world, "execute", json!({"command": line}), expected).await;
    }
    let slow = json!({"command": "echo before; sleep 100", "timeout": 2000});
    check(&mut world, "execute", slow, expect![[r#"
        error
        before
        [killed with all its processes: it was still running after 2000 ms; give a larger `timeout`, up to 600000, or do less at once]
    "#]]).await;
    let output = world.call("execute", json!({"command": "exit 3"})).await;
    assert_eq!((output.status, output.exit_code), (Status::Ok, Some(3)));
}

#[tokio::test]
async fn execute_cuts_the_middle_and_names_the_file_with_all() {
    let mut world = World::new().await;
    let lines: String = (1..=10_000).map(|number| format!("line {number}\n")).collect();
    world.file("big", &lines).await;
    let output = world.call("execute", json!({"command": "cat big"})).await;
    let (head, rest) = output.text.split_once('[').unwrap();
    let (note, tail) = rest.split_once("]\n").unwrap();
    let (tail, end) = tail.split_once("[exit").unwrap();
    assert!(lines.starts_with(head) && lines.ends_with(tail) && end == " code 0]");
    let seen = head.len() + tail.len();
    assert!(seen <= limits::EXECUTE_BYTES_MAX);
    assert_eq!(output.hidden_bytes, (lines.len() - seen) as u64);
    expect!["68910 of 98894 bytes are hidden here; the whole output is in /tmp/output/call-2.txt: read it with read_file or grep"].assert_eq(note);
    let path = note.split(' ').find(|word| word.starts_with("/tmp/")).unwrap();
    assert_eq!(world.contents(path.trim_end_matches(':')).unwrap(), lines);
}

#[tokio::test]
async fn execute_shows_the_end_of_what_was_dropped() {
    let mut world = World::new().await;
    let line = "echo first; head -c 3000000 /dev/zero; echo last";
    let output = world.call("execute", json!({"command": line})).await;
    assert!(output.text.starts_with("first\n") && output.text.ends_with("last\n[exit code 0]"));
    assert!(output.hidden_bytes > 2_900_000);
    let line = "head -c 80000000 /dev/zero; echo last";
    let output = world.call("execute", json!({"command": line})).await;
    assert!(output.text.contains("the first part of the output is in /tmp/"), "{}", output.text);
}

#[tokio::test]
async fn execute_shows_terminal_control_inert() {
    let mut world = World::new().await;
    world.file("colours", "\u{1b}[31mred\u{1b}[0m\u{1b}]0;t\u{7}\r\n50%\r100%\n\u{7}").await;
    let output = world.call("execute", json!({"command": "cat colours"})).await;
    assert_eq!(output.text, "red\n50%\n100%\n␇\n[exit code 0]");
}

#[tokio::test]
async fn ls_tells_kinds_and_sizes() {
    let mut world = World::new().await;
    check(
        &mut world,
        "ls",
        json!({}),
        expect![[r#"
        ok
        (/workspace is empty)
    "#]],
    )
    .await;
    world.file("src/main.rs", "fn main() {}").await;
    world.file(".hidden", "").await;
    check(
        &mut world,
        "ls",
        json!({"path": "/workspace"}),
        expect![[r#"
        ok
        .hidden  0
        src/
    "#]],
    )
    .await;
    check(
        &mut world,
        "ls",
        json!({"path": "src/main.rs"}),
        expect![[r#"
        error
        not_a_directory: src/main.rs: it is not a directory. Read a file with read_file.
    "#]],
    )
    .await;
    check(&mut world, "ls", json!({"path": "nowhere"}), expect![[r#"
        error
        file_not_found: nowhere: there is nothing at that path. Find out what there is with ls or glob.
    "#]]).await;
    check(
        &mut world,
        "ls",
        json!({"path": "../.."}),
        expect![[r#"
        error
        invalid_path: ../..: the path leaves its root.
    "#]],
    )
    .await;
}

#[tokio::test]
async fn read_file_numbers_lines_and_says_how_to_read_on() {
    let mut world = World::new().await;
    let lines: String = (1..=2_500).map(|number| format!("line {number}\n")).collect();
    world.file("long", &lines).await;
    let output = world.call("read_file", json!({"file_path": "long"})).await;
    assert!(output.text.starts_with("     1\tline 1\n     2\tline 2\n"));
    assert!(
        output
            .text
            .ends_with("  2000\tline 2000\n[lines 1 to 2000 of 2500; read on with offset 2001]")
    );
    let some = json!({"file_path": "long", "offset": 2499});
    check(
        &mut world,
        "read_file",
        some,
        expect![[r#"
        ok
          2499	line 2499
          2500	line 2500
    "#]],
    )
    .await;
    let some = json!({"file_path": "/workspace/long", "offset": 10, "limit": 2});
    check(
        &mut world,
        "read_file",
        some,
        expect![[r#"
        ok
            10	line 10
            11	line 11
        [lines 10 to 11 of 2500; read on with offset 12]
    "#]],
    )
    .await;
    check(
        &mut world,
        "read_file",
        json!({"file_path": "long", "offset": 2501}),
        expect![[r#"
        error
        long has 2500 lines, so there is nothing from line 2501 on. Give an `offset` of 1 to 2500.
    "#]],
    )
    .await;
}

#[tokio::test]
async fn read_file_of_odd_files() {
    let mut world = World::new().await;
    world.file("nothing", "").await;
    world.file("binary", b"\x7fELF\0\0").await;
    world.file("crlf", b"a\r\n\xff\x1b[1m\r\n").await;
    world.file("dir/f", "x").await;
    let paths =
        ["nothing", "binary", "crlf", "dir", "dir/g", "dir/f/x", "/dev/zero", "a\0b", "../x"];
    let mut shown = String::new();
    for path in paths {
        shown += &world.shown("read_file", json!({"file_path": path})).await;
    }
    expect![[r#"
        ok
        (nothing is empty)
        error
        binary is a binary file, and read_file shows text only. Look at it with a program, for example `file`, `xxd` or `strings`, through execute.
        ok
             1	a
             2	�␛[1m
        [lines end in CRLF]
        [bytes that are no UTF-8 are shown as �]
        error
        is_directory: dir: it is a directory. List it with ls.
        error
        file_not_found: dir/g: there is nothing at that path. Find out what there is with ls or glob.
        error
        not_a_directory: dir/f/x: a part of the path is a file.
        error
        invalid_path: /dev/zero: it is not a regular file.
        error
        invalid_path: a␀b: the path has a NUL byte.
        error
        invalid_path: ../x: the path leaves its root.
    "#]].assert_eq(&shown);
}

#[tokio::test]
async fn read_file_stays_within_its_limits() {
    let mut world = World::new().await;
    let wide = "é".repeat(5_000) + "\nshort\n";
    world.file("wide", &wide).await;
    let output = world.call("read_file", json!({"file_path": "wide"})).await;
    assert_eq!(output.hidden_bytes, 6_000);
    let note = output.text.lines().last().unwrap();
    expect!["[lines are cut after 2000 characters: 1 here, the first is line 1; 6000 bytes are hidden; see them with execute: `cut -c2001- wide`]"].assert_eq(note);
    let many = ("x".repeat(1_500) + "\n").repeat(100);
    world.file("many", &many).await;
    let output = world.call("read_file", json!({"file_path": "many"})).await;
    assert!(output.text.len() <= limits::READ_BYTES_MAX + 200);
    expect!["[lines 1 to 33 of 100; read on with offset 34]"]
        .assert_eq(output.text.lines().last().unwrap());
}

#[tokio::test]
async fn write_file_makes_and_replaces() {
    let mut world = World::new().await;
    let arguments = json!({"file_path": "new/dir/f.txt", "content": "one\ntwo\n"});
    check(
        &mut world,
        "write_file",
        arguments,
        expect![[r#"
        ok
        Made new/dir/f.txt: 2 lines, 8 bytes.
    "#]],
    )
    .await;
    assert_eq!(world.contents("new/dir/f.txt").unwrap(), "one\ntwo\n");
    let arguments = json!({"file_path": "new/dir/f.txt", "content": ""});
    check(
        &mut world,
        "write_file",
        arguments,
        expect![[r#"
        ok
        Replaced new/dir/f.txt: 0 lines, 0 bytes.
    "#]],
    )
    .await;
    assert_eq!(world.contents("new/dir/f.txt").unwrap(), "");
    let arguments = json!({"file_path": "/etc/passwd", "content": "x"});
    check(&mut world, "write_file", arguments, expect![[r#"
        error
        permission_denied: /etc/passwd: the sandbox's user may write beneath /workspace, /tmp and /home/agent only.
    "#]]).await;
    check(
        &mut world,
        "write_file",
        json!({"file_path": "new", "content": "x"}),
        expect![[r#"
        error
        is_directory: new: it is a directory.
    "#]],
    )
    .await;
}

#[tokio::test]
async fn write_file_above_one_piece() {
    let mut world = World::new().await;
    let content = "0123456789abcde\n".repeat(600_000);
    let output = world.call("write_file", json!({"file_path": "big", "content": content})).await;
    assert_eq!(output.text, "Made big: 600000 lines, 9600000 bytes.");
    assert_eq!(world.contents("big").unwrap(), content);
}

#[tokio::test]
async fn edit_file_changes_one_or_all() {
    let mut world = World::new().await;
    world.file("f", "a = 1\nb = 1\nc = 2\n").await;
    let edit = |old: &str, new: &str, all: bool| json!({"file_path": "f", "old_string": old, "new_string": new, "replace_all": all});
    check(
        &mut world,
        "edit_file",
        edit("c = 2", "c = 3", false),
        expect![[r#"
        ok
        Edited f at line 3.
    "#]],
    )
    .await;
    check(&mut world, "edit_file", edit("= 1", "= 4", false), expect![[r#"
        error
        conflict: f: the text to replace was found 2 times, at lines 1, 2; add lines around it until it is unique, or ask for all occurrences.
    "#]]).await;
    check(
        &mut world,
        "edit_file",
        edit("= 1", "= 4", true),
        expect![[r#"
        ok
        Edited f at 2 places, the first at line 1.
    "#]],
    )
    .await;
    check(&mut world, "edit_file", edit("zzz", "y", false), expect![[r#"
        error
        conflict: f: the text to replace was found 0 times; read the file again and copy the text exactly, with its white space.
    "#]]).await;
    assert_eq!(world.contents("f").unwrap(), "a = 4\nb = 4\nc = 3\n");
    let missing = json!({"file_path": "g", "old_string": "a", "new_string": "b"});
    check(&mut world, "edit_file", missing, expect![[r#"
        error
        file_not_found: g: there is nothing at that path. edit_file changes files that are there; make a new one with write_file.
    "#]]).await;
}

#[tokio::test]
async fn glob_gives_paths_or_says_that_there_are_none() {
    let mut world = World::new().await;
    for path in ["a.py", "src/b.py", "src/deep/c.py", "src/d.rs", ".git/e.py"] {
        world.file(path, "").await;
    }
    check(
        &mut world,
        "glob",
        json!({"pattern": "*.py"}),
        expect![[r#"
        ok
        /workspace/a.py
        /workspace/src/b.py
        /workspace/src/deep/c.py
    "#]],
    )
    .await;
    check(
        &mut world,
        "glob",
        json!({"pattern": "*.py", "path": "src"}),
        expect![[r#"
        ok
        /workspace/src/b.py
        /workspace/src/deep/c.py
    "#]],
    )
    .await;
    check(
        &mut world,
        "glob",
        json!({"pattern": "/workspace/src/*.rs"}),
        expect![[r#"
        ok
        /workspace/src/d.rs
    "#]],
    )
    .await;
    check(
        &mut world,
        "glob",
        json!({"pattern": "*.go"}),
        expect![[r#"
        ok
        No file beneath /workspace matches `*.go`.
    "#]],
    )
    .await;
    check(
        &mut world,
        "glob",
        json!({"pattern": "[a"}),
        expect![[r#"
        error
        invalid_argument: [a: unclosed character class; missing ']'.
    "#]],
    )
    .await;
}

#[tokio::test]
async fn grep_gives_lines_or_says_that_there_are_none() {
    let mut world = World::new().await;
    world.file("a.py", "import os\nx = f(1)\n").await;
    world.file("src/b.rs", "fn f() {}\n// F(1) X = f(1)\n").await;
    check(
        &mut world,
        "grep",
        json!({"pattern": r"f\(\d\)"}),
        expect![[r#"
        ok
        /workspace/a.py:2:x = f(1)
        /workspace/src/b.rs:2:// F(1) X = f(1)
    "#]],
    )
    .await;
    check(
        &mut world,
        "grep",
        json!({"pattern": "f(1)", "literal": true, "path": "a.py"}),
        expect![[r#"
            ok
            /workspace/a.py:2:x = f(1)
        "#]],
    )
    .await;
    let either = json!({"pattern": "x = F(1)", "literal": true, "case_insensitive": true});
    check(
        &mut world,
        "grep",
        either,
        expect![[r#"
        ok
        /workspace/a.py:2:x = f(1)
        /workspace/src/b.rs:2:// F(1) X = f(1)
    "#]],
    )
    .await;
    check(
        &mut world,
        "grep",
        json!({"pattern": "f", "glob": "*.rs"}),
        expect![[r#"
        ok
        /workspace/src/b.rs:1:fn f() {}
        /workspace/src/b.rs:2:// F(1) X = f(1)
    "#]],
    )
    .await;
    check(
        &mut world,
        "grep",
        json!({"pattern": "zzz", "glob": "*.rs"}),
        expect![[r#"
        ok
        No line beneath /workspace in files like `*.rs` matches `zzz`.
    "#]],
    )
    .await;
    check(
        &mut world,
        "grep",
        json!({"pattern": "f("}),
        expect![[r#"
        error
        invalid_argument: f(: regex parse error:
            f(
             ^
        error: unclosed group. To search for plain text, set `literal` to true.
    "#]],
    )
    .await;
}

#[tokio::test]
async fn listings_stay_within_their_limits() {
    let mut world = World::new().await;
    for number in 0..1_100 {
        world.file(&format!("dir/{number:04}"), "needle").await;
    }
    for (tool, arguments) in [
        ("ls", json!({"path": "dir"})),
        ("glob", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "needle"})),
    ] {
        let output = world.call(tool, arguments).await;
        assert!(output.text.len() <= limits::LISTING_BYTES_MAX + 100, "{tool}");
        let last = output.text.lines().last().unwrap();
        assert!(last.starts_with("[only the first "), "{tool}: {last}");
    }
}
