//! Commits of a sandbox, as git made them and as somebody hostile did.

use super::World;
use outrigger_repository::{
    BranchOutcome, CommitReview, CommitTarget, Error, NewCommits, ObjectSet, WorkFile,
};
use outrigger_repository::{Change, File};
use outrigger_sandbox::EntryKind;
use std::error::Error as _;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// A person's repository with two commits, and a copy of it in which somebody works.
fn world() -> World {
    let world = World::new();
    world.write("a/src/main", "one\n");
    world.write("a/src/deep/er/file", "deep\n");
    world.write("a/tool", "tool\n");
    world.git("a", &["init", "-q"]);
    world.git("a", &["add", "."]);
    world.git("a", &["commit", "-qm", "first"]);
    world.write("a/src/main", "two\n");
    world.git("a", &["commit", "-qam", "second"]);
    world.git(".", &["clone", "-q", "a", "inside"]);
    world
}

/// Runs a line in the copy, as the sandbox does.
fn inside(world: &World, line: &str, stdin: &[u8]) -> Vec<u8> {
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(line).current_dir(world.path("inside"));
    shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    shell.env("HOME", world.path(".")).env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        shell.env(format!("GIT_{who}_NAME"), "An Agent");
        shell.env(format!("GIT_{who}_EMAIL"), "agent@example.org");
    }
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{line}");
    done.stdout
}

/// What a line in the copy prints, as one word.
fn word(world: &World, line: &str, stdin: &[u8]) -> String {
    String::from_utf8(inside(world, line, stdin)).unwrap().trim().to_owned()
}

fn first(world: &World, target: &CommitTarget) -> Vec<u8> {
    let line = "git rev-parse HEAD; git rev-list --objects --no-object-names --ignore-missing \
        --stdin HEAD | git cat-file --batch";
    let known: String = target.known().iter().map(|tip| format!("^{tip}\n")).collect();
    inside(world, line, known.as_bytes())
}

fn judged(
    world: &World,
    target: &CommitTarget,
    work: &[WorkFile],
) -> Result<Option<(ObjectSet, NewCommits)>, Error> {
    let mut objects = ObjectSet::first(&first(world, target)).map_err(Error::Commits)?;
    for _ in 0..10 {
        match target.review(&objects, work)? {
            CommitReview::Nothing => return Ok(None),
            CommitReview::Fit(commits) => return Ok(Some((objects, commits))),
            CommitReview::Wanted(ids) => {
                let ids: String = ids.iter().map(|id| format!("{id}\n")).collect();
                let more = inside(world, "git cat-file --batch", ids.as_bytes());
                objects.add(&more).map_err(Error::Commits)?;
            }
        }
    }
    panic!("there is no end to what is wanted");
}

/// Takes the commits of the copy into a repository. The name of the branch, and how it came.
fn take(world: &World, dir: &str, session: &str) -> (String, BranchOutcome) {
    let target = CommitTarget::open(&world.path(dir)).unwrap().unwrap();
    let (objects, commits) = judged(world, &target, &[]).unwrap().unwrap();
    let branch = target.write(&objects, &commits, session).unwrap();
    (branch.name, branch.outcome)
}

/// Why nothing is taken.
fn refused(world: &World) -> String {
    let before = files(world);
    let target = CommitTarget::open(&world.path("a")).unwrap().unwrap();
    let error = judged(world, &target, &[]).unwrap_err();
    assert_eq!(files(world), before);
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

/// All files of the person's, with their contents.
fn files(world: &World) -> String {
    let line = format!("cd {} && find . -type f | sort | xargs sha1sum", world.path("a").display());
    word(world, &line, b"")
}

#[test]
fn commits_come_back_as_they_were_made() {
    let world = world();
    world.git("a", &["gc", "-q"]);
    world.write("a/not-committed", "of the person");
    let state = |world: &World| {
        (world.git("a", &["status", "--porcelain"]), world.git("a", &["log", "-1", "--format=%H"]))
    };
    let before = state(&world);
    inside(&world, "echo three > src/main && git commit -qam third", b"");
    inside(
        &world,
        "git checkout -qb side HEAD~1 && ln -s main src/link && git add src/link && git commit -qm 'a link'",
        b"",
    );
    inside(
        &world,
        "git mv tool src/deep/er/ && git commit -qm moved && git merge -q --no-edit main",
        b"",
    );
    assert_eq!(take(&world, "a", "it"), ("outrigger/it".to_owned(), BranchOutcome::Created));
    let log = ["log", "--format=%H %P %an <%ae> %at %B", "HEAD"];
    let given = world.git("a", &["log", log[1], "outrigger/it"]);
    assert_eq!(given, world.git("inside", &log));
    assert!(given.contains("An Agent <agent@example.org>"), "{given}");
    world.git("a", &["fsck", "--strict", "--full"]);
    assert_eq!(state(&world), before);
    // Once more changes nothing; what is new goes on from there.
    let known = files(&world);
    assert_eq!(take(&world, "a", "it").1, BranchOutcome::Unchanged);
    assert_eq!(files(&world), known);
    inside(&world, "git commit -q --allow-empty -m more", b"");
    assert_eq!(take(&world, "a", "it"), ("outrigger/it".to_owned(), BranchOutcome::Moved));
    // Nobody's work is moved, nor what somebody works on.
    inside(&world, "git commit -q --amend --allow-empty -m other", b"");
    assert_eq!(take(&world, "a", "it"), ("outrigger/it-2".to_owned(), BranchOutcome::Created));
    world.git("a", &["worktree", "add", "-q", "../tree", "outrigger/it-2"]);
    inside(&world, "git commit -q --allow-empty -m 'even more'", b"");
    assert_eq!(take(&world, "a", "it"), ("outrigger/it-3".to_owned(), BranchOutcome::Created));
    world.git("a", &["pack-refs", "--all"]);
    assert_eq!(take(&world, "tree", "it").1, BranchOutcome::Unchanged);
    world.git("a", &["fsck", "--strict", "--full"]);
    // What the person has is theirs, and what they work on.
    world.git("a", &["checkout", "-q", "outrigger/it-3"]);
    let target = CommitTarget::open(&world.path("a")).unwrap().unwrap();
    assert!(judged(&world, &target, &[]).unwrap().is_none());
    world.git("a", &["checkout", "-q", "main"]);
    world.git("a", &["merge", "-q", "outrigger/it-3"]);
    let target = CommitTarget::open(&world.path("a")).unwrap().unwrap();
    assert!(judged(&world, &target, &[]).unwrap().is_none());
}

#[test]
fn what_is_not_committed_is_known() {
    let world = world();
    inside(
        &world,
        "echo new > src/new && git add . && git commit -qm new && git rm -q tool && git commit -qm gone",
        b"",
    );
    let file =
        |text: &str| Some(File { kind: EntryKind::File, executable: false, contents: text.into() });
    let change = |path: &str, after| Change { path: path.to_owned(), before: None, after };
    let work: Vec<WorkFile> = [
        change("src/new", file("new\n")),
        change("src/main", file("edited\n")),
        change("src/deep/er/file", file("deep\n")),
        change("src/deep/er/other", file("x")),
        change("tool", None),
        change("src/deep", None),
        change("new/folder/file", file("y")),
    ]
    .iter()
    .map(WorkFile::of)
    .collect();
    let target = CommitTarget::open(&world.path("a")).unwrap().unwrap();
    let (_, commits) = judged(&world, &target, &work).unwrap().unwrap();
    assert_eq!(commits.count(), 2);
    let expected = ["src/main", "src/deep/er/other", "src/deep", "new/folder/file"];
    assert_eq!(commits.uncommitted, expected);
}

#[test]
fn what_programs_obey_is_named() {
    let world = world();
    inside(
        &world,
        "echo x > .envrc && chmod +x tool && git add . && git commit -qm hidden && git rm -q --cached .envrc && git commit -qm back",
        b"",
    );
    let target = CommitTarget::open(&world.path("a")).unwrap().unwrap();
    let (_, commits) = judged(&world, &target, &[]).unwrap().unwrap();
    let mut named: Vec<String> = commits.hazards.iter().map(ToString::to_string).collect();
    named.sort();
    expect_test::expect![[r#"
        [
            ".envrc: direnv runs it when a shell enters the folder",
            "tool: it may be executed, which it could not before",
        ]
    "#]]
    .assert_debug_eq(&named);
}

#[test]
fn what_another_session_gave_is_named_again() {
    let world = world();
    inside(&world, "echo x > .envrc && git add . && git commit -qm hidden", b"");
    take(&world, "a", "one");
    inside(&world, "echo y > src/main && git commit -qam more", b"");
    let target = CommitTarget::open(&world.path("a")).unwrap().unwrap();
    // Who is hostile says that only the last commit is new.
    let line = "git rev-parse HEAD; (echo HEAD; echo HEAD:src/main) | git cat-file --batch";
    let mut objects = ObjectSet::first(&inside(&world, line, b"")).unwrap();
    let commits = loop {
        match target.review(&objects, &[]).unwrap() {
            CommitReview::Fit(commits) => break commits,
            CommitReview::Nothing => panic!("there is a commit"),
            CommitReview::Wanted(ids) => {
                let ids: String = ids.iter().map(|id| format!("{id}\n")).collect();
                objects.add(&inside(&world, "git cat-file --batch", ids.as_bytes())).unwrap();
            }
        }
    };
    assert_eq!((commits.count(), commits.hazards[0].path.as_str()), (1, ".envrc"));
}

/// A commit on HEAD of a folder that holds `entries`, as `git ls-tree` shows them, and nothing
/// that git would keep anybody from. It becomes HEAD.
fn commit(world: &World, entries: &[(&str, &str, &str)]) {
    let mut tree = Vec::new();
    for (mode, name, id) in entries {
        tree.extend(format!("{mode} {name}\0").bytes());
        tree.extend((0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()));
    }
    let tree = word(world, "git hash-object -t tree -w --stdin --literally", &tree);
    let line = format!("git update-ref HEAD $(git commit-tree -p HEAD -m hostile {tree})");
    inside(world, &line, b"");
}

#[test]
fn what_is_hostile_is_refused_and_leaves_nothing() {
    let blob =
        |world: &World, text: &str| word(world, "git hash-object -w --stdin", text.as_bytes());
    let mut told = String::new();
    let names =
        [".git", ".GIT", "..", ".", "", "a/b", ".g\u{200c}it", "git~1", ".gitmodules", "GITMOD~1"];
    for name in names {
        let world = world();
        let id = blob(&world, "x");
        commit(&world, &[("100644", name, &id)]);
        told += &format!("{name:?} {}\n", refused(&world));
    }
    for (mode, target) in [
        ("120000", "../../outside"),
        ("120000", ".git/config"),
        ("120000", "/etc/passwd"),
        ("160000", "x"),
        ("100600", "x"),
        ("40000", "no folder"),
    ] {
        let world = world();
        let id = blob(&world, target);
        commit(&world, &[(mode, "name", &id)]);
        told += &format!("{mode} {target} {}\n", refused(&world));
    }
    let world = world();
    let (id, tree) = (blob(&world, "x"), word(&world, "git rev-parse HEAD:src", b""));
    let all = [("100644", "HEAD", &*id), ("40000", "objects", &*tree), ("40000", "refs", &*tree)];
    commit(&world, &all);
    told += &format!("shape {}\n", refused(&world));
    // The names of objects differ with the time of a commit.
    let mut shown = String::new();
    for word in told.split_inclusive(' ') {
        let is_id = word.trim().len() == 40 && word.trim().bytes().all(|it| it.is_ascii_hexdigit());
        shown += if is_id { "ID " } else { word };
    }
    expect_test::expect![[r#"
        ".git" nothing was written back: .git: git, or a file system, takes a part of its name for `.git`
        ".GIT" nothing was written back: .GIT: git, or a file system, takes a part of its name for `.git`
        ".." the commits of the sandbox were not taken: the folder ID is not as git writes one
        "." the commits of the sandbox were not taken: the folder ID is not as git writes one
        "" the commits of the sandbox were not taken: the folder ID is not as git writes one
        "a/b" the commits of the sandbox were not taken: the folder ID is not as git writes one
        ".g\u{200c}it" nothing was written back: .g\u{200c}it: git, or a file system, takes a part of its name for `.git`
        "git~1" nothing was written back: git~1: git, or a file system, takes a part of its name for `.git`
        ".gitmodules" nothing was written back: .gitmodules: git fetches from where it says, and puts that where it says
        "GITMOD~1" nothing was written back: GITMOD~1: git fetches from where it says, and puts that where it says
        120000 ../../outside nothing was written back: name: it links to `../../outside`, which may be outside the directory
        120000 .git/config nothing was written back: name: it links to `.git/config`, into what git keeps
        120000 /etc/passwd nothing was written back: name: it links to `/etc/passwd`, which may be outside the directory
        160000 x nothing was written back: name: it is a submodule, whose files are another repository's
        100600 x the commits of the sandbox were not taken: the folder ID is not as git writes one
        40000 no folder the commits of the sandbox were not taken: the folder ID is not as git writes one
        shape nothing was written back: HEAD: `the directory` would be a repository by its shape, whose settings git obeys; refs/main: `the directory` would be a repository by its shape, whose settings git obeys; refs/deep/er/file: `the directory` would be a repository by its shape, whose settings git obeys; and 2 more
    "#]].assert_eq(&shown);
}

#[test]
fn commits_that_stand_on_nothing_or_say_more_are_refused() {
    let fresh = world();
    inside(&fresh, "git checkout -q --orphan alone && git commit -qm alone", b"");
    assert!(refused(&fresh).contains("begins a history of its own"));
    let signed = world();
    let tree = word(&signed, "git rev-parse HEAD^{tree} HEAD", b"").replace('\n', "\nparent ");
    let who = "A <a@example.org> 1 +0000";
    let text = format!("tree {tree}\nauthor {who}\ncommitter {who}\ngpgsig x\n\nsigned\n");
    let id = word(&signed, "git hash-object -t commit -w --stdin --literally", text.as_bytes());
    inside(&signed, &format!("git update-ref HEAD {id}"), b"");
    assert!(refused(&signed).contains("is not plain"));
    // An object that is nowhere.
    let absent = world();
    let id = word(&absent, "git hash-object --stdin", b"nowhere");
    commit(&absent, &[("100644", "file", &id)]);
    let target = CommitTarget::open(&absent.path("a")).unwrap().unwrap();
    let head = word(&absent, "git rev-parse HEAD", b"");
    let line = "git rev-parse HEAD; (echo HEAD; echo HEAD^{tree}) | git cat-file --batch";
    let mut objects = ObjectSet::first(&inside(&absent, line, b"")).unwrap();
    for _ in 0..9 {
        let Ok(CommitReview::Wanted(ids)) = target.review(&objects, &[]) else { break };
        let ids: String = ids.iter().map(|id| format!("{id}\n")).collect();
        objects.add(&inside(&absent, "git cat-file --batch", ids.as_bytes())).unwrap();
    }
    let error = target.review(&objects, &[]).unwrap_err().source().unwrap().to_string();
    assert_eq!(error, format!("the object {id} is neither in the sandbox nor in the repository"));
    let alone = ObjectSet::first(format!("{}\n", head.replace('a', "b")).as_bytes()).unwrap();
    assert!(target.review(&alone, &[]).unwrap_err().source().unwrap().to_string().contains("nei"));
}

#[test]
fn a_folder_that_holds_itself_many_times_comes_to_an_end() {
    let world = world();
    let mut id = word(&world, "git hash-object -w --stdin", b"x");
    let mut mode = "100644";
    for _ in 0..12 {
        let entries: String =
            (0..10).map(|it| format!("{mode} {} {id}\t{it}\n", kind(mode))).collect();
        id = word(&world, "git mktree --missing", entries.as_bytes());
        mode = "040000";
    }
    inside(&world, &format!("git update-ref HEAD $(git commit-tree -p HEAD -m bomb {id})"), b"");
    let told = refused(&world);
    assert!(told.ends_with("they have more than 100000 changed files"), "{told}");
}

fn kind(mode: &str) -> &'static str {
    if mode == "100644" { "blob" } else { "tree" }
}

#[test]
fn a_repository_that_can_not_be_given_commits_says_why() {
    let world = World::new();
    let why = |dir: &str| CommitTarget::open(&world.path(dir)).unwrap().unwrap_err();
    world.write("plain/file", "x");
    assert_eq!(why("plain"), "the directory is not the top of a git repository");
    world.git("plain", &["init", "-q"]);
    assert_eq!(why("plain"), "it has no commit yet");
    world.write("long/file", "x");
    world.git("long", &["init", "-q", "--object-format=sha256"]);
    world.git("long", &["add", "."]);
    world.git("long", &["commit", "-qm", "first"]);
    assert_eq!(why("long"), "its objects are named by SHA-256, which is not supported yet");
    world.write("table/file", "x");
    world.git("table", &["init", "-q", "--ref-format=reftable"]);
    assert!(why("table").contains("reftable"));
    // What is called `.git` leads to another repository.
    let other = self::world();
    other.write("file/.git", format!("gitdir: {}\n", other.path("a/.git").display()));
    fs::create_dir_all(other.path("link")).unwrap();
    std::os::unix::fs::symlink(other.path("a/.git"), other.path("link/.git")).unwrap();
    other.write("common/.git/HEAD", "ref: refs/heads/main\n");
    other.write("common/.git/commondir", "../../a/.git\n");
    other.write("claimed/.git", "gitdir: x/worktrees/y\n");
    other.write("claimed/x/worktrees/y/HEAD", "ref: refs/heads/main\n");
    other.write("claimed/x/worktrees/y/commondir", "../../../../a/.git\n");
    other.write("claimed/x/worktrees/y/gitdir", "../../../.git\n");
    for dir in ["file", "link", "common", "claimed"] {
        let told = CommitTarget::open(&other.path(dir)).unwrap().unwrap_err();
        assert!(told.contains("does not know the directory as a checkout"), "{dir}: {told}");
    }
    // A branch of that name leaves no room for ours.
    let world = self::world();
    world.git("a", &["branch", "outrigger"]);
    inside(&world, "git commit -q --allow-empty -m more", b"");
    let before = files(&world);
    let target = CommitTarget::open(&world.path("a")).unwrap().unwrap();
    let (objects, commits) = judged(&world, &target, &[]).unwrap().unwrap();
    let error = target.write(&objects, &commits, "it").unwrap_err();
    assert!(error.source().unwrap().to_string().contains("another branch is in its way"));
    assert_eq!(files(&world), before);
    // Somebody holds its lock.
    world.git("a", &["branch", "-D", "-q", "outrigger"]);
    world.write("a/.git/refs/heads/outrigger/it.lock", "");
    let before = files(&world);
    let target = CommitTarget::open(&world.path("a")).unwrap().unwrap();
    let error = target.write(&objects, &commits, "it").unwrap_err();
    assert!(matches!(error, Error::Write { .. }), "{error}");
    assert_eq!(files(&world), before);
}
