//! A directory with what it depends on, its history and the tools that it is worked on with.

use crate::support::{Turn, World, shell};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_project_is_worked_on_with_all_that_it_needs() {
    let world = World::new();
    let dir = world.dir(
        "project",
        &[
            ("package.json", b"{}"),
            (".gitignore", b"node_modules\nlarge\n"),
            ("main.js", b"1\n"),
            ("node_modules/dep/index.js", b"of the dependency\n"),
            ("large/data", b"ignored data\n"),
            ("home/tools/bin/own-tool", b"#!/bin/sh\necho own tool\n"),
        ],
    );
    world.git(&dir, &["init", "-q"]);
    world.git(&dir, &["add", "package.json", ".gitignore", "main.js"]);
    world.git(&dir, &["commit", "-qm", "the first commit"]);
    let script = world.script(&[
        Turn(&[shell("cat node_modules/dep/index.js large/data; git log --format=%s; git status --short; echo $COLOUR")]),
        Turn(&[shell("echo x > node_modules/dep/index.js && echo y > large/data && echo 2 > main.js && git commit -qam second && git log --format=%s; mkdir cache && printf x | tee cache/CACHEDIR.TAG cache/y")]),
    ]);
    world.configure("[sandbox.env]\nCOLOUR = \"blue\"\n");
    let dir_name = dir.display().to_string();
    let args =
        ["run", "--script", &script, "--dir", &dir_name, "--include", "large", "--apply", "task"];
    let ran = world.ran(0, &args);
    assert!(
        ran.stderr.contains("with large (1 file, 13 bytes), node_modules (1 file, 18 bytes)"),
        "{}",
        ran.stderr
    );
    let expected = "of the dependency\nignored data\nthe first commit\n?? home/\nblue\n";
    let told = ran.stderr.replace("  │ ", "");
    assert!(told.contains(expected), "{told}");
    assert!(told.contains("second\nthe first commit\n"), "{told}");
    // What comes along is not written back, nor what a cache holds; the rest is.
    let read = |path: &str| fs::read_to_string(dir.join(path)).unwrap();
    assert_eq!(read("node_modules/dep/index.js"), "of the dependency\n");
    assert_eq!(
        (read("large/data"), read("main.js")),
        ("ignored data\n".to_owned(), "2\n".to_owned())
    );
    assert!(!dir.join("cache").exists());
    assert_eq!(world.git(&dir, &["log", "--format=%s"]), "the first commit\n");
    // The second time nothing is packed anew, and a session finds its template again.
    let kept = fs::read_dir(world.data().join("dependencies")).unwrap().count();
    assert_eq!(kept, 2);
    world.ran(0, &args);
    assert_eq!(fs::read_dir(world.data().join("dependencies")).unwrap().count(), kept);
    let missing = ["run", "--script", &script, "--dir", &dir_name, "--include", "absent", "task"];
    let told = world.ran(4, &missing).stderr;
    assert!(told.contains("absent is no folder of"), "{told}");
}

#[test]
fn tools_of_the_path_are_found_and_shown() {
    let world = World::new();
    // Not beneath /tmp, which a sandbox has of its own.
    let tools = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bin = tools.path().join("kit/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(tools.path().join("kit/lib")).unwrap();
    fs::write(tools.path().join("kit/lib/text"), "of its library\n").unwrap();
    let program = format!("#!/bin/sh\ncat {}/kit/lib/text\n", tools.path().display());
    fs::write(bin.join("kit-tool"), program).unwrap();
    for path in [tools.path(), &bin, &bin.join("kit-tool")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let dir = world.dir("project", &[("a", b"a")]).display().to_string();
    let script = world.script(&[Turn(&[shell("kit-tool; echo $SECRET_TOKEN.")])]);
    let run = |config: &str| {
        world.configure(config);
        let mut command = world.outrigger(&["run", "--script", &script, "--dir", &dir, "task"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).env("SECRET_TOKEN", "x");
        crate::support::Ran::of(command.output().unwrap()).expect(0).stderr
    };
    let told = run("");
    assert!(told.contains("  │ of its library\n  │ .\n"), "{told}");
    let told = run("[sandbox]\ntoolchains = false\n");
    assert!(told.contains("kit-tool: command not found"), "{told}");
}
