//! Files of sandboxes over HTTP: written, read, moved, listed, one by one and as archives.

use crate::serve::served;
use crate::support::Ran;
use serde_json::json;
use std::fs;

#[test]
fn a_long_file_is_written_by_one_at_a_time() {
    let (served, _) = served(&[]);
    let own = served.sandbox(&json!({}));
    let at = format!("{own}/files/content?path=/workspace/long");
    std::thread::scope(|scope| {
        for letter in ["a", "b", "c"] {
            let (served, at) = (&served, &at);
            let long = served.world.path(letter).display().to_string();
            fs::write(&long, letter.repeat(9_000_000)).unwrap();
            scope.spawn(move || assert_eq!(served.send(&["--upload-file", &long], at).0, 204));
        }
    });
    let shown = served.shell(&own, "wc -c < long; fold -w 1000 long | sort -u | wc -l");
    assert_eq!(shown["stdout"], "9000000\n1\n");
}

#[test]
fn files_go_in_and_out_and_their_errors_have_codes() {
    let (served, _) = served(&[]);
    let own = served.sandbox(&json!({}));
    let content = |path: &str| format!("{own}/files/content?path={path}");
    let data: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
    let file = served.world.path("bytes");
    fs::write(&file, &data).unwrap();
    let (from, back) = (file.display().to_string(), served.world.path("back"));
    let to = back.display().to_string();
    let put = |path: &str| served.problem(&["--upload-file", &from], &content(path));
    assert_eq!(put("a/data").0, 204);
    assert_eq!(served.send(&["--output", &to], &content("a/data")).0, 200);
    assert!(fs::read(&back).unwrap() == data);
    let part = ["--output", &to, "--range", "8999990-9999999"];
    assert_eq!(served.send(&part, &content("/workspace/a/data")).0, 206);
    assert_eq!(fs::read(&back).unwrap(), data[8_999_990..]);
    assert_eq!(served.send(&["--range", "9000000-"], &content("a/data")).0, 416);
    let (_, listed) = served.get(&format!("{own}/files?path=/workspace/a"));
    assert_eq!(
        (&listed["data"][0]["name"], &listed["data"][0]["bytes"]),
        (&json!("data"), &json!(9_000_000))
    );
    served.shell(&own, "ln -s /etc/shadow out; mkfifo pipe; mkdir closed; chmod 0 closed");
    for (path, status, code) in [
        ("none", 404, "file_not_found"),
        ("a", 400, "is_directory"),
        ("a/data/x", 400, "not_a_directory"),
        ("../../etc/passwd", 400, "invalid_path"),
        ("pipe", 400, "invalid_path"),
    ] {
        let (found, problem) = served.get(&content(path));
        assert_eq!((found, &problem["code"]), (status, &json!(code)), "{path}: {problem}");
    }
    let (status, problem) = put("/proc/1/mem");
    assert!([400, 403].contains(&status), "{problem}");
    let (_, info) = served.get(&format!("{own}/files/info?path=a/data"));
    let told = ["name", "kind", "bytes"].map(|name| info[name].clone());
    assert_eq!(told, [json!("data"), json!("file"), json!(9_000_000)]);
    let there = json!({ "from": "a/data", "to": "b/c/moved" });
    assert_eq!(served.post(&format!("{own}/files/move"), &there).0, 204);
    assert_eq!(served.post(&format!("{own}/files/move"), &there).1["code"], "file_not_found");
    let folder = format!("{own}/files/folder?path=made/here");
    assert_eq!(served.send(&["--request", "PUT"], &folder).0, 204);
    assert_eq!(served.get(&format!("{own}/files/info?path=made/here")).1["kind"], "folder");
    assert_eq!(served.delete(&format!("{own}/files?path=b/c/moved")), 204);
    assert_eq!(served.get(&content("b/c/moved")).1["code"], "file_not_found");
}

#[test]
fn a_long_upload_that_is_cut_off_leaves_the_file_as_it_was() {
    let (served, _) = served(&[]);
    let own = served.sandbox(&json!({}));
    served.shell(&own, "printf old > long; chmod +x long; ln -s long link");
    let long = served.world.path("long");
    let given = long.display().to_string();
    fs::write(&long, "a".repeat(9_000_000)).unwrap();
    let at = format!("{own}/files/content?path=long");
    // It ends while less came than was announced.
    let cut = ["--header", "Content-Length: 20000000", "--max-time", "5", "--upload-file", &given];
    assert_ne!(served.send(&cut, &at).0, 204);
    assert_eq!(served.shell(&own, "cat long")["stdout"], "old");
    for at in [at, format!("{own}/files/content?path=link")] {
        assert_eq!(served.send(&["--upload-file", &given], &at).0, 204);
    }
    let shown = served.shell(&own, "wc -c < long; test -x long; echo $?; ls -A");
    assert_eq!(shown["stdout"], "9000000\n0\nlink\nlong\n");
}

#[test]
fn a_tree_goes_in_and_out_as_tar_has_it() {
    let (served, _) = served(&[]);
    let own = served.sandbox(&json!({}));
    let tree = served.world.dir("tree", &[("one/run", b"#!/bin/sh\necho ran\n"), ("two", b"2\n")]);
    let long = "n".repeat(120);
    fs::write(tree.join(&long), "long\n").unwrap();
    let tar = |args: &[&str]| {
        let ran = served.world.command("tar").args(args).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    };
    let (dir, archive) = (tree.display().to_string(), served.world.path("up.tar"));
    let archive = archive.display().to_string();
    std::os::unix::fs::symlink("two", tree.join("link")).unwrap();
    // Two names of one file become two files.
    fs::hard_link(tree.join("two"), tree.join("zwei")).unwrap();
    let made = served.world.command("chmod").args(["755", &format!("{dir}/one/run")]).status();
    assert!(made.unwrap().success());
    tar(&["--create", "--file", &archive, "--directory", &dir, "."]);
    let at = format!("{own}/archive?path=/workspace/tree");
    assert_eq!(served.problem(&["--upload-file", &archive], &at), (204, json!("")));
    let shown = served.shell(&own, "cd tree && one/run && readlink link && cat n*");
    assert_eq!(shown["stdout"], "ran\ntwo\nlong\n");
    let down = served.world.path("down.tar").display().to_string();
    assert_eq!(served.send(&["--output", &down], &at).0, 200);
    let again = served.world.dir("again", &[]).display().to_string();
    tar(&["--extract", "--file", &down, "--directory", &again]);
    let mut same = served.world.command("diff");
    same.args(["--recursive", "--no-dereference", &again, &dir]);
    let same = Ran::of(same.output().unwrap());
    assert_eq!((same.code, &*same.stdout), (Some(0), ""), "{same:?}");
    // What leads out of the folder is not unpacked.
    let evil = served.world.path("evil.tar").display().to_string();
    tar(&[
        "--create",
        "--file",
        &evil,
        "--directory",
        &dir,
        "--transform",
        "s,^two,../two,",
        "-P",
        "two",
    ]);
    let (status, refused) = served.problem(&["--upload-file", &evil], &at);
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_path")), "{refused}");
    let no_archive = tree.join("two").display().to_string();
    let (status, refused) = served.problem(&["--upload-file", &no_archive], &at);
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_request")), "{refused}");
}
