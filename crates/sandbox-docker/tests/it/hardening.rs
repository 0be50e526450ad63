//! What a command can see and do. Each test fails when one line of the hardening is removed.

use crate::support::*;
use outrigger_sandbox::{Backend, End, Isolation};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_an_ordinary_user_without_rights() {
    let sandbox = single().await;
    let status = says(&*sandbox, "cat /proc/self/status").await;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
        let words = line.unwrap_or_else(|| panic!("{name} in {status}")).split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(field("Gid"), "1000 1000 1000 1000");
    let user = says(&*sandbox, "id -u").await;
    assert_eq!(field("Uid"), [user.trim(); 4].join(" "));
    assert!(user.trim().parse::<u32>().unwrap() >= 10_000, "{user}");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    // The daemon's filter, the guest's and the one of commands.
    let filters = (field("NoNewPrivs"), field("Seccomp"), field("Seccomp_filters"));
    assert_eq!(filters, ("1".into(), "2".into(), "3".into()));
    assert_eq!(says(&*sandbox, "hostname").await, "sandbox\n");
    // Of the guest, of this command, and of the program at the inner end of the stream.
    let cores = says(&*sandbox, "grep -h '^Max core' /proc/[0-9]*/limits").await;
    assert!(cores.lines().count() > 2, "{cores}");
    for limit in cores.lines() {
        let limit: Vec<&str> = limit.split_whitespace().skip(4).take(2).collect();
        assert_eq!(limit, ["1", "1"], "{cores}");
    }
    assert_eq!(sandbox.world.docker.capabilities().isolation, Isolation::Container);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guest_has_no_rights_and_the_daemons_filter() {
    let sandbox = single().await;
    let status = says(&*sandbox, "cat /proc/1/status").await;
    let has = |line: &str| status.lines().any(|found| found == line);
    let user = says(&*sandbox, "id -u").await;
    assert!(has(&format!("Uid:\t{}", [user.trim(); 4].join("\t"))), "{user}: {status}");
    for line in [
        "CapEff:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp_filters:\t2",
    ] {
        assert!(has(line), "{line}: {status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_disk_can_be_written() {
    let sandbox = single().await;
    let line = "for d in / /bin /etc /var /var/outrigger /var/outrigger/guest /home /dev /sys /sys/fs/cgroup; do \
                (echo x > $d/x) 2> /dev/null && echo $d; done; true";
    assert_eq!(says(&*sandbox, line).await, "");
    let line = "for d in /workspace ~ /tmp /var/tmp /dev/shm; do echo x > $d/x || echo $d; done";
    assert_eq!(says(&*sandbox, line).await, "");
    let mounts = says(&*sandbox, "cat /proc/self/mounts").await;
    let option = |target: &str, option: &str| {
        let line = mounts.lines().find(|line| line.split(' ').nth(1) == Some(target));
        let options = line.unwrap_or_else(|| panic!("{target} in {mounts}"));
        options.split(' ').nth(3).unwrap().split(',').any(|found| found == option)
    };
    assert!(option("/", "ro") && option("/var/outrigger/guest", "ro"), "{mounts}");
    for target in ["/run/outrigger", "/dev/shm"] {
        assert!(option(target, "nosuid") && option(target, "noexec"), "{target}: {mounts}");
    }
}

/// As Docker words it.
#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_was_asked_for_no_rights_and_for_namespaces_of_its_own() {
    let sandbox = single().await;
    let format = "{{.HostConfig.CapDrop}} {{.HostConfig.IpcMode}} {{.HostConfig.CgroupnsMode}}";
    let world = &sandbox.world;
    let seen = world.daemon.docker(&["inspect", "-f", format, &world.container("one")]);
    assert_eq!(seen.trim(), "[ALL] private private");
}

/// By what is seen inside: daemons have words of their own for what they were asked for.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_hosts_is_shared_but_its_users() {
    let sandbox = single().await;
    for space in ["ipc", "uts", "pid", "mnt", "net", "cgroup"] {
        let path = format!("/proc/self/ns/{space}");
        let theirs = says(&*sandbox, &format!("readlink {path}")).await;
        let ours = std::fs::read_link(&path).unwrap();
        assert_ne!(theirs.trim(), ours.to_str().unwrap());
    }
    let groups = says(&*sandbox, "cat /proc/self/cgroup").await;
    assert!(groups.lines().all(|line| line.ends_with(":/")), "{groups}");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_network() {
    let sandbox = single().await;
    let seen = says(&*sandbox, "wc -l < /proc/net/route; ls /sys/class/net").await;
    let (routes, interfaces) = seen.split_once('\n').unwrap();
    assert!(routes.trim() == "1" || routes.trim() == "0", "{seen}");
    assert_eq!(interfaces.trim(), "lo");
    let dial = "nc -w 1 93.184.216.34 443 < /dev/null";
    assert!(says(&*sandbox, dial).await.contains("nreachable"), "an address of the internet");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_constructed() {
    let sandbox = single().await;
    let names = says(&*sandbox, "exec env").await;
    let mut names: Vec<&str> = names.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    assert_eq!(names, ["HOME", "LANG", "PATH", "TMPDIR", "USER", "WORKSPACE"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_command_does_ends_the_guest_or_its_stream() {
    let sandbox = single().await;
    let line = "for s in 9 15 19 11 6; do for p in /proc/[0-9]*; do p=${p##*/}; \
                [ $p = $$ ] || kill -$s $p 2> /dev/null; done; done; kill -9 -1; true";
    let _ = sandbox.execute(shell(line), &()).await.unwrap();
    assert_eq!(says(&*sandbox, "echo alive").await, "alive\n");
    assert!(sandbox.is_alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_can_not_speak_to_the_guest() {
    let sandbox = single().await;
    // A second guest program as a way in, begun by a command.
    let line = "/var/outrigger/guest/outrigger-guest --bridge /run/outrigger/guest < /dev/null | head -c 1 | wc -c";
    assert_eq!(says(&*sandbox, line).await.trim(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_the_daemons() {
    let world = world().await;
    let spec = outrigger_sandbox::CreateSpec {
        memory_bytes_max: 64 << 20,
        pids_max: 20,
        cpu_millis_max: 500,
        ..Default::default()
    };
    let sandbox = world.docker.create(&sandbox_id("one"), &spec).await.unwrap();
    let format = "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.PidsLimit}} \
                  {{.HostConfig.CpuQuota}} {{.HostConfig.ReadonlyRootfs}} \
                  {{.HostConfig.NetworkMode}} {{.HostConfig.Privileged}} {{.Config.User}}";
    let seen = world.daemon.docker(&["inspect", "-f", format, &world.container("one")]);
    let user = says(&*sandbox, "id -u").await;
    let seen = seen.replace(user.trim(), "USER");
    assert_eq!(seen.trim(), "67108864 67108864 36 5000 true none false USER:1000");
    let hog = sandbox.execute(shell("x=0123456789abcdef; while :; do x=$x$x; done"), &());
    let end = hog.await.unwrap().end;
    assert!(matches!(end, End::OutOfMemory | End::Exited(1..)), "{end:?}");
    assert_eq!(says(&*sandbox, "echo alive").await, "alive\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_of_trees_are_empty_and_not_written_to() {
    let world = world().await;
    let served = vec!["/memory".to_owned()];
    let spec = outrigger_sandbox::CreateSpec { served, ..Default::default() };
    let sandbox = world.docker.create(&sandbox_id("one"), &spec).await.unwrap();
    assert_eq!(
        says(&*sandbox, "ls -A /memory; echo x 2> /dev/null > /memory/f || echo no").await,
        "no\n"
    );
    assert_eq!(says(&*sandbox, "test -e /dev/fuse || echo none").await, "none\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_has_a_user_to_itself() {
    let world = world().await;
    let mut users = std::collections::BTreeSet::new();
    for id in ["one", "two", "three"] {
        let sandbox = world.docker.create(&sandbox_id(id), &Default::default()).await.unwrap();
        let user = says(&*sandbox, "id -u").await;
        let owners = says(&*sandbox, "stat -c %u ~ . /tmp /proc/1").await;
        assert!(owners.split_whitespace().all(|owner| owner == user.trim()), "{user}{owners}");
        users.insert(user);
    }
    assert_eq!(users.len(), 3, "{users:?}");
}
