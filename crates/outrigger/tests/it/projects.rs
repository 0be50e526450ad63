//! A directory with what it depends on, its history and the tools that it is worked on with.

use crate::daemon;
use crate::support::{Turn, World, shell};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

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
    let kept = fs::read_dir(world.harness().join("dependencies")).unwrap().count();
    assert_eq!(kept, 2);
    world.ran(0, &args);
    assert_eq!(fs::read_dir(world.harness().join("dependencies")).unwrap().count(), kept);
    let missing = ["run", "--script", &script, "--dir", &dir_name, "--include", "absent", "task"];
    let told = world.ran(4, &missing).stderr;
    assert!(told.contains("absent is no folder of"), "{told}");
}

#[test]
fn a_project_is_prepared_once_for_what_its_lock_file_says() {
    let world = World::new();
    let files: [(&str, &[u8]); 4] = [
        ("package-lock.json", b"one\n"),
        ("package.json", b"{}"),
        ("src/main.js", b"1\n"),
        (".gitignore", b"*.log\n"),
    ];
    let dir = world.dir("project", &files);
    world.git(&dir, &["init", "-q"]);
    world.git(&dir, &["add", "."]);
    world.git(&dir, &["commit", "-qm", "first"]);
    let dir_name = dir.display().to_string();
    let lines = [
        "mkdir -p deps/bin ~/.cache/tool && cp package-lock.json deps/lock && ln -s lock deps/link",
        "printf '#!/bin/sh\\necho prepared\\n' > deps/bin/tool && chmod +x deps/bin/tool && echo seen >> src/main.js && echo made > src/made.js && git log --format=%s > ~/.cache/tool/log",
    ];
    world.configure(&format!("[sandbox]\nsetup = {}\n", json!(lines)));
    let look = "cat deps/link src/made.js src/main.js ~/.cache/tool/log && deps/bin/tool && stat -c %U deps/lock && echo 2 > deps/lock";
    let script = world.script(&[Turn(&[shell(look)]), Turn(&[shell("git status --short")])]);
    let run = || {
        let ran =
            world.ran(0, &["run", "--script", &script, "--dir", &dir_name, "--apply", "task"]);
        ran.stderr.replace("  │ ", "")
    };
    let told = run();
    assert!(told.contains("with what sandbox.setup made: deps, src/made.js"), "{told}");
    // The directory's own files are as they are there, whatever a command did to them.
    assert!(told.contains("one\nmade\n1\nfirst\nprepared\nagent\n"), "{told}");
    assert!(!dir.join("deps").exists() && !dir.join("src/made.js").exists());
    let notes = || {
        let all = fs::read_dir(world.harness().join("dependencies")).unwrap().flatten();
        let names = all.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("setup.")).collect::<Vec<_>>()
    };
    assert_eq!(notes().len(), 1);
    // Neither a commit nor a change of the code makes it run again; what the lock file says does.
    fs::write(dir.join("src/main.js"), "3\n").unwrap();
    world.git(&dir, &["commit", "-qam", "second"]);
    let told = run();
    assert!(told.contains("one\nmade\n3\nfirst\nprepared\n"), "{told}");
    assert_eq!(notes().len(), 1);
    fs::write(dir.join("package-lock.json"), "two\n").unwrap();
    let told = run();
    assert!(told.contains("two\nmade\n3\nsecond\nfirst\nprepared\n"), "{told}");
    assert_eq!(notes().len(), 2);
    // One that fails is told with the end of what it printed, before a session begins.
    world.configure("[sandbox]\nsetup = [\"echo no such tool; exit 3\"]\n");
    let sessions = world.sessions().len();
    let failed = ["run", "--script", &script, "--dir", &dir_name, "task"];
    let told = world.ran(2, &failed).stderr;
    let expected = "sandbox.setup: `echo no such tool; exit 3` failed: exit code 3\n";
    assert!(told.contains(expected) && told.contains("  │ no such tool\n"), "{told}");
    assert_eq!(world.sessions().len(), sessions);
}

/// What a build tool made is as old as it was, and what Python compiled is not compiled again.
#[test]
fn what_was_made_of_the_files_is_newer_than_they_are() {
    let world = World::new();
    let files: [(&str, &[u8]); 5] = [
        ("tool.py", b"x = 1\n"),
        ("__pycache__/tool.pyc", b"compiled"),
        ("deep/pkg/a.py", b"y = 2\n"),
        ("deep/pkg/__pycache__/a.pyc", b"compiled too"),
        ("other/__pycache__/no-source.pyc", b"content"),
    ];
    let dir = world.dir("project", &files);
    let at = |path: &str, nanos: u32| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_700_000_000, nanos);
        fs::File::open(dir.join(path)).unwrap().set_modified(time).unwrap();
    };
    at("tool.py", 123_456_789);
    at("__pycache__/tool.pyc", 123_456_790);
    let look = "stat -c '%n %.9Y' tool.py __pycache__/tool.pyc; cat deep/pkg/__pycache__/a.pyc; echo z > __pycache__/new.pyc; test __pycache__/tool.pyc -nt tool.py && echo newer";
    let script = world.script(&[Turn(&[shell(look)])]);
    let dir_name = dir.display().to_string();
    let args = ["run", "--script", &script, "--dir", &dir_name, "--apply", "task"];
    let told = world.ran(0, &args).stderr.replace("  │ ", "");
    assert!(told.contains("with 2 __pycache__ folders (2 files, 20 bytes)"), "{told}");
    let expected = "tool.py 1700000000.123456789\n__pycache__/tool.pyc 1700000000.123456790\ncompiled toonewer\n";
    assert!(told.contains(expected), "{told}");
    assert!(!dir.join("__pycache__/new.pyc").exists());
    assert!(dir.join("other/__pycache__/no-source.pyc").exists());
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

#[test]
fn in_a_part_of_a_repository_commands_begin_there_and_all_of_it_is_there() {
    let world = World::new();
    let top = world.dir(
        "project",
        &[
            ("shared.txt", b"of all\n"),
            (".gitignore", b"node_modules\n"),
            ("package.json", b"{}"),
            ("node_modules/dep/index.js", b"of the top\n"),
            ("part/main.txt", b"1\n"),
            ("part/ignored/x", b"x"),
        ],
    );
    world.git(&top, &["init", "-q"]);
    world.git(&top, &["add", "shared.txt", "part/main.txt"]);
    world.git(&top, &["commit", "-qm", "the first commit"]);
    let script = world.script(&[
        Turn(&[shell(
            "pwd; cat main.txt ../shared.txt ../node_modules/dep/index.js; git log --format=%s",
        )]),
        Turn(&[("read_file", json!({"file_path": "main.txt"})), ("ls", json!({}))]),
        Turn(&[
            ("write_file", json!({"file_path": "new.txt", "content": "new\n"})),
            ("write_file", json!({"file_path": "../beside.txt", "content": "beside\n"})),
            ("write_file", json!({"file_path": "never.txt", "content": "x"})),
        ]),
    ]);
    // The rules are told of the very file.
    world.configure("[policy]\nfiles = [\"rules.cedar\"]\n");
    let rule = r#"@id("never") forbid (principal, action == Action::"write_files", resource == Path::"/workspace/part/never.txt");"#;
    fs::write(world.path("config/outrigger/rules.cedar"), rule).unwrap();
    let part = top.join("part").display().to_string();
    let ran = world.ran(0, &["run", "--script", &script, "--dir", &part, "--apply", "task"]);
    let told = ran.stderr.replace("  │ ", "");
    let expected = "/workspace/part\n1\nof all\nof the top\nthe first commit\n";
    assert!(told.contains(expected), "{told}");
    assert!(told.contains("commands begin in part"), "{told}");
    let read = |path: &str| fs::read_to_string(top.join(path)).unwrap();
    assert_eq!((read("part/new.txt"), read("beside.txt")), ("new\n".into(), "beside\n".into()));
    assert!(!top.join("part/never.txt").exists() && told.contains("never"), "{told}");
    // A session is found where it was begun.
    let listed = |dir: &str| world.ran(0, &["sessions", "ls", "--dir", dir]).stdout;
    assert_eq!(listed(&part).lines().count(), 1);
    assert_eq!(listed(&top.display().to_string()), "");
}

/// A root filesystem with a shell, `cat`, and a file that says that it is one.
pub(crate) fn root_filesystem(world: &World) -> String {
    let root = world.path("root");
    let mut files = vec!["/bin/sh".to_owned(), "/bin/cat".to_owned()];
    for program in ["/bin/sh", "/bin/cat"] {
        let told = Command::new("ldd").arg(program).output().expect("this test needs `ldd`");
        let told = String::from_utf8(told.stdout).unwrap();
        files.extend(told.split_whitespace().filter(|it| it.starts_with('/')).map(str::to_owned));
    }
    for file in files {
        let inside = root.join(file.trim_start_matches('/'));
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        fs::copy(&file, inside).unwrap();
    }
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/which"), "of the image\n").unwrap();
    let archive = world.path("root.tar").display().to_string();
    let root = root.display().to_string();
    let made = Command::new("tar").args(["-cf", &archive, "-C", &root, "."]).status();
    assert!(made.expect("this test needs `tar`").success());
    archive
}

#[test]
fn worktrees_and_submodules_have_their_history() {
    let world = World::new();
    let library = world.dir("library", &[("lib.txt", b"1\n")]);
    let dir = world.dir("project", &[("main.txt", b"1\n")]);
    for (dir, what) in [(&library, "the library"), (&dir, "the project")] {
        world.git(dir, &["init", "-q"]);
        world.git(dir, &["add", "."]);
        world.git(dir, &["commit", "-qm", what]);
    }
    let (library, beside) = (library.display().to_string(), world.path("beside"));
    world.git(&dir, &["worktree", "add", "-q", beside.to_str().unwrap(), "-b", "other"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q", &library, "part"];
    world.git(&dir, &add);
    let script = world.script(&[Turn(&[shell("git log --format=%s; echo 2 > new.txt")])]);
    for (dir, history) in [(beside, "the project\n"), (dir.join("part"), "the library\n")] {
        let name = dir.display().to_string();
        let ran = world.ran(0, &["run", "--script", &script, "--dir", &name, "--apply", "task"]);
        assert!(ran.stderr.replace("  │ ", "").contains(history), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(dir.join("new.txt")).unwrap(), "2\n");
    }
}

#[test]
fn a_run_can_stand_on_an_image() {
    let world = World::new();
    let archive = root_filesystem(&world);
    world.ran(0, &["sandbox", "import", "small", &archive]);
    let dir = world.dir("project", &[("a.txt", b"of the directory\n")]).display().to_string();
    let script = world.script(&[Turn(&[shell("cat /etc/which a.txt; git log")])]);
    let run = |image: &str| {
        vec!["run", "--script", &script, "--dir", &dir, "--image", image, "task"]
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let ran = |code: i32, image: &str| {
        let args = run(image);
        world.ran(code, &args.iter().map(String::as_str).collect::<Vec<_>>()).stderr
    };
    let told = ran(0, "small").replace("  │ ", "");
    assert!(told.contains("of the image\nof the directory\n"), "{told}");
    assert!(told.contains("git: not found"), "{told}");
    // What is no template is looked for in a registry, before a session begins.
    let told = ran(13, "127.0.0.1:1/team/tools:1.2");
    assert!(told.contains("the image 127.0.0.1:1/team/tools:1.2: "), "{told}");
    assert_eq!(world.sessions().len(), 1);
}

#[test]
fn a_devcontainer_is_made_of_what_a_person_trusts() {
    let world = World::new();
    let archive = root_filesystem(&world);
    world.ran(0, &["sandbox", "import", "small", &archive]);
    let description = br#"{
        // The image is a template that is there.
        "image": "small",
        "features": { "ghcr.io/devcontainers/features/node:1": {} },
        "containerEnv": { "COLOUR": "blue", "MODE": "${localEnv:HOME:none}" },
        "postCreateCommand": "echo of the command > made",
    }"#;
    let files: [(&str, &[u8]); 5] = [
        (".devcontainer/devcontainer.json", description),
        ("package.json", b"{}"),
        ("node_modules/dep/index.js", b"of the dependency\n"),
        (".gitignore", b"node_modules\n"),
        ("sub/a.txt", b"of the directory\n"),
    ];
    let dir = world.dir("project", &files);
    world.git(&dir, &["init", "-q"]);
    world.git(&dir, &["add", "."]);
    world.git(&dir, &["commit", "-qm", "first"]);
    let line = "cat /etc/which node_modules/dep/index.js made; echo $COLOUR $MODE; cat .git/HEAD; test -d /var/outrigger/objects/pack && echo objects";
    let script = world.script(&[Turn(&[shell(line)])]);
    let (dir, image) = (dir.display().to_string(), ".devcontainer/devcontainer.json");
    let run = ["run", "--script", &script, "--dir", &dir, "--image", image, "task"];
    // Nobody looked at it yet.
    let told = world.ran(10, &run).stderr;
    assert!(told.contains(".devcontainer/devcontainer.json is not trusted"), "{told}");
    assert!(told.contains("outrigger trust --dir"), "{told}");
    assert!(world.sessions().is_empty());
    let shown = world.ran(0, &["trust", "--dir", &dir, "--image", image, "--yes"]).stdout;
    assert!(shown.contains("sandboxes begin with the image small"), "{shown}");
    assert!(shown.contains("a sandbox runs, once: echo of the command"), "{shown}");
    let told = world.ran(0, &run).stderr.replace("  │ ", "");
    let expected = "of the image\nof the dependency\nof the command\nblue none\nref: refs/heads/";
    assert!(told.contains(expected) && told.contains("\nobjects\n"), "{told}");
    assert!(
        told.contains("nothing comes of these in .devcontainer/devcontainer.json: features"),
        "{told}"
    );
    // What was made for a project is nobody else's to begin with.
    let opened = world.events(&world.session())[0]["opened"].clone();
    let made = opened["sandboxes"][0]["template"].as_str().expect("it has a template").to_owned();
    assert!(made.starts_with("image."), "{made}");
    let told = world.ran(2, &["run", "--dir", &dir, "--script", &script, "--image", &made, "x"]);
    assert!(told.stderr.contains("there is no template of that name"), "{}", told.stderr);
    // Changed, it is looked at again.
    fs::write(world.path("project").join(image), r#"{ "image": "other" }"#).unwrap();
    world.ran(10, &run);
}

#[test]
fn a_dockerfile_is_built_where_an_engine_is() {
    let daemon = daemon::shared();
    let world = World::new();
    let archive = root_filesystem(&world);
    world.configure(&format!("[docker]\nsocket = {:?}\n", daemon.socket.display().to_string()));
    let build = b"FROM scratch AS base\nADD root.tar /\nARG WHICH\nENV WHICH=$WHICH\n\
        FROM base AS last\nFROM base AS never\nRUN false\n";
    let container = br#"{ "build": {
        "dockerfile": "Dockerfile", "context": "..", "target": "last", "args": { "WHICH": "built" }
    } }"#;
    let archived = fs::read(archive).unwrap();
    let files: [(&str, &[u8]); 4] = [
        ("container/devcontainer.json", container),
        ("container/Dockerfile", build),
        ("root.tar", &archived),
        ("a.txt", b"of the directory\n"),
    ];
    let dir = world.dir("project", &files).display().to_string();
    let script = world.script(&[Turn(&[shell("cat /etc/which a.txt; echo $WHICH")])]);
    let image = "container/devcontainer.json";
    world.ran(0, &["trust", "--dir", &dir, "--image", image, "--yes"]);
    let run = ["run", "--script", &script, "--dir", &dir, "--image", image, "task"];
    for _ in 0..2 {
        let told = world.ran(0, &run).stderr.replace("  │ ", "");
        assert!(told.contains("of the image\nof the directory\nbuilt\n"), "{told}");
    }
    let listed = world.ran(0, &["sandbox", "templates", "ls"]).stdout;
    assert_eq!(listed.matches("built-").count(), 1, "{listed}");
    // Its Dockerfile alone: the end of what a failed build prints is shown.
    fs::write(world.path("project").join("Dockerfile"), "FROM scratch\nCOPY absent /\n").unwrap();
    world.ran(0, &["trust", "--dir", &dir, "--image", "Dockerfile", "--yes"]);
    let run = ["run", "--script", &script, "--dir", &dir, "--image", "Dockerfile", "task"];
    let told = world.ran(13, &run).stderr;
    assert!(told.contains("building Dockerfile") && told.contains("absent"), "{told}");
}
