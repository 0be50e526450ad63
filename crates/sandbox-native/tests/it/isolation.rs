//! What a command can see and do. Each test fails when one line of the isolation is removed.

use crate::support::*;
use outrigger_sandbox::{Backend, CreateSpec, Isolation};
use std::collections::BTreeMap;

#[tokio::test]
async fn a_command_is_an_ordinary_user_without_rights() {
    let sandbox = single().await;
    let status = says(&*sandbox, "cat /proc/self/status").await;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
        line.unwrap_or_else(|| panic!("{name} in {status}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        (field("Uid"), field("Gid")),
        ("1000 1000 1000 1000".into(), "1000 1000 1000 1000".into())
    );
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(
        (field("NoNewPrivs"), field("Seccomp"), field("Seccomp_filters")),
        ("1".into(), "2".into(), "2".into())
    );
    if sandbox.world.native.capabilities().isolation == Isolation::RootRange {
        assert_eq!(field("Groups"), "");
    }
    assert_eq!(says(&*sandbox, "ulimit -c").await, "0\n");
}

#[tokio::test]
async fn the_guest_has_only_what_starts_and_kills_commands() {
    let sandbox = single().await;
    let guest = guest_of(sandbox.world.state.path()).as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{guest}/status")).unwrap();
    let has = |line: &str| status.lines().any(|found| found == line);
    // CAP_KILL, CAP_SETGID and CAP_SETUID where there are users to switch to.
    let root = sandbox.world.native.capabilities().isolation == Isolation::RootRange;
    let held = if root { "00000000000000e0" } else { "0000000000000000" };
    for line in [format!("CapEff:\t{held}"), format!("CapPrm:\t{held}")] {
        assert!(has(&line), "{line}: {status}");
    }
    for line in
        ["CapBnd:\t0000000000000000", "CapInh:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]
    {
        assert!(has(line), "{line}: {status}");
    }
}

#[tokio::test]
async fn what_waits_and_what_is_shared_is_bounded_by_its_memory() {
    let world = world().await;
    for (memory, shared) in [(64 << 20, 32 << 20), (8 << 30, 1_u64 << 30)] {
        let spec = CreateSpec { memory_bytes_max: memory, ..CreateSpec::default() };
        let id = sandbox_id(&format!("m{memory}"));
        let sandbox = world.native.create(&id, &spec).await.unwrap();
        let size = says(&*sandbox, "df -B1 --output=size /dev/shm | tail -n 1").await;
        assert_eq!(size.trim(), shared.to_string());
        // Whoever may write there is woken by the load of the host.
        assert_eq!(says(&*sandbox, "ls -A /proc/pressure").await, "");
    }
}

#[tokio::test]
async fn the_environment_is_constructed() {
    let sandbox = single().await;
    let names = says(&*sandbox, "exec /usr/bin/env").await;
    let mut names: Vec<&str> = names.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    // The shell itself adds the last three.
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    assert_eq!(names, ["HOME", "LANG", "PATH", "TMPDIR", "USER", "WORKSPACE"]);
}

#[tokio::test]
async fn no_process_of_the_host_is_visible() {
    let sandbox = single().await;
    let seen =
        says(&*sandbox, "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done").await;
    let foreign: Vec<&str> = seen
        .lines()
        .filter(|line| {
            !line.trim().is_empty()
                && !line.contains("outrigger-guest")
                && !line.contains("bash -c")
                && !line.contains("sh -c")
                && !line.starts_with("tr ")
        })
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    let guest = says(&*sandbox, "cat /proc/1/environ; ls /proc/1/fd; readlink /proc/1/exe; cat /proc/1/maps; cat /proc/1/mem").await;
    assert!(!guest.contains('='), "{guest}");
    assert_eq!(guest.matches("ermission denied").count(), 4, "{guest}");
}

#[tokio::test]
async fn no_file_of_the_host_is_visible_but_its_programs() {
    let name = format!("outrigger-canary-{}", std::process::id());
    let home = std::env::var("HOME").unwrap_or_else(|_| "/root".to_owned());
    let places = [std::env::temp_dir().join(&name), std::path::Path::new(&home).join(&name)];
    for place in &places {
        std::fs::write(place, "canary").unwrap();
    }
    let sandbox = single().await;
    for place in &places {
        let seen = says(&*sandbox, &format!("cat {}", place.display())).await;
        assert!(!seen.contains("canary\n") && seen.contains("No such file"), "{seen}");
    }
    let found = says(&*sandbox, &format!("find / -name {name} 2>/dev/null; true")).await;
    for place in &places {
        std::fs::remove_file(place).unwrap();
    }
    assert_eq!(found, "");
    let root = says(&*sandbox, "ls /").await;
    let expected = [
        "bin",
        "dev",
        "etc",
        "home",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "proc",
        "run",
        "sbin",
        "tmp",
        "usr",
        "var",
        "workspace",
    ];
    let extra: Vec<&str> = root.lines().filter(|name| !expected.contains(name)).collect();
    assert!(extra.is_empty(), "{extra:?}");
    let etc =
        says(&*sandbox, "cat /etc/shadow /etc/machine-id; cat /etc/passwd; ls /sys; ls /home")
            .await;
    assert_eq!(etc.matches("No such file").count(), 3, "{etc}");
    assert_eq!(etc.matches(":/").count(), 6, "{etc}");
}

/// All that can be read of a process's memory.
fn memory_of(pid: i32) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| !line.contains("[v")) {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let mut bytes = vec![0; usize::try_from(number(end) - number(start)).unwrap()];
        if rest.starts_with('r') && memory.read_exact_at(&mut bytes, number(start)).is_ok() {
            all.extend(bytes);
        }
    }
    all
}

/// A secret in the engine's memory and environment. Its parts are joined at run
/// time, so that it stands nowhere in this test's own text.
fn canary() -> String {
    ["Outrigger", "Canary", "7f3a91"].join("-")
}

#[tokio::test]
async fn a_secret_of_the_engine_is_nowhere_in_the_sandbox() {
    let state = tempfile::tempdir().unwrap();
    let child = std::process::Command::new(example("engine"))
        .args(["run"])
        .arg(state.path().join("state"))
        .arg(example("spawner"))
        .args(["one", "look"])
        // Everything that a command can read of processes, and the spawner's memory file.
        .arg("cat /proc/*/environ /proc/*/cmdline /proc/*/maps /proc/self/mountinfo 2>/dev/null | tr '\\0' '\\n'; cat /proc/1/exe 2>/dev/null; env; true")
        .env("OUTRIGGER_TEST_SECRET", canary())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(said.contains("Exited(0)"), "{said}{}", String::from_utf8_lossy(&child.stderr));
    assert!(!said.contains(&canary()), "{said}");
    // Nor has the spawner it, from which guests are cloned.
    let world = World {
        native: outrigger_sandbox_native::Native::open(config(state.path())).await.unwrap(),
        state,
    };
    let spawner = spawner_of(world.state.path());
    let environ = std::fs::read(format!("/proc/{spawner}/environ")).unwrap();
    assert_eq!(environ, b"", "the spawner's environment");
    for pid in [spawner, guest_of(world.state.path()).as_raw_nonzero().get()] {
        let memory = memory_of(pid);
        assert!(memory.len() > 4096, "the memory of {pid} could be read");
        let canary = canary();
        let found = memory.windows(canary.len()).any(|window| window == canary.as_bytes());
        assert!(!found, "the secret is in the memory of {pid}");
    }
    let fds = std::fs::read_dir(format!("/proc/{spawner}/fd")).unwrap().flatten();
    let fds: Vec<_> = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    let known = [
        "/dev/null",
        "memfd:outrigger-guest",
        "spawner.lock",
        "socket:",
        "pidfd",
        "/run/outrigger/ids/",
        "anon_inode",
        // Of the root that sandboxes have in common.
        "mnt:[",
    ];
    for fd in fds {
        let fd = fd.to_string_lossy().into_owned();
        // Its way home from the roots that it makes, which guests are not given.
        assert!(
            fd == "/" || known.iter().any(|known| fd.contains(known)),
            "the spawner holds {fd}"
        );
    }
}

#[tokio::test]
async fn there_is_no_network() {
    let sandbox = single().await;
    let seen = says(
        &*sandbox,
        "cat /proc/net/route | wc -l; ls /proc/sys/net/ipv4/conf | sort | tr '\\n' ' '",
    )
    .await;
    assert_eq!(seen, "1\nall default lo ");
    let dial = "exec 3<>/dev/tcp/93.184.216.34/443";
    assert!(says(&*sandbox, dial).await.contains("unreachable"), "an address of the internet");
    assert!(
        says(&*sandbox, "exec 3<>/dev/tcp/169.254.169.254/80").await.contains("unreachable"),
        "cloud metadata"
    );
    assert!(
        says(&*sandbox, "exec 3<>/dev/tcp/127.0.0.1/1").await.contains("refused"),
        "its own loopback is up"
    );
}

#[tokio::test]
async fn dangerous_system_calls_are_refused() {
    let probe = example("probe");
    let world = world_with(|config| config.read_only = vec![probe.clone()]).await;
    let sandbox = world.sandbox("one").await;
    let said = says(&*sandbox, &probe.display().to_string()).await;
    let said: BTreeMap<&str, &str> = said.lines().filter_map(|line| line.split_once(' ')).collect();
    let allowed = ["socket-route", "socket-inet", "socket-unix", "prlimit-self", "personality-ask"];
    let unknown = ["clone3", "unknown", "x32"];
    assert!(said.len() > 45, "{said:?}");
    for (name, result) in said {
        let expected = if allowed.contains(&name) {
            "done"
        } else if unknown.contains(&name) {
            "ENOSYS"
        } else if name == "mknod-device" && result == "errno 13" {
            // EACCES, by Landlock, which is asked before rights are.
            "errno 13"
        } else {
            "EPERM"
        };
        assert_eq!(result, expected, "{name}");
    }
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn a_32_bit_system_call_ends_its_process() {
    let probe = example("probe");
    let world = world_with(|config| config.read_only = vec![probe.clone()]).await;
    let sandbox = world.sandbox("one").await;
    let executed = run(&*sandbox, argv(&[&probe.display().to_string(), "i386"])).await;
    assert_eq!(executed.end, outrigger_sandbox::End::Signalled(31), "SIGSYS");
}

#[tokio::test]
async fn setuid_programs_gain_nothing() {
    let sandbox = single().await;
    let line = "cp /usr/bin/id own; chmod 4755 own; ./own -u; \
                find /usr/bin -perm -4000 -name su -exec {} -c id \\; 2>/dev/null; true";
    assert_eq!(says(&*sandbox, line).await, "1000\n");
}

#[tokio::test]
async fn what_is_shown_of_proc_can_not_be_changed() {
    let sandbox = single().await;
    for path in [
        "/proc/sys/kernel/hostname",
        "/proc/sysrq-trigger",
        "/proc/sys/vm/drop_caches",
        "/proc/irq/default_smp_affinity",
    ] {
        let said = says(&*sandbox, &format!("echo 1 > {path}")).await;
        assert!(said.contains("[Exited(1)]"), "{path}: {said}");
    }
}

#[tokio::test]
async fn files_of_proc_that_tell_of_the_host_are_empty() {
    let sandbox = single().await;
    let mut masked = 0;
    for name in [
        "kcore",
        "keys",
        "timer_list",
        "sysrq-trigger",
        "latency_stats",
        "sched_debug",
        "interrupts",
    ] {
        // Which of them there are depends on how the kernel was built.
        if !std::path::Path::new("/proc").join(name).exists() {
            continue;
        }
        // Unmasked, some are refused and others tell: both are something else than nothing.
        let path = format!("/proc/{name}");
        assert_eq!(says(&*sandbox, &format!("exec cat {path}")).await, "", "{path}");
        assert_eq!(says(&*sandbox, &format!("stat -c %t:%T {path}")).await, "1:3\n", "{path}");
        masked += 1;
    }
    assert!(masked > 0, "no kernel is without every one of them");
}

#[tokio::test]
async fn the_guest_survives_what_commands_send_it() {
    let sandbox = single().await;
    let line = "for s in 9 15 19 11 6; do for t in 1 /proc/1/task/*; do kill -$s ${t##*/} 2>/dev/null; done; done; kill -9 -1; true";
    let _ = run(&*sandbox, shell(line)).await;
    assert_eq!(says(&*sandbox, "echo alive").await, "alive\n");
    let op = outrigger_sandbox::FileOp::List { path: ".".to_owned(), entries_max: 9 };
    files(&*sandbox, op).await.unwrap();
}

#[tokio::test]
async fn namespaces_are_its_own() {
    let sandbox = single().await;
    for kind in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        let host = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        let inside = says(&*sandbox, &format!("readlink /proc/self/ns/{kind}")).await;
        assert!(inside.starts_with(kind), "{inside}");
        assert_ne!(inside.trim_end(), host.to_string_lossy(), "{kind}");
    }
}

#[tokio::test]
async fn sandboxes_do_not_share_user_ids() {
    let world = world().await;
    let isolation = world.native.capabilities().isolation;
    assert_eq!(isolation, Isolation::RootRange, "this needs root, with every user id its own");
    let mut maps = Vec::new();
    for name in ["a", "b"] {
        let sandbox = world.sandbox(name).await;
        maps.push(says(&*sandbox, "cat /proc/self/uid_map").await);
    }
    assert_ne!(maps[0], maps[1]);
}

#[tokio::test]
async fn the_boot_of_the_host_is_not_told() {
    let sandbox = single().await;
    let file = "/proc/sys/kernel/random/boot_id";
    let told =
        says(&*sandbox, &format!("cat {file}; (echo x > {file}) 2>/dev/null || echo no")).await;
    assert_eq!(told, "00000000-0000-4000-8000-000000000000\nno\n");
    assert_ne!(std::fs::read_to_string(file).unwrap(), "00000000-0000-4000-8000-000000000000\n");
}
