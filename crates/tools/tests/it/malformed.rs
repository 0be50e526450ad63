//! Malformed calls: each complaint says what to change.

use expect_test::{Expect, expect};
use outrigger_agent::Status;

use crate::world::World;

/// Each call with its complaint, whose last line (the arguments that there are) is shown once.
async fn check(tool: &str, calls: &[&str], expected: Expect) {
    let mut world = World::new().await;
    let mut shown = String::new();
    let mut usage = String::new();
    for arguments in calls {
        let output = world.raw(tool, arguments).await;
        assert_eq!(output.status, Status::Error);
        let (complaint, last) = output.text.rsplit_once('\n').expect("two lines at least");
        assert!(usage.is_empty() || usage == last);
        last.clone_into(&mut usage);
        shown += &format!("{arguments}\n  {}\n", complaint.replace('\n', "\n  "));
    }
    expected.assert_eq(&(shown + &usage + "\n"));
}

#[tokio::test]
async fn execute() {
    let calls = [
        "{}",
        r#"{"cmd": "ls", "timeout_ms": 5}"#,
        r#"{"comand": "ls"}"#,
        r#"{"command": ["ls", "-l"], "timeout": "5000"}"#,
        r#"{"command": "ls", "timeout": 0}"#,
        r#"{"command": "ls", "timeout": 600001}"#,
        r#"{"command": "ls", "timeout": 1.5}"#,
        r#"{"command": "ls", "timeout": -3}"#,
        r#"{"command": "", "description": 1}"#,
        r#"{"command": null, "run_in_background": true}"#,
        r#"{"command": "ls""#,
        r#"["ls"]"#,
    ];
    check("execute", &calls, expect![[r#"
        {}
          Invalid arguments for `execute`:
          - `command` is missing
        {"cmd": "ls", "timeout_ms": 5}
          Invalid arguments for `execute`:
          - there is no argument `cmd`: did you mean `command`?
          - there is no argument `timeout_ms`: did you mean `timeout`?
          - `command` is missing
        {"comand": "ls"}
          Invalid arguments for `execute`:
          - there is no argument `comand`: did you mean `command`?
          - `command` is missing
        {"command": ["ls", "-l"], "timeout": "5000"}
          Invalid arguments for `execute`:
          - `command` must be a string, not an array
          - `timeout` must be an integer, not a string: write 5000 without quotes
        {"command": "ls", "timeout": 0}
          Invalid arguments for `execute`:
          - `timeout` is 0, but must be 1 to 600000
        {"command": "ls", "timeout": 600001}
          Invalid arguments for `execute`:
          - `timeout` is 600001, but must be 1 to 600000
        {"command": "ls", "timeout": 1.5}
          Invalid arguments for `execute`:
          - `timeout` is 1.5, but must be a whole number, 1 to 600000
        {"command": "ls", "timeout": -3}
          Invalid arguments for `execute`:
          - `timeout` is -3, but must be a whole number, 1 to 600000
        {"command": "", "description": 1}
          Invalid arguments for `execute`:
          - `command` is empty
          - `description` must be a string, not a number
        {"command": null, "run_in_background": true}
          Invalid arguments for `execute`:
          - there is no argument `run_in_background`
          - `command` must be a string, not null
        {"command": "ls"
          The arguments of `execute` are no JSON: EOF while parsing an object at line 1 column 16.
        ["ls"]
          The arguments of `execute` must be a JSON object, not an array.
        Its arguments are: `command` (string, required), `timeout` (integer, 1 to 600000, optional), `description` (string, optional).
    "#]]).await;
}

#[tokio::test]
async fn file_tools() {
    let calls = [
        r#"{"path": "a", "limit": 5000}"#,
        r#"{"file_path": "a", "offset": "10"}"#,
        r#"{"file": "a", "lines": 10}"#,
    ];
    check("read_file", &calls, expect![[r#"
        {"path": "a", "limit": 5000}
          Invalid arguments for `read_file`:
          - there is no argument `path`: did you mean `file_path`?
          - `file_path` is missing
          - `limit` is 5000, but must be 1 to 2000
        {"file_path": "a", "offset": "10"}
          Invalid arguments for `read_file`:
          - `offset` must be an integer, not a string: write 10 without quotes
        {"file": "a", "lines": 10}
          Invalid arguments for `read_file`:
          - there is no argument `file`: did you mean `file_path`?
          - there is no argument `lines`
          - `file_path` is missing
        Its arguments are: `file_path` (string, required), `offset` (integer, 0 or more, optional), `limit` (integer, 1 to 2000, optional).
    "#]]).await;
    let calls = [r#"{"filename": "a", "contents": 5}"#, r#"{"file_path": "", "text": "x"}"#];
    check(
        "write_file",
        &calls,
        expect![[r#"
        {"filename": "a", "contents": 5}
          Invalid arguments for `write_file`:
          - there is no argument `filename`: did you mean `file_path`?
          - there is no argument `contents`: did you mean `content`?
          - `file_path` is missing
          - `content` is missing
        {"file_path": "", "text": "x"}
          Invalid arguments for `write_file`:
          - there is no argument `text`: did you mean `content`?
          - `file_path` is empty
          - `content` is missing
        Its arguments are: `file_path` (string, required), `content` (string, required).
    "#]],
    )
    .await;
}

#[tokio::test]
async fn edit_file_and_ls() {
    let calls = [
        r#"{"file_path": "a", "old_str": "x", "new_str": "y", "replace_all": "true"}"#,
        r#"{"file_path": "a", "old_string": "", "new_string": "x"}"#,
    ];
    check("edit_file", &calls, expect![[r#"
        {"file_path": "a", "old_str": "x", "new_str": "y", "replace_all": "true"}
          Invalid arguments for `edit_file`:
          - there is no argument `old_str`: did you mean `old_string`?
          - there is no argument `new_str`: did you mean `new_string`?
          - `old_string` is missing
          - `new_string` is missing
          - `replace_all` must be true or false, not a string: write true without quotes
        {"file_path": "a", "old_string": "", "new_string": "x"}
          Invalid arguments for `edit_file`:
          - `old_string` is empty
        Its arguments are: `file_path` (string, required), `old_string` (string, required), `new_string` (string, required), `replace_all` (boolean, optional).
    "#]]).await;
    check(
        "ls",
        &[r#"{"path": 7}"#, r#"{"directory": "."}"#],
        expect![[r#"
        {"path": 7}
          Invalid arguments for `ls`:
          - `path` must be a string, not a number
        {"directory": "."}
          Invalid arguments for `ls`:
          - there is no argument `directory`: did you mean `path`?
        Its arguments are: `path` (string, optional).
    "#]],
    )
    .await;
}

#[tokio::test]
async fn searches() {
    let calls = [
        r#"{"regex": "a", "include": "*.py", "-i": true}"#,
        r#"{"pattern": "a", "ignore_case": true, "output_mode": "content"}"#,
    ];
    check("grep", &calls, expect![[r#"
        {"regex": "a", "include": "*.py", "-i": true}
          Invalid arguments for `grep`:
          - there is no argument `regex`: did you mean `pattern`?
          - there is no argument `include`: did you mean `glob`?
          - there is no argument `-i`: did you mean `case_insensitive`?
          - `pattern` is missing
        {"pattern": "a", "ignore_case": true, "output_mode": "content"}
          Invalid arguments for `grep`:
          - there is no argument `ignore_case`: did you mean `case_insensitive`?
          - there is no argument `output_mode`
        Its arguments are: `pattern` (string, required), `path` (string, optional), `glob` (string, optional), `case_insensitive` (boolean, optional), `literal` (boolean, optional).
    "#]]).await;
    check(
        "glob",
        &[r#"{"pattern": {}, "zzz": 1}"#],
        expect![[r#"
        {"pattern": {}, "zzz": 1}
          Invalid arguments for `glob`:
          - there is no argument `zzz`
          - `pattern` must be a string, not an object
        Its arguments are: `pattern` (string, required), `path` (string, optional).
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_only_the_tool_can_tell() {
    let mut world = World::new().await;
    let same = r#"{"file_path": "a", "old_string": "x", "new_string": "x"}"#;
    let output = world.raw("edit_file", same).await;
    expect!["`old_string` and `new_string` are the same: nothing would change."]
        .assert_eq(&output.text);
    let output = world.raw("bash", r#"{"command": "ls"}"#).await;
    expect!["There is no tool `bash`. The tools are: execute, ls, read_file, write_file, edit_file, glob, grep."].assert_eq(&output.text);
    assert_eq!(output.status, Status::Error);
}

#[tokio::test]
async fn null_and_whole_floats_are_harmless() {
    let mut world = World::new().await;
    let call = r#"{"command": "echo fine", "timeout": 5000.0, "description": null}"#;
    assert_eq!(world.raw("execute", call).await.text, "fine\n[exit code 0]");
}

#[tokio::test]
async fn absurd_arguments_do_no_harm() {
    let mut world = World::new().await;
    let key = "k".repeat(100_000);
    let output = world.raw("ls", &format!(r#"{{"{key}": 1}}"#)).await;
    assert!(output.text.len() < 1_000, "{}", output.text.len());
    let deep = "[".repeat(100_000);
    assert_eq!(world.raw("ls", &deep).await.status, Status::Error);
    assert_eq!(world.raw("ls", "").await.status, Status::Error);
}
