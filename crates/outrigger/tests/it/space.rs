//! What is let go: sessions, contents and disks, by name and by age, and what is said of it.

use crate::support::{Turn, World, shell};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

fn run(world: &World, text: &str) -> String {
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let command = format!("echo {text} > greeting");
    let script = world.script(&[Turn(&[shell(&command)])]);
    let task = format!("Write {text}.");
    let ran = world
        .ran(0, &["run", &task, "--dir", dir.to_str().unwrap(), "--script", &script, "--json"]);
    ran.json()["session"].as_str().unwrap().to_owned()
}

fn blobs(world: &World) -> Vec<PathBuf> {
    let folders = fs::read_dir(world.harness().join("blobs")).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    folders.flat_map(|dir| fs::read_dir(dir).unwrap().map(|it| it.unwrap().path())).collect()
}

fn make_old(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3 * 24 * 3_600)).unwrap();
}

fn disks(world: &World) -> usize {
    fs::read_dir(world.data().join("native/sandboxes")).unwrap().count()
}

#[test]
fn a_session_is_removed_with_all_that_is_its_own() {
    let world = World::new();
    let (first, second) = (run(&world, "zqxjkvbpyyw"), run(&world, "second"));
    assert_eq!(disks(&world), 2);
    let patch = world.harness().join(format!("patches/{first}.patch"));
    assert!(patch.exists());
    let ran = world.ran(0, &["sessions", "rm", &first[..8], "--json"]);
    assert_eq!(ran.json()["sessions"][0], first.as_str());
    assert_eq!((world.session(), disks(&world), patch.exists()), (second, 1, false));
    world.ran(4, &["sessions", "show", &first]);
    world.ran(4, &["sessions", "rm", &first]);
    let report = world.ran(0, &["audit", "verify", "--json"]).json();
    assert_eq!((&report["removed"], &report["sessions"]), (&1.into(), &1.into()));
    let database = fs::read(world.harness().join("journal.db")).unwrap();
    assert!(!String::from_utf8_lossy(&database).contains("zqxjkvbpyyw"));
}

#[test]
fn what_has_something_to_do_is_not_removed() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let script = world.script(&[Turn(&[shell("sleep 600")])]);
    let running =
        world.start(&["run", "Wait.", "--dir", dir.to_str().unwrap(), "--script", &script]);
    let session = world.await_command();
    let ran = world.ran(5, &["sessions", "rm", &session]);
    assert!(ran.stderr.contains("in use by another process"), "{ran:?}");
    // Nor by its age.
    let ran = world.ran(0, &["gc", "--older-than", "0m", "--json"]);
    assert_eq!(ran.json()["sessions"], serde_json::json!([]));
    running.kill();
    let ran = world.ran(5, &["sessions", "rm", &session]);
    assert!(ran.stderr.contains("sessions cancel"), "{ran:?}");
    world.ran(0, &["sessions", "cancel", &session]);
    world.ran(0, &["sessions", "rm", &session]);
    assert_eq!((world.sessions().len(), disks(&world)), (0, 0));
}

#[test]
fn gc_says_what_would_go_and_lets_it_go() {
    let world = World::new();
    let (first, second) = (run(&world, "first"), run(&world, "second"));
    fs::write(world.harness().join("patches/0123456789ab.patch"), "nobody's").unwrap();
    for path in blobs(&world) {
        make_old(&path);
    }
    make_old(&world.harness().join("patches/0123456789ab.patch"));
    let would = world.ran(0, &["gc", "--dry-run", "--json"]).json();
    assert_eq!(would["sessions"], serde_json::json!([]));
    assert_eq!(would["patches"].as_array().unwrap().len(), 1);
    assert_eq!(would["blobs"], serde_json::json!([]), "both sessions name theirs");
    let told = world.ran(0, &["doctor", "--json"]).json();
    assert_eq!(told["space"]["sessions"], 2);
    assert_eq!(told["space"]["freed_bytes"], would["bytes"]);
    assert!(told["space"]["bytes"]["database"].as_u64().unwrap() > 0);
    assert!(world.ran(0, &["doctor"]).stdout.contains("`outrigger gc` would free"));

    let would = world.ran(0, &["gc", "--dry-run", "--older-than", "0m", "--json"]).json();
    assert_eq!(would["sessions"].as_array().unwrap().len(), 2);
    assert_eq!((world.sessions().len(), disks(&world)), (2, 2), "it only looked");
    let went = world.ran(0, &["gc", "--older-than", "0m", "--json"]).json();
    assert_eq!(went["sessions"].as_array().unwrap().len(), 2, "{first} {second}");
    assert!(!went["blobs"].as_array().unwrap().is_empty());
    assert_eq!((world.sessions().len(), disks(&world), blobs(&world).len()), (0, 0, 0));
    assert!(fs::read_dir(world.harness().join("patches")).unwrap().next().is_none());
    let report = world.ran(0, &["audit", "verify", "--json"]).json();
    assert_eq!(report["removed"], 2);
    world.ran(2, &["gc", "--older-than", "yesterday"]);
}

#[test]
fn memory_has_quotas_and_history_that_can_go() {
    let world = World::new();
    world.configure("[memory]\nperson_versions_max = 3\nperson_mib_max = 1\n");
    let put = |text: &str, args: &[&str], code: i32| {
        let from = world.path("text");
        fs::write(&from, text).unwrap();
        let args = [&["memory", "put", "notes.md", from.to_str().unwrap()], args].concat();
        world.ran(code, &args)
    };
    put("one", &[], 0);
    put("two", &["--replaces", "1"], 0);
    put("three", &["--replaces", "2"], 0);
    let refused = put("four", &["--replaces", "3"], 15);
    assert!(refused.stderr.contains("person:local"), "{refused:?}");
    assert!(refused.stderr.contains("3 of 3 versions used"), "{refused:?}");
    assert!(refused.stderr.contains("outrigger memory prune"), "{refused:?}");
    world.ran(0, &["memory", "prune", "notes.md", "--keep", "1"]);
    put("four", &["--replaces", "3"], 0);
    world.ran(4, &["memory", "cat", "notes.md", "--revision", "1"]);
    assert_eq!(world.ran(0, &["memory", "cat", "notes.md"]).stdout, "four");
    let shown = world.ran(0, &["memory", "history", "notes.md"]).stdout;
    assert_eq!(shown.matches("content not kept").count(), 2, "{shown}");
}

#[test]
fn a_redaction_asks_about_what_was_made_of_it() {
    let world = World::new();
    let put = |path: &str, text: &str, args: &[&str]| {
        let from = world.path("text");
        fs::write(&from, text).unwrap();
        world.ran(0, &[&["memory", "put", path, from.to_str().unwrap()], args].concat());
    };
    put("a.md", "key = AKIAQX7ZJ2WVPL9TM3RD\n", &[]);
    put("b.md", "key = AKIAQX7ZJ2WVPL9TM3RD\n", &[]);
    put("b.md", "key = AKIAQX7ZJ2WVPL9TM3RD\nand more\n", &["--replaces", "1"]);
    let asked = world.ran(12, &["memory", "redact", "a.md", "-m", "leak"]);
    assert!(asked.stderr.contains("/memory/user/b.md r2"), "{asked:?}");
    assert!(asked.stderr.contains("--derived destroy"), "{asked:?}");
    world.ran(0, &["memory", "cat", "a.md"]);
    world.ran(0, &["memory", "redact", "a.md", "-m", "leak", "--derived", "destroy"]);
    for path in ["a.md", "b.md"] {
        world.ran(4, &["memory", "cat", path]);
    }
    assert_eq!(world.ran(0, &["memory", "search", "AKIAQX7ZJ2WVPL9TM3RD"]).stdout, "");
}

#[test]
fn everything_goes_into_a_file_and_comes_back() {
    let world = World::new();
    let session = run(&world, "hello");
    let scripts = fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap().path());
    for script in scripts.filter(|path| path.extension().is_some_and(|it| it == "toml")) {
        let text = fs::read_to_string(&script).unwrap();
        fs::write(script, format!("{text}[[turn]]\ntext = \"Still here.\"\n")).unwrap();
    }
    world.ran(0, &["memory", "put", "notes.md", "repo/file"]);
    let [file, keyed] = ["backup", "keyed"].map(|name| world.path(name).display().to_string());
    let made = world.ran(0, &["backup", &file]);
    assert!(made.stderr.contains("has not the key"), "{made:?}");
    let made = world.ran(0, &["backup", &keyed, "--with-key", "--json"]);
    assert_eq!((&made.json()["ok"], &made.json()["has_key"]), (&true.into(), &true.into()));
    world.ran(5, &["backup", &file]);
    world.ran(5, &["restore", &file]);
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&file).unwrap());
    assert_eq!(mode & 0o777, 0o600);

    let other = World::new();
    let told = other.ran(0, &["restore", &file]);
    assert!(told.stderr.contains("put harness/audit/key back"), "{told:?}");
    assert_eq!(other.session(), session);
    other.ran(0, &["audit", "verify"]);
    let notes = |world: &World| world.ran(0, &["memory", "cat", "notes.md"]).stdout;
    assert_eq!(notes(&other), notes(&world));
    let patch = format!("patches/{session}.patch");
    assert_eq!(
        fs::read(other.harness().join(&patch)).unwrap(),
        fs::read(world.harness().join(&patch)).unwrap()
    );
    // Its disk is gone; it goes on all the same, and nothing new is signed.
    let said = other.ran(0, &["sessions", "say", &session, "And more?"]).stdout;
    assert!(said.contains("Still here."), "{said}");
    other.ran(15, &["audit", "checkpoint"]);

    let whole = World::new();
    assert_eq!(whole.ran(0, &["restore", &keyed, "--json"]).json()["has_key"], true);
    whole.ran(0, &["audit", "checkpoint"]);

    let mut broken = fs::read(&file).unwrap();
    let middle = broken.len() / 2;
    broken.truncate(middle);
    fs::write(&file, broken).unwrap();
    let last = World::new();
    last.ran(16, &["restore", &file]);
    assert_eq!(last.sessions().len(), 0, "nothing of it was taken");
}

#[test]
fn a_session_goes_into_a_file_and_comes_back() {
    let world = World::new();
    let session = run(&world, "hello");
    let file = world.path("file").display().to_string();
    world.ran(0, &["sessions", "export", &session[..6], &file]);
    world.ran(5, &["sessions", "export", &session, &file]);
    world.ran(5, &["sessions", "import", &file]);
    let other = World::new();
    let taken = other.ran(0, &["sessions", "import", &file, "--json"]).json();
    assert_eq!(taken["sessions"], serde_json::json!([session]));
    assert_eq!(other.records(&session), world.records(&session));
    other.ran(0, &["audit", "verify", "--session", &session]);
    other.ran(0, &["sessions", "rm", &session]);
    other.ran(0, &["sessions", "import", &file]);
    other.ran(0, &["sessions", "rm", &session]);
    let mut broken = fs::read(&file).unwrap();
    let middle = broken.len() / 3;
    broken[middle] ^= 1;
    fs::write(&file, broken).unwrap();
    other.ran(16, &["sessions", "import", &file]);
    assert_eq!(other.sessions().len(), 0);
    other.ran(4, &["sessions", "import", "nowhere"]);
}
