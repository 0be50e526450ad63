//! A host that gives no user namespaces: nothing runs, until somebody accepts by name what
//! is left, and then commands find their places.

use std::process::Stdio;

use crate::support::{OUTRIGGER, Ran, Turn, World, shell};

/// Goes on where no user namespace can be made, without any right to change that.
const NONE: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
                    exec setpriv --ambient-caps=-all --inh-caps=-all --bounding-set=-all \"$@\"";

/// Runs the binary on such a host.
fn run(world: &World, args: &[&str]) -> Ran {
    let mut command = world.command("unshare");
    command.args(["--user", "--map-current-user", "--keep-caps", "sh", "-ec", NONE, "sh"]);
    Ran::of(command.arg(OUTRIGGER).arg("--data-dir").arg(world.data()).args(args).output().unwrap())
}

/// Sees that nothing runs, and that it is said what would help.
#[track_caller]
fn refuses(doctor: Ran) {
    let refused = doctor.expect(13);
    for words in ["user namespaces are refused", "max_user_namespaces", "isolation_min"] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}

#[test]
fn it_is_accepted_by_name_or_not_at_all() {
    let world = World::new();
    refuses(run(&world, &["doctor"]));
    // The command line can't lower what the configuration demands of this machine.
    run(&world, &["sandbox", "create", "one", "--isolation-min", "reduced"]).expect(13);
    world.configure("[sandbox]\nisolation_min = \"reduced\"\n");
    let told = run(&world, &["doctor", "--json"]).expect(0).json();
    assert_eq!(told["sandbox"]["capabilities"]["isolation"], "reduced");
    let layers = told["sandbox"]["capabilities"]["layers"].as_array().unwrap();
    let missing = layers.iter().find(|layer| layer["name"] == "namespaces").unwrap();
    assert_eq!(missing["active"], false);
    assert!(missing["detail"].as_str().unwrap().contains("max_user_namespaces"), "{missing}");
    // With namespaces there is no reason to go without.
    let told = world.ran(0, &["doctor", "--json"]).json();
    assert_ne!(told["sandbox"]["capabilities"]["isolation"], "reduced");
}

/// Runs the binary as root of all ids, as in a container, where no user namespace can be made.
fn run_as_root(world: &World, args: &[&str]) -> Ran {
    assert!(rustix::process::geteuid().is_root(), "this needs root, to be root elsewhere");
    // A shell that is mapped while it starts takes itself for a setuid program.
    let mut holder = world.command("unshare");
    let mut holder = holder.args(["--user", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
    for map in ["uid_map", "gid_map"] {
        let path = format!("/proc/{}/{map}", holder.id());
        // It is in its namespace once it can be mapped; before, it is in ours.
        while std::fs::write(&path, "0 0 4294967295").is_err() {
            assert!(holder.try_wait().unwrap().is_none(), "`unshare` ended");
            std::thread::yield_now();
        }
    }
    const ALONE: &str = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"";
    let mut command = world.command("nsenter");
    command.args(["--user", "--target", &holder.id().to_string(), "sh", "-ec", ALONE, "sh"]);
    command.arg(OUTRIGGER).arg("--data-dir").arg(world.data()).args(args);
    let ran = Ran::of(command.output().unwrap());
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    ran
}

#[test]
fn root_is_refused_namespaces_too_and_has_the_same_choice() {
    let world = World::new();
    refuses(run_as_root(&world, &["doctor"]));
    world.configure("[sandbox]\nisolation_min = \"reduced\"\n");
    let told = run_as_root(&world, &["doctor", "--json"]).expect(0).json();
    assert_eq!(told["sandbox"]["capabilities"]["isolation"], "reduced");
    run_as_root(&world, &["sandbox", "create", "one"]).expect(0);
    // Root by its number, and by nothing else.
    let line = "id -u; echo mine > f; cat f; cat /etc/shadow || chown 1 f || mknod d c 1 3";
    let said = run_as_root(&world, &["sandbox", "exec", "one", "--", "sh", "-c", line]);
    assert_eq!((said.code, &*said.stdout), (Some(1), "0\nmine\n"), "{}", said.stderr);
    // It is not what somebody gets who did not accept it, while it lives.
    world.configure("");
    world.ran(13, &["sandbox", "exec", "one", "--", "true"]);
    world.configure("[sandbox]\nisolation_min = \"reduced\"\n");
    world.ran(0, &["sandbox", "rm", "one"]);
}

#[test]
fn a_disk_of_other_owners_is_not_started() {
    let world = World::new();
    world.ran(0, &["sandbox", "create", "one"]);
    world.ran(0, &["sandbox", "exec", "one", "--", "sh", "-c", "echo kept > f"]);
    world.stop_spawner();
    world.configure("[sandbox]\nisolation_min = \"reduced\"\n");
    let refused = run_as_root(&world, &["sandbox", "exec", "one", "--", "cat", "f"]);
    assert!(refused.stderr.contains("made in namespaces"), "{}", refused.stderr);
    assert_eq!(refused.stdout, "");
    // Whom the host gives namespaces again has it again.
    world.stop_spawner();
    let said = world.ran(0, &["sandbox", "exec", "one", "--", "cat", "f"]);
    assert_eq!(said.stdout, "kept\n");
}

#[test]
fn a_session_works_and_is_told_where_its_places_are() {
    let world = World::new();
    world.configure("[sandbox]\nisolation_min = \"reduced\"\n");
    let dir = world.dir("project", &[("a.txt", b"from outside\n")]);
    let lines = [
        "cat a.txt \"$WORKSPACE/a.txt\" && echo echo ran > b.sh && chmod 755 b.sh && ./b.sh; pwd | wc -l",
        "cat /workspace/a.txt 2> /dev/null || echo nothing there",
    ];
    let script = world.script(&lines.map(|line| Turn(vec![shell(line)].leak())));
    let dir = dir.display().to_string();
    let args = ["run", "Do it.", "--dir", &dir, "--script", &script, "--apply=all", "--json"];
    run(&world, &args).expect(0);
    let texts: Vec<String> = world
        .events(&world.session())
        .into_iter()
        .filter_map(|event| {
            Some(event["settled"]["outcome"]["done"]["output"]["text"].as_str()?.to_owned())
        })
        .collect();
    expect_test::expect![[r#"
        [
            "from outside\nfrom outside\nran\n1\n[exit code 0]",
            "nothing there\n[exit code 0]\n[in this sandbox commands see the host's paths: use $WORKSPACE, where they start, for /workspace, $HOME for /home/agent and $TMPDIR for /tmp; the file tools take the usual paths]",
        ]
    "#]]
    .assert_debug_eq(&texts);
    let left = std::fs::read_to_string(std::path::Path::new(&dir).join("b.sh")).unwrap();
    assert_eq!(left, "echo ran\n");
}
