//! The command line against a server: the same verbs, a directory that is sent and comes back,
//! and what is told where something is wrong.

use crate::serve::Served;
use crate::support::{Ran, Turn, World, shell, until};
use crate::tmux::Tmux;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

/// A server, and another machine on which Ada is logged in to it.
pub(crate) struct Laptop {
    pub(crate) served: Served,
    pub(crate) world: World,
    pub(crate) dir: PathBuf,
}

impl Laptop {
    fn new(served: Served) -> Self {
        let world = World::new();
        let files: [(&str, &[u8]); 4] = [
            ("file", b"one\n"),
            ("AGENTS.md", b"Be brief.\n"),
            (".gitignore", b"node_modules\n"),
            ("node_modules/dep/index.js", b"x"),
        ];
        let dir = world.dir("till", &files);
        world.git(&dir, &["init", "--quiet"]);
        world.git(&dir, &["add", "."]);
        let laptop = Self { served, world, dir };
        laptop.login("ada", "team").expect(0);
        laptop
    }

    pub(crate) fn login(&self, person: &str, name: &str) -> Ran {
        login(&self.served, &self.world, person, name)
    }

    pub(crate) fn dir(&self) -> &str {
        self.dir.to_str().unwrap()
    }

    fn run(&self, code: i32, args: &[&str]) -> Ran {
        self.world.ran(code, &[&["run", "--dir", self.dir()], args].concat())
    }

    pub(crate) fn file(&self) -> String {
        fs::read_to_string(self.dir.join("file")).unwrap()
    }

    pub(crate) fn session(&self) -> String {
        self.world.session()
    }
}

/// Logs a person in on a machine.
fn login(served: &Served, world: &World, person: &str, name: &str) -> Ran {
    let made = served.world.ran(0, &["keys", "create", person, "--person", person]);
    let file = world.path("key");
    fs::write(&file, made.stdout).unwrap();
    let mut login = world.outrigger(&["login", &served.url, "--name", name]);
    Ran::of(login.stdin(fs::File::open(file).unwrap()).output().unwrap())
}

/// A server whose model runs these commands, one in each turn.
pub(crate) fn laptop(commands: &[&str]) -> Laptop {
    begun(World::new(), commands)
}

/// A server whose model runs these commands, and whose rules ask about each.
pub(crate) fn asking(commands: &[&str]) -> Laptop {
    let text = r#"@id("ask") @approvable("anyone")
        forbid (principal, action == Action::"execute", resource);"#;
    ruled(text, commands)
}

/// A server whose model runs these commands, under these rules.
pub(crate) fn ruled(text: &str, commands: &[&str]) -> Laptop {
    let world = World::new();
    let rules = world.path("rules.cedar");
    fs::write(&rules, text).unwrap();
    world.configure(&format!("[policy]\nfiles = [{:?}]\n", rules.display().to_string()));
    begun(world, commands)
}

/// A server of this world whose model runs these commands.
pub(crate) fn begun(world: World, commands: &[&str]) -> Laptop {
    let dir = world.dir("served", &[("other", b"x\n")]);
    let turn = |command: &&str| Turn(&[shell(command)]).text() + "[[turn]]\ntext = \"Done.\"\n";
    let script = world.path("script.toml");
    fs::write(&script, commands.iter().map(turn).collect::<String>()).unwrap();
    Laptop::new(Served::new(world, &dir, &script.display().to_string()))
}

#[test]
fn the_history_of_a_repository_is_sent_and_no_hook() {
    let asks = "git log --format=%s --all --decorate > log; git status --short >> log; \
        git remote get-url origin >> log; ls .git/hooks >> log 2>&1; \
        echo two >> file; git commit --quiet -am Second && git diff --stat HEAD~ | tail -1 >> log; \
        git fsck --strict >> log 2>&1";
    let laptop = laptop(&[asks]);
    let git = |args: &[&str]| laptop.world.git(&laptop.dir, args);
    git(&["commit", "--quiet", "-m", "First"]);
    git(&["branch", "other"]);
    git(&["remote", "add", "origin", "https://forge.example/a/b.git"]);
    let hook = laptop.dir.join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::write(laptop.dir.join("new"), "n\n").unwrap();
    // Some of it packed, some not.
    git(&["gc", "--quiet"]);
    git(&["commit", "--quiet", "--no-verify", "--allow-empty", "-m", "Empty"]);
    let ran = laptop.run(0, &["--apply", "Look."]);
    assert!(ran.stderr.contains("with its git history"), "{}", ran.stderr);
    let log = fs::read_to_string(laptop.dir.join("log")).unwrap();
    let expected = "Empty\nFirst\n?? log\n?? new\nhttps://forge.example/a/b.git\n\
        ls: cannot access '.git/hooks': No such file or directory\n \
        1 file changed, 1 insertion(+)\n";
    assert_eq!(log, expected);
    assert_eq!(laptop.file(), "one\ntwo\n", "a commit is no change that is left out");
    // What is of git is no change.
    let patch = laptop.world.ran(0, &["sessions", "diff"]).stdout;
    assert!(!patch.contains("a/.git") && !patch.contains("b/.git"), "{patch}");
}

#[test]
fn what_was_committed_at_the_server_becomes_a_branch() {
    let laptop = laptop(&[
        "mkdir deep && echo n > deep/new && git add . && git commit -qm Second; echo x >> file",
    ]);
    let git = |args: &[&str]| laptop.world.git(&laptop.dir, args);
    git(&["commit", "--quiet", "-m", "First"]);
    let object = laptop.run(0, &["--branch", "Commit.", "--json"]).json();
    let name = format!("outrigger/{}", laptop.session());
    let branch = json!({ "name": name, "commits": 1, "hazards": [], "uncommitted": ["file"] });
    assert_eq!(object["branch"], branch);
    assert_eq!(git(&["log", "--format=%s", &name]), "Second\nFirst\n");
    git(&["fsck", "--strict", "--full"]);
    assert_eq!(laptop.file(), "one\n", "the files stay as they are");
    // What else the session changed is written back when that is said.
    laptop.world.ran(0, &["sessions", "apply", &laptop.session()]);
    assert_eq!(laptop.file(), "one\nx\n");
    // Names of objects alone come to git in the sandbox.
    let path = format!("/v1/sessions/{}/objects", laptop.session());
    let (key, asked) = (laptop.served.key("ada"), ["--json", r#"{"known":["--all"]}"#]);
    let (status, told) = laptop.served.with_key(&key, &asked, &path);
    let detail = told["detail"].as_str().unwrap_or_default();
    assert!(status == 400 && detail.contains("is no id of an object of git"), "{status} {told}");
}

#[test]
fn a_directory_is_sent_worked_on_and_comes_back() {
    let first = "cat AGENTS.md; ls -a; echo two >> file; mkdir src; echo n > src/new";
    let laptop = laptop(&[first, "echo three >> file"]);
    let ran = laptop.run(0, &["--apply", "Add a line.", "--json"]);
    let result = ran.json();
    assert_eq!((&result["status"], &result["applied"]), (&json!("answered"), &json!(true)));
    assert_eq!(laptop.file(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(laptop.dir.join("src/new")).unwrap(), "n\n");
    let session = laptop.session();
    assert_eq!(result["session"], session.as_str());

    // What is shown of it is what the server has, byte for byte.
    let here = laptop.world.records(&session);
    assert_eq!(here, laptop.served.world.records(&session));
    let opened = &here[0]["event"]["opened"];
    assert_eq!(opened["principal"], "person:ada");
    let source = opened["workspace"]["source"].as_str().unwrap();
    assert!(source.ends_with(&format!(":{}", laptop.dir())), "{source}");
    let output = laptop.world.ran(0, &["sessions", "show", &session]).stdout;
    assert!(output.contains("Be brief."), "{output}");
    // What is ignored stays here, and nothing of the server's own directory is there.
    assert!(!output.contains("node_modules") && !output.contains("other"), "{output}");

    let patch = laptop.world.ran(0, &["sessions", "diff"]).stdout;
    assert!(patch.contains("+two") && patch.contains("src/new"), "{patch}");
    let audit = laptop.world.ran(0, &["audit", "verify", "--session", &session, "--json"]).json();
    assert_eq!((&audit["ok"], &audit["events"]), (&json!(true), &json!(here.len())));
    let reached = laptop.world.ran(0, &["egress", "ls", &session]).stderr;
    assert!(reached.contains("nothing was reached"), "{reached}");
    let listed = laptop.world.ran(0, &["sessions", "ls", "--dir", laptop.dir()]).stdout;
    assert!(listed.contains(&session) && listed.contains("Add a line."), "{listed}");
    let none = laptop.world.ran(0, &["--server", "local", "sessions", "ls"]);
    assert_eq!((none.stdout.as_str(), none.stderr.contains("no sessions yet")), ("", true));

    // On another machine nothing is written where the server says that it came from, though that
    // machine is called the same and has such a directory.
    let elsewhere = World::new();
    login(&laptop.served, &elsewhere, "ada", "team").expect(0);
    fs::write(laptop.dir.join("file"), "one\n").unwrap();
    let refused = elsewhere.ran(2, &["sessions", "apply", &session]);
    assert!(refused.stderr.contains("began in another one"), "{refused:?}");
    assert_eq!(laptop.file(), "one\n");

    // It goes on with what is said, and writes nothing over what changed here meanwhile.
    fs::write(laptop.dir.join("file"), "mine\n").unwrap();
    let refused = laptop.run(5, &["--continue", "--apply", "More."]);
    assert!(refused.stderr.contains("changed meanwhile: file"), "{refused:?}");
    assert_eq!(laptop.file(), "mine\n");
    let uploads = laptop.served.world.harness().join("uploads");
    assert_eq!(fs::read_dir(uploads).unwrap().count(), 0, "what was sent is not kept twice");
}

#[test]
fn what_waits_is_answered_from_elsewhere() {
    let laptop = asking(&["echo two >> file", "echo three >> file"]);
    let waits = laptop.run(10, &["--apply", "Add a line."]);
    let session = laptop.session();
    let inbox = laptop.world.ran(0, &["inbox", "--json"]).json();
    let id = inbox["waiting"][0]["id"].as_str().unwrap().to_owned();
    assert!(waits.stderr.contains(&format!("{id} waits for approval")), "{waits:?}");
    assert_eq!(inbox["waiting"][0]["arguments_sha256"].as_str().map(str::len), Some(64));
    let approved = laptop.world.ran(0, &["approve", &id]);
    assert!(approved.stderr.contains("written back"), "what was said at first holds: {approved:?}");
    assert_eq!(laptop.file(), "one\ntwo\n");

    laptop.world.ran(10, &["sessions", "say", &session, "More."]);
    let id = laptop.world.ran(0, &["inbox", "--json"]).json()["waiting"][0]["id"].clone();
    let denied = laptop.world.ran(0, &["deny", id.as_str().unwrap(), "-m", "not now"]);
    assert!(denied.stdout.contains("Done."), "{denied:?}");
    assert_eq!(laptop.file(), "one\ntwo\n");
    let answered = laptop.world.events(&session);
    let by: Vec<_> = answered.iter().filter_map(|it| it["answered"]["by"].as_str()).collect();
    assert_eq!(by, ["person:ada", "person:ada"]);
}

#[test]
fn whoever_sits_there_is_asked() {
    let laptop = asking(&["echo two >> file", "echo three >> file"]);
    let line = format!("$O run --dir {} --apply 'Add a line.'", laptop.dir());
    let tmux = Tmux::new(&laptop.world, (100, 40), &line);
    tmux.until("y trust it as it is");
    tmux.keys(&["y", "Enter"]);
    tmux.until("y yes");
    tmux.keys(&["y", "Enter"]);
    tmux.until("written back");
    assert_eq!(tmux.ended(), 0);
    assert_eq!(laptop.file(), "one\ntwo\n");
    // What is trusted here is trusted there, as Ada's word.
    let said = &laptop.world.events(&laptop.session())[1]["said"];
    assert_eq!(said["author"]["trusted"]["by"], "person:ada", "{said}");
    // What is left for later waits in the inbox.
    let tmux = Tmux::new(&laptop.world, (100, 40), "$O sessions say @last 'More.'");
    tmux.until("y yes");
    tmux.keys(&["l", "Enter"]);
    tmux.until("waits for approval");
    assert_eq!(tmux.ended(), 10);
}

#[test]
fn one_that_is_left_goes_on_and_is_come_back_to() {
    let laptop = laptop(&["echo begun; sleep 2; echo two >> file", "sleep 600"]);
    let started = laptop.run(0, &["--detach", "Add a line.", "--json"]).json();
    let session = started["session"].as_str().unwrap();
    let attach = laptop.world.start(&["attach", session, "--json"]);
    let ran = attach.end();
    assert_eq!(
        (ran.code, ran.json()["answer"].as_str()),
        (Some(0), Some("[scripted] Done.")),
        "{ran:?}"
    );
    laptop.world.ran(0, &["sessions", "apply", session]);
    assert_eq!(laptop.file(), "one\ntwo\n");

    // Ctrl-C stops the turn of who said something.
    let mut say = laptop.world.start(&["sessions", "say", session, "Sleep."]);
    until("it sleeps", || {
        let events = laptop.world.events(session);
        events.last().filter(|it| !it["started"]["place"].is_null()).map(drop)
    });
    say.signal(Signal::INT);
    let ran = say.end();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.stderr.contains("interrupted"), "{ran:?}");
    let shared = ["sessions", "share", session, "--with", "person:bob"];
    let shared = laptop.world.ran(0, &shared).stdout;
    assert!(shared.contains("person:bob  to read"), "{shared}");
    assert_eq!(laptop.login("bob", "bobs").code, Some(0));
    let denied = laptop.world.ran(12, &["sessions", "say", session, "I am Bob."]);
    assert!(denied.stderr.contains("you may not speak"), "{denied:?}");
    laptop.world.ran(0, &["--server", "team", "sessions", "cancel", session]);
}

#[test]
fn a_server_that_dies_is_come_back_to() {
    let mut laptop = laptop(&["sleep 3; echo two >> file"]);
    let run = {
        let args = ["run", "--dir", laptop.dir(), "--apply", "Add a line."];
        laptop.world.start(&args)
    };
    until("the command runs", || {
        let sessions = laptop.world.sessions();
        let session = sessions.first()?["session"].as_str()?.to_owned();
        let events = laptop.world.events(&session);
        (!events.last()?["started"]["place"].is_null()).then_some(())
    });
    laptop.served.restart();
    let ran = run.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("the server is away"), "{ran:?}");
    assert_eq!(laptop.file(), "one\ntwo\n");
}

#[test]
fn what_is_wrong_is_told() {
    let laptop = laptop(&["true"]);
    let ran = |code, args: &[&str]| laptop.world.ran(code, args).stderr;
    let listed = laptop.world.ran(0, &["context", "ls"]).stdout;
    assert!(listed.contains(&format!("* team  {}  person:ada", laptop.served.url)), "{listed}");
    assert!(ran(2, &["memory", "stale"]).contains("--server local"));
    assert!(ran(2, &["run", "--include", "x", "--dir", laptop.dir(), "x"]).contains("--include"));
    let unknown = ran(2, &["run", "--image", "x", "--dir", laptop.dir(), "x"]);
    assert!(unknown.contains("`x`: there is no template of that name"), "{unknown}");
    assert!(ran(3, &["--server", "https://nowhere.example", "inbox"]).contains("outrigger login"));
    assert!(ran(2, &["audit", "verify"]).contains("audit verify --session ID"));
    assert!(ran(4, &["attach", "nobody"]).contains("nobody"));
    let data = laptop.world.data().join("servers.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&data).unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "the key is nobody else's");

    // A program has no login, but a key in its environment.
    let key = laptop.served.world.ran(0, &["keys", "create", "ci"]).stdout;
    let mut of_program =
        laptop.world.outrigger(&["--server", &laptop.served.url, "sessions", "ls"]);
    let listed = Ran::of(of_program.env("OUTRIGGER_KEY", key.trim()).output().unwrap());
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let mut wrong = laptop.world.outrigger(&["--server", "http://127.0.0.1:9", "inbox"]);
    let away = Ran::of(wrong.env("OUTRIGGER_KEY", "k").output().unwrap());
    assert_eq!((away.code, away.stderr.contains("can't be reached")), (Some(17), true), "{away:?}");

    ran(0, &["logout"]);
    assert!(ran(3, &["--server", "team", "inbox"]).contains("logged in to no server"));
    let mut again = laptop.world.outrigger(&["login", &laptop.served.url]);
    let stdin = fs::File::open(laptop.world.path("key")).unwrap();
    let refused = Ran::of(again.stdin(Stdio::from(stdin)).output().unwrap());
    assert_eq!(refused.code, Some(3), "the key was given up there, too: {refused:?}");
}

#[test]
fn what_is_sent_is_looked_through() {
    let laptop = laptop(&["true"]);
    let (served, world) = (&laptop.served, &laptop.world);
    let key = |person: &str| {
        let made = served.world.ran(0, &["keys", "create", person, "--person", person]);
        made.stdout.trim().to_owned()
    };
    let (ada, bob) = (key("ada"), key("bob"));
    let post = |key: &str, file: &PathBuf| {
        let body = format!("@{}", file.display());
        let args = ["--oauth2-bearer", key, "--data-binary", &body];
        let (status, answer) = served.curl(&args, "/v1/workspaces");
        (status, serde_json::from_str::<Value>(&answer).unwrap())
    };
    let tar = |name: &str, args: &[&str]| {
        let file = world.path(name);
        let mut tar = world.command("tar");
        tar.arg("-czf").arg(&file).args(args);
        Ran::of(tar.output().unwrap()).expect(0);
        file
    };
    let good = tar("good.tgz", &["-C", laptop.dir(), "."]);
    let (status, uploaded) = post(&ada, &good);
    assert_eq!((status, uploaded["files"].as_u64() > Some(3)), (201, true), "{uploaded}");
    let up = ["-C", laptop.dir(), "--absolute-names", "--transform", "s,^file,../file,", "file"];
    let (status, problem) = post(&ada, &tar("up.tgz", &up));
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_request")), "{problem}");
    let (status, problem) = post(&ada, &laptop.dir.join("file"));
    assert_eq!(status, 400, "{problem}");

    // Another person begins nothing with it, and whose it is once.
    let workspace = json!({ "id": uploaded["id"], "source": "x:/y" });
    let begin = |key: &str| {
        let body = json!({ "text": "Go.", "workspace": workspace }).to_string();
        served.curl(&["--oauth2-bearer", key, "--json", &body], "/v1/sessions").0
    };
    assert_eq!((begin(&bob), begin(&ada), begin(&ada)), (404, 201, 404));
}

#[test]
fn a_person_at_the_page_lets_the_command_line_in() {
    let world = World::new();
    let dir = world.dir("served", &[("other", b"x\n")]);
    let script = world.script(&[]);
    let served = Served::new(world, &dir, &script);
    let laptop = World::new();
    let tmux = Tmux::new(&laptop, (100, 40), &format!("$O login {} --name team", served.url));
    tmux.until("It shows the code");
    let shown = tmux.shown();
    let code = shown.split("device?code=").nth(1).unwrap().split_whitespace().next().unwrap();
    let path = format!("/v1/login/device/{code}");
    let (status, asks) = served.get(&path);
    assert_eq!((status, &asks["code"]), (200, &json!(code)), "{asks}");
    // A program lets no other in, and who is not logged in nobody.
    let allow = json!({ "answer": "allow" });
    let key = served.world.ran(0, &["keys", "create", "ci"]).stdout;
    let body = allow.to_string();
    let by_program = ["--oauth2-bearer", key.trim(), "--json", &body];
    assert_eq!(served.curl(&by_program, &path).0, 403);
    assert_eq!(served.curl(&["--json", &body], &path).0, 401);
    assert_eq!(served.post(&path, &allow).0, 204);
    tmux.until("logged in to");
    assert_eq!(tmux.ended(), 0);
    laptop.ran(0, &["sessions", "ls"]);
    let keys = served.world.ran(0, &["keys", "ls"]).stdout;
    assert!(keys.contains("outrigger of"), "{keys}");
    assert_eq!(served.get(&path).0, 404, "it is used up");
}
