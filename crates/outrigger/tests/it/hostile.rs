//! Repositories and sandboxes that attack the host: what git, an editor or a shell would run
//! by itself, and what leads elsewhere.

use crate::support::{OUTRIGGER, Ran, Turn, World, fed, shell, until};
use rustix::fs::{CWD, Mode, mknodat};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Everything of git's settings that is a program: each leaves a mark.
const PROGRAMS: &str = "\n[core]\nfsmonitor = MARK\nhooksPath = .hooks\npager = MARK\n\
    editor = MARK\nsshCommand = MARK\ngitProxy = MARK\naskPass = MARK\n\
    [diff]\nexternal = MARK\n[credential]\nhelper = !MARK\n\
    [filter \"evil\"]\nclean = MARK\nsmudge = MARK\nprocess = MARK\nrequired = true\n\
    [uploadpack]\npackObjectsHook = MARK\n[gpg]\nprogram = MARK\n";

/// A program that leaves a mark and does nothing else.
fn marker(world: &World) -> (String, PathBuf) {
    let mark = world.path("mark");
    let program = world.path("leave-a-mark");
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 1\n", mark.display()))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program.display().to_string(), mark)
}

fn append(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap_or_default();
    fs::write(path, before + text).unwrap();
}

fn run_in(world: &World, dir: &Path, turns: &[Turn<'_>], flags: &[&str]) -> Ran {
    let (script, dir) = (world.script(turns), dir.display().to_string());
    let mut args = vec!["run", "Do it.", "--dir", &dir, "--script", &script, "--json"];
    args.extend(flags);
    world.run(&args)
}

/// What the commands of the newest session put out.
fn printed(world: &World) -> String {
    let session = world.sessions()[0]["session"].as_str().unwrap().to_owned();
    let text = |event: Value| {
        Some(event["settled"]["outcome"]["done"]["output"]["text"].as_str()?.to_owned())
    };
    world.events(&session).into_iter().filter_map(text).collect()
}

#[test]
fn a_repository_with_programs_in_its_settings_runs_none_of_them() {
    let world = World::new();
    let (program, mark) = marker(&world);
    let dir = world.dir("repo", &[("top", b"top\n"), ("sub/file", b"file\n")]);
    world.git(&dir, &["init", "-q"]);
    world.git(&dir, &["add", "."]);
    world.git(&dir, &["commit", "-qm", "all"]);
    // A tree that is not there, which whoever asks git for the index has it fetch, from a
    // remote that is a program.
    world.git(&dir, &["sparse-checkout", "set", "--cone", "--sparse-index"]);
    let tree = world.git(&dir, &["rev-parse", "HEAD:sub"]);
    let (folder, name) = tree.trim().split_at(2);
    fs::remove_file(dir.join(".git/objects").join(folder).join(name)).unwrap();
    let remote = format!(
        "\n[extensions]\npartialClone = origin\n[remote \"origin\"]\nurl = .\npromisor = true\n\
         uploadpack = {program}\nreceivepack = {program}\nproxy = {program}\n{}",
        PROGRAMS.replace("MARK", &program)
    );
    append(&dir.join(".git/config"), &remote);
    append(&dir.join(".git/config.worktree"), &PROGRAMS.replace("MARK", &program));
    fs::write(dir.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
    for hook in ["post-index-change", "pre-commit", "fsmonitor-watchman", "reference-transaction"] {
        fs::create_dir_all(dir.join(".hooks")).unwrap();
        for folder in [".hooks", ".git/hooks"] {
            fs::copy(&program, dir.join(folder).join(hook)).unwrap();
        }
    }
    let ran = run_in(&world, &dir, &[Turn(&[shell("cat top; ls -A")])], &[]).expect(0);
    assert!(!mark.exists(), "{ran:?}\n{}", fs::read_to_string(&mark).unwrap());
    assert!(printed(&world).starts_with("top\n"), "{}", printed(&world));
}

#[test]
fn no_link_on_the_way_brings_files_of_the_host_into_the_sandbox() {
    let world = World::new();
    let keys = world.dir("keys", &[("id", b"the secret key\n")]);
    for (link, file, target) in [
        ("conf", "config", ".git"),
        ("l", "id", "../keys"),
        ("deep/l", "id", keys.to_str().unwrap()),
    ] {
        let path = format!("{link}/{file}");
        let dir = world.dir(&format!("to {file} by {}", link.len()), &[(&path, b"x\n")]);
        world.git(&dir, &["init", "-q"]);
        world.git(&dir, &["config", "remote.origin.url", "https://the-secret@example.org/x"]);
        world.git(&dir, &["add", "."]);
        fs::remove_dir_all(dir.join(link)).unwrap();
        symlink(target, dir.join(link)).unwrap();
        let look = format!("readlink {link}; cat {path} || ls -AR");
        let ran = run_in(&world, &dir, &[Turn(&[shell(&look)])], &[]);
        let archives = archived(&world);
        assert!(!archives.contains("the secret") && !archives.contains("the-secret"), "{archives}");
        ran.expect(0);
        // The link itself is a file of the directory like others.
        assert!(printed(&world).starts_with(target), "{}", printed(&world));
    }
}

/// Everything that was ever taken into the store of an installation.
fn archived(world: &World) -> String {
    let find = "find . -type f -print0 | xargs -0 cat";
    let mut sh = world.command("sh");
    let output = sh.args(["-c", find]).current_dir(world.harness().join("blobs")).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn ignore_files_that_are_no_files_hold_nobody_up_and_tell_nothing() {
    // A rule of the secret's own text would say by what it hides what the secret is.
    let world = World::new();
    world.dir("keys", &[("id", b"guess\n")]);
    for (number, at) in
        [".gitignore", "sub/.gitignore", ".git/info/exclude"].into_iter().enumerate()
    {
        for kind in ["fifo", "link", "endless"] {
            let dir =
                world.dir(&format!("{kind}-{number}"), &[("guess", b"x\n"), ("sub/a", b"a\n")]);
            if at.starts_with(".git/") {
                world.git(&dir, &["init", "-q"]);
                fs::remove_file(dir.join(at)).unwrap();
            }
            match kind {
                "fifo" => {
                    let mode = Mode::from_raw_mode(0o644);
                    mknodat(CWD, dir.join(at), rustix::fs::FileType::Fifo, mode, 0).unwrap();
                }
                "link" => symlink(world.path("keys/id"), dir.join(at)).unwrap(),
                _ => symlink("/dev/zero", dir.join(at)).unwrap(),
            }
            let (script, target) =
                (world.script(&[Turn(&[shell("ls -A")])]), dir.display().to_string());
            let mut running = world.start(&["run", "x", "--dir", &target, "--script", &script]);
            until("it ended", || running.has_ended().then_some(()));
            let ran = running.end();
            if ran.code == Some(0) {
                assert!(printed(&world).contains("guess\n"), "{kind} {at}: {}", printed(&world));
            } else {
                assert_eq!(ran.code, Some(2), "{kind} {at}: {ran:?}");
                assert!(ran.stderr.contains(at), "{kind} {at}: {}", ran.stderr);
            }
        }
    }
}

/// What an agent writes so that a folder is a repository whose settings are programs.
fn planted(folder: &str, program: &str, parts: &[&str]) -> String {
    let mut line = format!("mkdir -p {folder} && cd {folder}");
    for part in parts {
        line += &match *part {
            "HEAD" | "head" => format!(" && echo 'ref: refs/heads/main' > {part}"),
            "config" => format!(
                " && printf '[core]\\nrepositoryformatversion = 0\\nworktree = .\\nfsmonitor = {program}\\n' > config"
            ),
            "commondir" => " && mkdir -p ../c/objects/x ../c/refs/x && echo ../c > commondir && \
                touch ../c/objects/x/y ../c/refs/x/y"
                .to_owned(),
            folder => format!(" && mkdir -p {folder}/x && touch {folder}/x/y"),
        };
    }
    line
}

#[test]
fn no_folder_that_git_would_take_for_a_repository_comes_back() {
    let shapes: [(&str, &[&str]); 4] = [
        ("vendor", &["HEAD", "config", "objects", "refs"]),
        ("deep/er", &["head", "config", "Objects", "REFS"]),
        ("vendor", &["HEAD", "config", "commondir"]),
        // The rest of it stands there already.
        ("half", &["HEAD", "config"]),
    ];
    for (folder, parts) in shapes {
        let world = World::new();
        let (program, mark) = marker(&world);
        let files: [(&str, &[u8]); 3] =
            [("file", b"file\n"), ("half/objects/a/b", b"x\n"), ("half/refs/a", b"x\n")];
        let dir = world.dir("repo", &files);
        let plant = planted(folder, &program, parts);
        // Also where somebody accepts all that can be accepted.
        let ran = run_in(&world, &dir, &[Turn(&[shell(&plant)])], &["--apply=all"]).expect(12);
        let said = &ran.json()["error"];
        let message = said["message"].as_str().unwrap();
        assert!(message.contains(folder) && message.contains("repository"), "{message}");
        let mut git = world.command("git");
        let at = if dir.join(folder).is_dir() { dir.join(folder) } else { dir.clone() };
        drop(git.args(["status", "--short"]).current_dir(at).output().unwrap());
        assert!(!mark.exists(), "{folder}: {}", fs::read_to_string(&mark).unwrap());
        assert!(!dir.join("vendor").exists() && !dir.join("half/HEAD").exists(), "{folder}");
        // The patch names it before anything else, and nobody is told to apply it.
        let patch = fs::read_to_string(ran.json()["patch"].as_str().unwrap()).unwrap();
        assert!(patch.starts_with("# ") && patch.contains(folder), "{patch}");
    }
}

#[test]
fn names_that_a_file_system_folds_to_git_never_come_back() {
    for name in
        [".git\u{200c}", ".g\u{200d}it", "GIT~1", ".git ", ".git.", ".git::$INDEX_ALLOCATION"]
    {
        let world = World::new();
        let dir = world.dir("repo", &[("file", b"file\n")]);
        let plant = format!("mkdir -p 'a/{name}/hooks' && echo x > 'a/{name}/hooks/post-checkout'");
        run_in(&world, &dir, &[Turn(&[shell(&plant)])], &["--apply=all"]).expect(12);
        assert!(!dir.join("a").exists(), "{name}");
    }
}

/// What a person would be asked about, one of a kind.
const OBEYED: [&str; 12] = [
    ".envrc",
    "sub/.vscode/tasks.json",
    ".devcontainer/devcontainer.json",
    ".gitattributes",
    ".gitmodules",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".husky/pre-commit",
    ".cargo/config.toml",
    ".npmrc",
    "site/x.PTH",
    "sub/.Envrc",
];

#[test]
fn what_programs_run_by_themselves_is_named_and_comes_back_only_when_accepted() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n"), ("tool", b"#!/bin/sh\n")]);
    let write = |path: &str| format!("mkdir -p $(dirname {path}) && echo x > {path} && ");
    let plant: String = OBEYED.map(write).concat() + "chmod +x tool && echo more >> file";
    let turns = [Turn(&[shell(&plant)])];
    let ran = run_in(&world, &dir, &turns, &["--apply"]).expect(12);
    let result = ran.json();
    let error = &result["error"];
    assert_eq!((&result["applied"], &error["code"]), (&false.into(), &"denied".into()));
    let patch = fs::read_to_string(result["patch"].as_str().unwrap()).unwrap();
    for path in OBEYED.into_iter().chain(["tool"]) {
        let named = result["hazards"].as_array().unwrap().iter();
        assert_eq!(named.filter(|it| it["path"] == path).count(), 1, "{path}: {result}");
        let heading = patch.split("diff --git").next().unwrap();
        assert!(heading.contains(&format!("# {path}: ")), "{path}: {heading}");
    }
    assert_eq!(result["hazards"].as_array().unwrap().len(), OBEYED.len() + 1, "{result}");
    // All or nothing, and nothing.
    assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "file\n");
    let session = world.session();
    // On a terminal the person is asked, and answers.
    let answered = |answer: &str, code: i32| {
        let line =
            format!("printf '{answer}\\n' | script --quiet --return --command \"$LINE\" /dev/null");
        let mut terminal = world.command("sh");
        terminal.args(["-c", &line]).env("TERM", "dumb").env("SHELL", "/bin/sh");
        let data = world.data().display().to_string();
        let resume = format!("{OUTRIGGER} --data-dir {data} sessions resume {session} --apply");
        Ran::of(terminal.env("LINE", resume).output().unwrap()).expect(code).stdout
    };
    let shown = answered("n", 12);
    assert!(shown.contains(".envrc: direnv") && shown.contains("[y/N]"), "{shown}");
    assert!(!dir.join(".envrc").exists());
    answered("y", 0);
    assert!(OBEYED.iter().all(|path| dir.join(path).exists()));
    assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "file\nmore\n");
    // The patch is one that git takes, with what it says first.
    let copy = world.dir("copy", &[("file", b"file\n"), ("tool", b"#!/bin/sh\n")]);
    world.git(&copy, &["apply", result["patch"].as_str().unwrap()]);
    assert!(copy.join(".envrc").exists());
}

#[test]
fn special_files_that_stay_in_the_sandbox_are_named() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n"), (".gitignore", b"run/\n")]);
    let make = "mkfifo pipe; mkdir run; mkfifo run/pipe; rm file; mkfifo file";
    let (script, target) = (world.script(&[Turn(&[shell(make)])]), dir.display().to_string());
    let args = ["run", "x", "--dir", &target, "--script", &script, "--apply"];
    let told = world.ran(0, &args).stderr;
    for path in ["pipe", "file"] {
        let line = format!("! not copied: {path}: a FIFO, device or socket\n");
        assert!(told.contains(&line), "{path}: {told}");
    }
    assert!(!told.contains("run/pipe: a FIFO"), "{told}");
    assert!(!dir.join("pipe").exists() && !dir.join("file").exists());
}

#[test]
fn what_is_accepted_beforehand_comes_back_unasked() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let turns = [Turn(&[shell("echo x > .envrc && echo x > run.sh && chmod +x run.sh")])];
    let ran = run_in(&world, &dir, &turns, &["--apply=all"]).expect(0);
    assert_eq!(ran.json()["hazards"].as_array().unwrap().len(), 2);
    assert!(dir.join(".envrc").exists() && dir.join("run.sh").exists());
}

#[test]
fn a_link_into_git_or_out_of_the_directory_never_comes_back() {
    for target in [".git/config", "sub/../.git", ".GIT", "..", "/etc/passwd", "sub/../../x"] {
        let world = World::new();
        let dir = world.dir("repo", &[("file", b"file\n"), ("sub/a", b"a\n")]);
        let turns = [Turn(&[shell(&format!("ln -s {target} link"))])];
        let ran = run_in(&world, &dir, &turns, &["--apply=all"]).expect(12);
        assert!(fs::symlink_metadata(dir.join("link")).is_err(), "{target}");
        assert_eq!(ran.json()["hazards"][0]["path"], "link", "{target}");
    }
}

/// Runs the binary under a mask that leaves others nothing.
fn masked(world: &World, args: &[&str]) -> Ran {
    let mut sh = world.command("sh");
    sh.args(["-c", "umask 077; exec \"$@\"", "sh", OUTRIGGER, "--data-dir"]);
    Ran::of(sh.arg(world.data()).args(args).output().unwrap()).expect(0)
}

#[test]
fn what_is_written_on_the_host_has_what_the_umask_leaves() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let edit = "mkdir new; echo x > new/file; echo x > tool; chmod +x tool";
    let (script, target) = (world.script(&[Turn(&[shell(edit)])]), dir.display().to_string());
    masked(&world, &["run", "x", "--dir", &target, "--script", &script, "--apply=all"]);
    let session = world.session();
    masked(&world, &["sandbox", "cp", &format!("{session}.work:."), "out"]);
    masked(&world, &["sandbox", "cp", &format!("{session}.work:tool"), "one"]);
    let skill = b"---\nname: greet\ndescription: Greets.\n---\nSay hello.\n";
    world.dir("given/greet", &[("SKILL.md", skill), ("run.sh", b"#!/bin/sh\n")]);
    world.ran(0, &["skills", "import", "given/greet"]);
    masked(&world, &["skills", "export", "greet", "exported"]);
    let mode =
        |path: &str| fs::symlink_metadata(world.path(path)).unwrap().permissions().mode() & 0o777;
    for (path, expected) in [
        ("repo/new", 0o700),
        ("repo/new/file", 0o600),
        ("repo/tool", 0o700),
        ("out", 0o700),
        ("out/new/file", 0o600),
        ("out/tool", 0o700),
        ("one", 0o700),
        ("exported", 0o700),
        ("exported/SKILL.md", 0o600),
    ] {
        assert_eq!(mode(path), expected, "{path} has {:o}", mode(path));
    }
}

#[test]
fn a_data_directory_that_others_own_or_may_write_is_refused() {
    let world = World::new();
    let listed = |data: &Path, code: i32| {
        let mut command = world.command(OUTRIGGER);
        command.arg("--data-dir").arg(data).args(["sessions", "ls"]);
        Ran::of(command.output().unwrap()).expect(code).stderr
    };
    let refused = |data: &Path, said: &str| {
        let told = listed(data, 15);
        assert!(told.contains(said), "{said}: {told}");
    };
    let mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let open = world.dir("open", &[]);
    mode(&open, 0o777);
    refused(&open, "others may write");
    // Whoever may write above it can put another in its place.
    fs::create_dir(open.join("data")).unwrap();
    mode(&open.join("data"), 0o700);
    refused(&open.join("data"), "others may write");
    mode(&open, 0o1777);
    listed(&open.join("data"), 0);
    if rustix::process::geteuid().is_root() {
        let theirs = world.dir("theirs", &[]);
        std::os::unix::fs::chown(&theirs, Some(12_345), None).unwrap();
        refused(&theirs, "belongs to");
        refused(&theirs.join("data"), "belongs to");
        assert!(!theirs.join("data").exists());
    } else {
        refused(Path::new("/usr/share"), "belongs to");
    }
    // One of our own is made for us alone.
    let own = world.path("own/data");
    listed(&own, 0);
    assert_eq!(fs::metadata(own).unwrap().permissions().mode() & 0o777, 0o700);
}

/// A sandbox with a file, links and a pipe.
fn with_sandbox() -> World {
    let world = World::new();
    world.ran(0, &["sandbox", "create", "work"]);
    let make = "echo new > f; mkdir d; echo in > d/f; ln -s f d/within; ln -s ../f d/out; \
        ln -s /etc/passwd d/absolute; mkfifo d/pipe pipe";
    world.ran(0, &["sandbox", "exec", "work", "-c", make]);
    world
}

#[test]
fn a_copy_out_replaces_files_and_nothing_else() {
    let world = with_sandbox();
    let victim = world.path("victim");
    fs::write(&victim, "untouched\n").unwrap();
    let mode = Mode::from_raw_mode(0o644);
    let folder = world.dir("folder", &[]);
    mknodat(CWD, world.path("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    mknodat(CWD, folder.join("f"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    symlink("victim", world.path("link")).unwrap();
    symlink("nowhere", world.path("dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.path("socket")).unwrap();
    // Never the machine's own one, which a failing test run by root would replace.
    let device = if rustix::process::geteuid().is_root() {
        let null = rustix::fs::makedev(1, 3);
        let kind = rustix::fs::FileType::CharacterDevice;
        mknodat(CWD, world.path("device"), kind, mode, null).unwrap();
        "device"
    } else {
        "/dev/null"
    };
    for (to, said) in [
        ("link", "link is a link"),
        ("dangling", "dangling is a link"),
        ("pipe", "pipe is a FIFO"),
        ("socket", "socket is a socket"),
        (device, "is a device"),
        ("folder", "folder/f is a FIFO"),
    ] {
        let ran = world.ran(5, &["sandbox", "cp", "work:f", to]);
        assert!(ran.stderr.contains(said), "{to}: {}", ran.stderr);
        assert!(!ran.stderr.contains("copied"), "{to}: {}", ran.stderr);
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched\n");
    assert_eq!(fs::read_link(world.path("link")).unwrap(), Path::new("victim"));
    world.ran(0, &["sandbox", "cp", "work:f", "victim"]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "new\n");
}

#[test]
fn a_dash_is_standard_output_and_standard_input() {
    let world = with_sandbox();
    let out = world.ran(0, &["sandbox", "cp", "work:f", "-"]);
    assert_eq!((&*out.stdout, out.stderr.contains("copied 1 file")), ("new\n", true));
    let given = [b"\x00bytes\xff\n".as_slice(), &vec![7; 5 << 20]].concat();
    fed(world.outrigger(&["sandbox", "cp", "-", "work:given"]), &given).expect(0);
    world.ran(0, &["sandbox", "cp", "work:given", "back"]);
    assert_eq!(fs::read(world.path("back")).unwrap(), given);
    assert!(!world.path("-").exists());
    for (args, said) in [
        (["work:d", "-"], "d is a directory"),
        (["-", "work:d"], "d is a directory"),
        (["-", "work:new/"], "name the file"),
    ] {
        let ran = fed(world.outrigger(&[&["sandbox", "cp"], &args[..]].concat()), b"x").expect(2);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_copy_names_the_links_and_special_files_that_it_leaves_out() {
    let world = with_sandbox();
    let ran = world.ran(0, &["sandbox", "cp", "work:d", "out"]);
    for left_out in ["d/pipe", "d/out", "d/absolute"] {
        let told = format!("! not copied: {left_out}");
        assert!(ran.stderr.contains(&told), "{left_out}: {}", ran.stderr);
    }
    let mut names: Vec<_> =
        fs::read_dir(world.path("out")).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["f", "within"]);
    let refused = world.ran(2, &["sandbox", "cp", "work:pipe", "x"]).stderr;
    assert!(refused.contains("pipe is no file"), "{refused}");
    // And the other way.
    let tree = world.dir("tree", &[("file", b"x\n")]);
    let mode = Mode::from_raw_mode(0o644);
    mknodat(CWD, tree.join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let ran = world.ran(0, &["sandbox", "cp", "tree", "work:"]);
    assert!(ran.stderr.contains("! not copied: tree/pipe: a FIFO"), "{}", ran.stderr);
    let refused = world.ran(2, &["sandbox", "cp", "tree/pipe", "work:"]).stderr;
    assert!(refused.contains("tree/pipe is a FIFO"), "{refused}");
}
