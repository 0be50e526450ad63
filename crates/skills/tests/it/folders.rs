//! Folders: what may be in one, its digest, the way in and out of a disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use outrigger_skills::limits::{FILE_BYTES_MAX, FILES_MAX, PATH_NAMES_MAX, TOTAL_BYTES_MAX};
use outrigger_skills::{Reason, SkillFile, SkillFiles, digest, disk, skill_of, validate};

use crate::{only, pip};

const TEXT: &str = "---\nname: a\ndescription: b\n---\nbody\n";

fn skill() -> SkillFiles {
    let mut files = only(TEXT);
    let script = SkillFile { bytes: b"#!/bin/sh\n".to_vec(), executable: true };
    files.insert("scripts/run.sh".to_owned(), script);
    files.insert("references/deep/a.md".to_owned(), SkillFile::default());
    files
}

#[test]
fn a_path_that_is_none_of_a_skill_is_named() {
    let long = "a/".repeat(PATH_NAMES_MAX) + "a";
    let name = "a".repeat(256);
    for path in [
        "/etc/passwd",
        "../a",
        "a/../b",
        "a//b",
        "a/",
        "",
        ".",
        "a\\b",
        "a\nb",
        "a\0b",
        &long,
        &name,
    ] {
        let mut files = skill();
        files.insert(path.to_owned(), SkillFile::default());
        let problems = validate(&files, "a");
        assert!(problems.iter().any(|problem| problem.path == path), "{path:?}: {problems:?}");
    }
    let mut files = skill();
    files.insert("scripts".to_owned(), SkillFile::default());
    assert_eq!(validate(&files, "a")[0].reason, Reason::FileAndFolder);
}

#[test]
fn a_folder_that_is_too_much_is_refused() {
    let mut many = skill();
    many.extend((0..FILES_MAX).map(|n| (format!("f{n}"), SkillFile::default())));
    assert!(
        matches!(validate(&many, "a")[..], [ref one] if matches!(one.reason, Reason::TooMuch { .. }))
    );

    let mut large = skill();
    large.insert(
        "x".to_owned(),
        SkillFile { bytes: vec![0; FILE_BYTES_MAX + 1], executable: false },
    );
    assert_eq!(validate(&large, "a")[0].path, "x");

    let mut heavy = skill();
    for name in ["x", "y", "z"] {
        heavy.insert(
            name.to_owned(),
            SkillFile { bytes: vec![0; FILE_BYTES_MAX], executable: false },
        );
    }
    const { assert!(3 * FILE_BYTES_MAX > TOTAL_BYTES_MAX) };
    assert_eq!(validate(&heavy, "a")[0].path, ".");
}

#[test]
fn either_spelling_of_the_file_makes_a_skill_and_capitals_win() {
    let small = SkillFile { bytes: TEXT.as_bytes().to_vec(), executable: false };
    let mut files = SkillFiles::from([("skill.md".to_owned(), small)]);
    assert_eq!(skill_of(&files, "a").unwrap().body, "body");
    files.extend(only("no skill"));
    assert_eq!(validate(&files, "a")[0].reason, Reason::NoFrontmatter);
    assert_eq!(validate(&SkillFiles::new(), "a")[0].reason, Reason::NoSkillFile);
    files.get_mut("SKILL.md").unwrap().bytes = vec![0xff];
    assert_eq!(validate(&files, "a")[0].reason, Reason::NotText);
}

#[test]
fn frontmatter_made_to_be_too_much_is_refused() {
    let front = |text: String| format!("---\n{text}\n---\n");
    let texts = [
        front(format!("name: a\ndescription: b\nmetadata:\n {}x", "- ".repeat(30_000))),
        front("[".repeat(60_000)),
        front("{".repeat(60_000)),
        front("? ".repeat(30_000)),
        front(format!("name: {}", "\"\\n".repeat(20_000))),
        front("a: &a [*a, *a]\n".repeat(3_000)),
        front((0..6_000).map(|n| format!("{n}: x\n")).collect()),
        front("!<".repeat(30_000)),
        front("'".repeat(60_001)),
        front("a: |\n".repeat(12_000)),
        front(" ".repeat(60_000)),
        front("x".repeat(70_000)),
        "-".repeat(300_000),
    ];
    for text in texts {
        assert_ne!(validate(&only(&text), "a"), [], "{}", &text[..30]);
    }
}

#[test]
fn the_digest_tells_every_part_of_a_folder() {
    let own = digest(&skill());
    assert_eq!(own, digest(&skill()));
    let changes: [fn(&mut SkillFiles); 6] = [
        |files| files.get_mut("SKILL.md").unwrap().bytes.push(b'x'),
        |files| files.get_mut("SKILL.md").unwrap().executable = true,
        |files| drop(files.remove("references/deep/a.md")),
        |files| drop(files.insert("x".to_owned(), SkillFile::default())),
        |files| {
            let file = files.remove("scripts/run.sh").unwrap();
            files.insert("scripts/run".to_owned(), file);
        },
        |files| {
            // The same bytes, in another file.
            let moved = files.get_mut("scripts/run.sh").unwrap().bytes.split_off(3);
            files.get_mut("references/deep/a.md").unwrap().bytes = moved;
        },
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut files = skill();
        change(&mut files);
        assert_ne!(digest(&files), own, "change {index}");
    }
    // Written down: a pin of another time must still hold.
    let hex: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "521cc0703a2fad99c296f9e7034f01b90ac09a727f9996acd5982349166fd450");
}

#[test]
fn a_folder_comes_back_as_it_was_written() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("a");
    disk::write(&skill(), &folder).unwrap();
    assert_eq!(disk::read(&folder).unwrap(), skill());
    let mode = fs::metadata(folder.join("scripts/run.sh")).unwrap().permissions().mode();
    assert_ne!(mode & 0o100, 0);
    let again = disk::write(&skill(), &folder).unwrap_err();
    assert!(matches!(again, disk::Error::Exists(_)), "{again}");
    let bad = SkillFiles::from([("../x".to_owned(), SkillFile::default())]);
    assert!(disk::write(&bad, &home.path().join("b")).is_err());
    // Nothing is left of what was not finished.
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn no_link_is_followed_and_nothing_but_files_is_read() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("secret"), "x").unwrap();
    let make = |name: &str| {
        let folder = home.path().join(name);
        disk::write(&skill(), &folder).unwrap();
        folder
    };
    let refused = |folder: &Path, path: &str| match disk::read(folder).unwrap_err() {
        disk::Error::Problem(problem) => assert_eq!(problem.path, path),
        other => panic!("{other}"),
    };
    let folder = make("file");
    symlink("../secret", folder.join("link")).unwrap();
    refused(&folder, "link");
    let folder = make("folder");
    symlink("..", folder.join("scripts/up")).unwrap();
    refused(&folder, "scripts/up");
    let folder = make("pipe");
    let made =
        Command::new("mkfifo").arg(folder.join("pipe")).status().expect("this test needs `mkfifo`");
    assert!(made.success());
    refused(&folder, "pipe");
    let folder = make("socket");
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
    refused(&folder, "socket");
    let folder = make("large");
    let file = fs::File::create(folder.join("x")).unwrap();
    file.set_len(1 << 40).unwrap();
    refused(&folder, "x");
    let folder = make("many");
    (0..FILES_MAX).for_each(|n| fs::write(folder.join(format!("f{n}")), "").unwrap());
    refused(&folder, ".");
    let folder = make("deep");
    fs::create_dir_all(folder.join("d/".repeat(PATH_NAMES_MAX + 4))).unwrap();
    assert!(matches!(disk::read(&folder), Err(disk::Error::Problem(_))));
}

#[test]
fn the_program_of_the_reference_accepts_what_is_exported() {
    let home = tempfile::tempdir().unwrap();
    let program =
        pip::installed("skills-ref", "0.1.1", &["strictyaml==1.7.3"]).join("bin/agentskills");
    let validate = |folder: &Path| {
        let done = Command::new(&program).arg("validate").arg(folder).output();
        done.expect("this test needs `agentskills`").status.success()
    };
    disk::write(&skill(), &home.path().join("a")).unwrap();
    assert!(validate(&home.path().join("a")));
    disk::write(&skill(), &home.path().join("b")).unwrap();
    assert!(!validate(&home.path().join("b")), "its folder has another name");
}
