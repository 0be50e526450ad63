//! The isolation as a whole: a secret of the harness is nowhere in the sandbox, in
//! what it wrote, in the journal, or in what was printed.

use crate::support::{OUTRIGGER, Ran, Turn, World, parent_of, processes, shell};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

/// A secret that stands nowhere in this program's text, nor in what the sandbox is told.
pub(crate) fn secret() -> String {
    format!("{}-{:08x}{:08x}", ["OUTRIGGER", "CANARY"].join("-"), std::process::id(), 0x5eed_u32)
}

/// Matches the secret and is not one.
const PATTERN: &str = "OUTRIGGER[-]CANARY";

/// Everything that a command can read of processes, of the host's files and of itself.
fn looks(world: &World) -> String {
    let (home, root) = (world.path("home"), world.path(""));
    [
        "env > seen-env".to_owned(),
        "cat /proc/*/environ /proc/*/task/*/environ > seen-environs 2>&1".to_owned(),
        "cat /proc/1/cmdline /proc/1/maps /proc/1/mem /proc/self/mountinfo > seen-init 2>&1".to_owned(),
        "ls -l /proc/*/fd /proc/*/cwd /proc/*/exe /proc/*/root > seen-fds 2>&1".to_owned(),
        "for p in /proc/[0-9]*; do echo \"$p $(cat $p/comm) $(tr '\\0' ' ' < $p/cmdline)\"; done > seen-processes 2>&1".to_owned(),
        format!("cat {h}/.netrc {h}/.ssh/id_rsa {r}config/outrigger/config.toml /root/.netrc > seen-home 2>&1", h = home.display(), r = root.display()),
        "ls -a / /home /home/agent /tmp /var /run > seen-roots 2>&1".to_owned(),
        "ls -l /proc/self/ns > seen-ns".to_owned(),
        "for n in 3 4 5 6 7 8 9 10 11 12 25; do cat <&$n; done > seen-inherited 2>&1".to_owned(),
        "for a in '' /mnt /media /srv /opt /sys /boot /proc/1/root /proc/self/root; do ls $a/root $a/etc/shadow; done > seen-places 2>&1".to_owned(),
        // The host's programs, which are shown as they are, are left out: they are large.
        format!("timeout 500 grep -rs '{PATTERN}' / --include='*' --exclude=kcore --exclude=pagemap --exclude='seen-*' --exclude-dir=usr > seen-grep; [ $? != 124 ] || echo unfinished >> seen-grep"),
        format!("find / -xdev -name '.netrc' > seen-find 2>&1; find / -newermt '-1 hour' -path '/usr/*' -exec grep -ls '{PATTERN}' {{}} + >> seen-find"),
        "cat seen-*".to_owned(),
    ]
    .join("; ")
}

/// The guest that runs. Others wait to become one and have no ids yet; those that make
/// them have the ids of the spawner.
fn guest_of(spawner: u32) -> Option<u32> {
    let ids = |pid: u32| fs::read_to_string(format!("/proc/{pid}/uid_map")).unwrap_or_default();
    let own = ids(spawner);
    let serves = |pid: &u32| {
        let ids = ids(*pid);
        parent_of(*pid) == Some(spawner) && !ids.is_empty() && ids != own
    };
    processes().into_iter().find(serves)
}

/// All of a process's memory that it can write. What it can't is files. `None`: it has ended.
pub(crate) fn memory_of(pid: u32) -> Option<Vec<u8>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| !line.contains("[v")) {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let mut bytes = vec![0; usize::try_from(number(end) - number(start)).unwrap()];
        if rest.starts_with("rw") && memory.read_exact_at(&mut bytes, number(start)).is_ok() {
            all.extend(bytes);
        }
    }
    Some(all)
}

pub(crate) fn holds(bytes: &[u8], secret: &str) -> bool {
    memchr::memmem::find(bytes, secret.as_bytes()).is_some()
}

/// Files beneath a directory that hold the secret, links not followed.
pub(crate) fn hits(dir: &Path, secret: &str, searched: &mut u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(hits(&path, secret, searched));
        } else if kind.is_file() {
            *searched += 1;
            if holds(&fs::read(&path).unwrap(), secret) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

struct Looked {
    world: World,
    secret: String,
    ran: Ran,
}

/// A session that looks for the secret everywhere, and stops with its sandbox alive.
fn looked() -> Looked {
    let (world, secret) = (World::new(), secret());
    let dir = world.dir("repo", &[("file", b"file\n")]);
    let line = format!("machine example.org password {secret}\n");
    world.dir("home", &[(".netrc", line.as_bytes()), (".ssh/id_rsa", line.as_bytes())]);
    let config = format!("# {secret}\n[sandbox]\nisolation_min = \"rootless_single\"\n");
    world.dir("config", &[("outrigger/config.toml", config.as_bytes())]);
    fs::write(world.path("inherited"), &line).unwrap();
    let looks = json!({ "command": looks(&world), "timeout": 600_000 });
    let script = world.script(&[Turn(&[("execute", looks)]), Turn(&[shell("true")])]);
    // Descriptors that a careless parent left open: before, among and after those
    // that the spawner keeps.
    let inherit = "exec 7< inherited 11< inherited 25< inherited; exec \"$@\"";
    let mut command = world.command("bash");
    command.args(["-c", inherit, "bash", OUTRIGGER]).arg("--data-dir").arg(world.data()).args([
        "run",
        "Look.",
        "--dir",
        dir.to_str().unwrap(),
        "--script",
        &script,
        "--max-steps",
        "2",
    ]);
    for name in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "LD_CANARY",
    ] {
        command.env(name, &secret);
    }
    let ran = Ran::of(command.output().unwrap()).expect(11);
    Looked { world, secret, ran }
}

impl Looked {
    fn seen(&self, name: &str) -> String {
        self.world.beside(&self.world.session(), &["cat", &format!("seen-{name}")])
    }
}

#[test]
fn a_secret_of_the_harness_is_nowhere() {
    let looked = looked();
    let (world, secret) = (&looked.world, &looked.secret);
    for text in [&looked.ran.stdout, &looked.ran.stderr] {
        assert!(!text.contains(secret.as_str()), "it was printed: {text}");
    }
    let mut searched = 0;
    assert_eq!(hits(&world.data(), secret, &mut searched), Vec::<String>::new());
    assert!(searched > 15, "{searched} files: the journal and what was seen are among them");
    assert_eq!((looked.seen("grep"), looked.seen("find")), (String::new(), String::new()));
    // It was there to be found.
    assert_eq!(hits(world.path("home").as_path(), secret, &mut searched).len(), 2);
}

#[test]
fn no_git_is_asked_about_a_repository() {
    let world = World::new();
    let dir = world.dir("repo", &[("file", b"file\n")]);
    world.git(&dir, &["init", "-q"]);
    world.git(&dir, &["add", "."]);
    let path = std::env::var("PATH").unwrap();
    let log = world.path("git-was-run");
    let wrapper = format!("#!/bin/sh\nenv >> {}\nPATH={path} exec git \"$@\"\n", log.display());
    let bin = world.dir("bin", &[("git", wrapper.as_bytes())]);
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let script = world.script(&[Turn(&[shell("ls; echo more >> file")])]);
    let target = dir.display().to_string();
    let args = ["run", "x", "--dir", &target, "--script", &script, "--json", "--apply"];
    let mut run = world.outrigger(&args);
    run.env("PATH", format!("{}:{path}", bin.display()));
    // As in a hook of another repository.
    run.env("GIT_DIR", "/nowhere");
    assert_eq!(Ran::of(run.output().unwrap()).expect(0).json()["applied"], true);
    assert!(!log.exists(), "{}", fs::read_to_string(log).unwrap());
}

#[test]
fn what_a_command_sees_is_its_own() {
    let looked = looked();
    let world = &looked.world;
    let mut names: Vec<String> = looked
        .seen("env")
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
        .collect();
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()));
    names.sort();
    // And where its programs are refused what it may not reach.
    let of_network = [
        "_proxy",
        "_PROXY",
        "_OPTS",
        "_CA_BUNDLE",
        "_CERTS",
        "_CERT",
        "_CAINFO",
        "_CAFILE",
        "SSL_CERT_FILE",
        "APT_CONFIG",
    ];
    names.retain(|name| !of_network.iter().any(|ending| name.ends_with(ending)));
    assert_eq!(names, ["HOME", "LANG", "PATH", "TMPDIR", "USER", "WORKSPACE"]);
    assert!(!looked.seen("env").contains(&looked.secret));

    let seen = looked.seen("processes");
    let test = std::env::current_exe().unwrap();
    let test = test.file_name().unwrap().to_str().unwrap();
    for foreign in [test, "native-spawner", "--data-dir", "cargo", "systemd"] {
        assert!(!seen.contains(foreign), "{foreign} in {seen}");
    }
    let own = ["memfd:outrigger", "outrigger-guest", "bash", "sh", "cat", "tr"];
    for line in seen.lines().filter(|line| line.starts_with("/proc/")) {
        let comm = line.split(' ').nth(1).unwrap();
        assert!(own.iter().any(|own| comm.starts_with(own)), "{line}");
    }
    assert!(!seen.contains(&format!("/proc/{} ", std::process::id())), "{seen}");

    let home = looked.seen("home");
    assert_eq!(home.matches("No such file").count(), 4, "{home}");
    let places = looked.seen("places");
    assert!(
        !places.lines().any(|line| !line.contains("No such file") && !line.contains("denied")),
        "{places}"
    );
    let roots = looked.seen("roots");
    let own = world.path("").file_name().unwrap().to_str().unwrap().to_owned();
    for name in ["root", "mnt", "media", "srv", "opt", "sys", "boot", &own] {
        assert!(!roots.lines().any(|line| line == name), "{name} in {roots}");
    }
    let homes = roots.split("\n\n").find(|part| part.starts_with("/home:")).unwrap();
    assert_eq!(homes.lines().collect::<Vec<_>>(), ["/home:", ".", "..", "agent"]);
    let fds = looked.seen("fds");
    assert!(!fds.contains("inherited") && !fds.contains("journal.db"), "{fds}");
    for kind in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        let host = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        let (host, inside) = (host.display().to_string(), looked.seen("ns"));
        assert!(
            inside.contains(&format!("{kind}:[")) && !inside.contains(&host),
            "{host} in {inside}"
        );
    }
}

#[test]
fn spawner_and_guest_never_had_the_secret() {
    let looked = looked();
    // Its sandbox went cold with the turn; the guest of its next life is looked at.
    looked.world.beside(&looked.world.session(), &["true"]);
    let spawner = looked.world.spawner().expect("a spawner of this world");
    let guest = guest_of(spawner).expect("a guest");
    for pid in [spawner, guest] {
        match fs::read(format!("/proc/{pid}/environ")) {
            Ok(environ) => assert_eq!(environ, b"", "{pid}"),
            // Of a process with rights that its user has not, the kernel shows that
            // user nothing (proc_pid_environ(5)): as root there is more to check.
            Err(error) => {
                let root = rustix::process::geteuid().is_root();
                assert!(!root && error.kind() == std::io::ErrorKind::PermissionDenied, "{error}");
                continue;
            }
        }
        let memory = memory_of(pid).unwrap();
        assert!(memory.len() > 4096, "the memory of {pid} could be read");
        assert!(!holds(&memory, &looked.secret), "the secret is in the memory of {pid}");
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        for fd in fds.filter_map(|fd| fs::read_link(fd.path()).ok()) {
            let fd = fd.display().to_string();
            assert!(!fd.contains("inherited") && !fd.contains("journal"), "{pid} holds {fd}");
        }
    }
}
