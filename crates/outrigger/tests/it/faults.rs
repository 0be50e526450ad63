//! What breaks outside: models, disks, kernels, databases. Each is a clear error with
//! what to do, and a session that was opened can be resumed.

use crate::bad_input::powerless;
use crate::canary::hits;
use crate::provider::{Nobody, Provider};
use crate::support::{OUTRIGGER, Ran, Turn, World, shell};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const KEY: &str = "sk-test-0123456789abcdef";

/// A run against a provider, with few attempts: waits between more of them are the
/// model crate's to test.
fn ask(world: &World, url: &str, provider: &str, key: Option<&str>) -> Ran {
    let dir = world.dir("repo", &[("plain", b"x")]);
    let config = world.path("own.toml");
    fs::write(&config, "[model]\nattempts_max = 2\napi_key_env = \"TEST_KEY\"\n").unwrap();
    let mut command = world.outrigger(&["--config"]);
    command.arg(&config).args(["run", "--model", "m", "--provider", provider, "--base-url", url]);
    command.envs(key.map(|key| ("TEST_KEY", key))).arg("--dir").arg(&dir).arg("a task");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "something was written");
    ran
}

/// The error, and that the session can go on.
#[track_caller]
fn fails(ran: &Ran, world: &World, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    let session = world.session();
    let resume = format!("outrigger sessions resume {session}");
    for part in parts.iter().copied().chain([resume.as_str()]) {
        assert!(ran.stderr.contains(part), "`{part}` is missing in: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains(KEY) && !ran.stderr.contains("panicked"), "{}", ran.stderr);
    assert_eq!(hits(&world.data(), KEY, &mut 0), Vec::<String>::new(), "the key was written down");
}

#[test]
fn a_model_that_answers_garbage_is_told_after_its_attempts() {
    let text = "200 OK\r\ncontent-type: text/plain";
    let stream = "200 OK\r\ncontent-type: text/event-stream";
    for (head, body, asked) in [
        (text, "I am a teapot", 2),
        ("200 OK\r\ncontent-type: application/json", "{\"half\": ", 2),
        // What is no model is none the next time either.
        ("200 OK\r\ncontent-type: application/json", "{\"model\": \"m\"}", 1),
        ("200 OK\r\ncontent-type: text/html", "<html><h1>Log in to the hotel's network</h1>", 1),
        (stream, "data: {\"broken\n\n", 2),
        (stream, "", 2),
    ] {
        for provider in ["anthropic", "openai", "openai-chat"] {
            let (world, fake) = (World::new(), Provider::new(head, body));
            let ran = ask(&world, &fake.url, provider, Some(KEY));
            fails(&ran, &world, 14, &["127.0.0.1", "check that the base URL speaks"]);
            assert_eq!(ran.stderr.contains("2 attempts"), asked == 2, "{}", ran.stderr);
            assert_eq!(fake.asked(), asked, "{provider}: {head}: {body}");
        }
    }
}

#[test]
fn a_model_that_is_unreachable_is_told_after_its_attempts() {
    let (world, nobody) = (World::new(), Nobody::new());
    let ran = ask(&world, &nobody.url, "openai-chat", Some(KEY));
    let place = format!("no connection to {}: ", nobody.url);
    fails(&ran, &world, 14, &[&place, "refused", "2 attempts", "check the network"]);
    // Already the first failure was told, with where it was and when it is asked again.
    let first = ran.stderr.lines().find(|line| line.contains("asking again in")).unwrap();
    assert!(first.contains(&place), "{first}");
    assert_eq!(world.sessions()[0]["status"], "model failed");
    let stream = "200 OK\r\ncontent-type: text/event-stream";
    let reply = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Here again.\"}, \
        \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
    let fake = nobody.becomes(stream, reply);
    let resumed = world.ran(0, &["sessions", "resume", &world.session()]);
    assert_eq!((resumed.stdout.as_str(), fake.asked()), ("Here again.\n", 1));
}

#[test]
fn a_refused_key_and_a_bad_request_are_not_repeated() {
    let json = "content-type: application/json";
    for (status, code, parts) in [
        ("401 Unauthorized", 3, ["401", "no such key", "check that the key"]),
        ("403 Forbidden", 3, ["403", "no such key", "check that the key"]),
        ("400 Bad Request", 14, ["400", "no such key", "check the model's name"]),
        ("404 Not Found", 14, ["404", "no such key", "check the model's name"]),
    ] {
        let head: &'static str = format!("{status}\r\n{json}").leak();
        let fake = Provider::new(head, "{\"error\": {\"message\": \"no such key\"}}");
        let world = World::new();
        fails(&ask(&world, &fake.url, "openai", Some(KEY)), &world, code, &parts);
        assert_eq!(fake.asked(), 1, "{status}");
    }
}

#[test]
fn a_missing_key_is_told_before_anything_is_made() {
    for key in [None, Some("")] {
        let world = World::new();
        let fake = Provider::new("200 OK", "");
        let ran = ask(&world, &fake.url, "anthropic", key);
        assert_eq!((ran.code, fake.asked()), (Some(3), 0), "{}", ran.stderr);
        assert!(ran.stderr.contains("TEST_KEY") && ran.stderr.contains("hint: Set TEST_KEY"));
        assert!(!world.harness().join("journal.db").exists());
    }
}

#[test]
fn an_unknown_provider_or_model_is_told_with_what_there_is() {
    let world = World::new();
    let dir = world.dir("repo", &[]);
    let dir = dir.to_str().unwrap();
    for (args, parts) in [
        (&["--model", "m", "--provider", "acme"][..], &["acme", "anthropic, openai, openai-chat"]),
        (&["--model", "m"], &["`m`", "--provider"]),
        (&["--model", "claude-x", "--base-url", "no url"], &["base URL", "--base-url"]),
    ] {
        let ran = world.run(&[&["run", "--dir", dir], args, &["a task"]].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        for part in parts {
            assert!(ran.stderr.contains(part), "{args:?}: {part}: {}", ran.stderr);
        }
    }
}

/// Runs a shell script in a mount namespace and a process namespace of its own, which
/// end with it and whatever it left running.
fn apart(world: &World, script: &str, args: &[&str]) -> Ran {
    let mut command = world.command("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-eu", "-c"]);
    command.arg(script).arg(crate::support::OUTRIGGER).arg(world.data()).args(args);
    Ran::of(command.output().expect("`unshare` of util-linux can be run"))
}

/// Nothing that is known is lost: the run waits, says so, and goes on when there is space.
#[test]
fn a_full_disk_is_told_and_with_more_space_the_run_goes_on() {
    let world = World::new();
    let dir = world.dir("repo", &[("plain", b"x")]);
    fs::create_dir(world.data()).unwrap();
    // The sandbox's disk is on the same file system as the journal.
    let script = world.script(&[Turn(&[shell("cat /dev/zero > fill")]), Turn(&[shell("rm fill")])]);
    let steps = r#"
        out="$0"; data="$1"; script="$2"; dir="$3"; said="$4"
        mount -t tmpfs -o size=64m,mode=0700 none "$data"
        head -c 32m /dev/zero > "$data/ballast"
        code=0
        "$out" --data-dir "$data" run --script "$script" --dir "$dir" "a task" 2> "$said" &
        for _ in $(seq 600); do
            if grep -q "no space is left" "$said"; then break; fi
            sleep 0.05 # poll: a process that waits raises no event
        done
        rm "$data/ballast"
        wait $! || code=$?
        echo "code $code"
        "$out" --data-dir "$data" sessions ls --json
    "#;
    let said = world.path("said");
    let paths = [&script, dir.to_str().unwrap(), said.to_str().unwrap()];
    let ran = apart(&world, steps, &paths);
    let said = fs::read_to_string(&said).unwrap();
    assert_eq!(ran.code, Some(0), "{}\n{}\n{said}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("[scripted] That is all.\ncode 0\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains(r#""status":"answered""#), "{}", ran.stdout);
    assert!(said.contains("Nothing is lost while this process waits"), "{said}");
}

/// The run is stopped while it waits: what it began can be gone on with.
#[test]
fn a_full_disk_at_the_begin_is_told_with_what_to_do() {
    let world = World::new();
    let dir = world.dir("repo", &[("plain", b"x")]);
    fs::create_dir(world.data()).unwrap();
    let script = world.script(&[]);
    let steps = r#"
        out="$0"; data="$1"; script="$2"; dir="$3"
        mount -t tmpfs -o size=8m,mode=0700 none "$data"
        "$out" --data-dir "$data" sessions ls
        head -c 16m /dev/zero > "$data/ballast" || true
        code=0
        "$out" --data-dir "$data" run --script "$script" --dir "$dir" "a task" || code=$?
        echo "code $code"
    "#;
    let ran = apart(&world, steps, &[&script, dir.to_str().unwrap()]);
    assert!(ran.stdout.ends_with("code 15\n"), "{}\n{}", ran.stdout, ran.stderr);
    for part in ["o space", "hint: Free some disk space"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

/// Lets a command run where no user namespace can be made.
fn without_namespaces(world: &World, args: &[&str]) -> Ran {
    let inner = powerless(world, args);
    let mut command = Command::new("unshare");
    command.env_clear().args(["--user", "--map-root-user", "sh", "-eu", "-c"]);
    command.arg("echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"").arg("sh");
    command.arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(world.path(""));
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    Ran::of(command.output().expect("`unshare` of util-linux can be run"))
}

/// Runs the binary where no user namespace can be made, as root of all ids, as in a
/// container.
fn without_namespaces_as_root(world: &World, args: &[&str]) -> Ran {
    assert!(rustix::process::geteuid().is_root(), "this needs root, to be root elsewhere");
    // A shell that is mapped while it starts takes itself for a setuid program.
    let mut holder = world.command("unshare");
    let mut holder = holder.args(["--user", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
    for map in ["uid_map", "gid_map"] {
        let path = format!("/proc/{}/{map}", holder.id());
        // It is in its namespace once it can be mapped; before, it is in ours.
        while fs::write(&path, "0 0 4294967295").is_err() {
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
fn without_user_namespaces_the_advice_is_told() {
    let hosts: [fn(&World, &[&str]) -> Ran; 2] = [without_namespaces, without_namespaces_as_root];
    for host in hosts {
        let world = World::new();
        let dir = world.dir("repo", &[("plain", b"x")]);
        let script = world.script(&[]);
        let args = ["run", "--script", &script, "--dir", dir.to_str().unwrap(), "a task"];
        let advice =
            ["no sandbox can be made here", "user.max_user_namespaces", "use the Docker backend"];
        for args in [&args[..], &["demo"], &["doctor"], &["sandbox", "create"]] {
            let ran = host(&world, args);
            assert_eq!(ran.code, Some(13), "{args:?}: {}", ran.stderr);
            for part in advice {
                assert!(ran.stderr.contains(part), "{args:?}: {part}: {}", ran.stderr);
            }
        }
    }
}

#[test]
fn a_database_that_is_damaged_or_newer_is_told_and_not_touched() {
    let world = World::new();
    world.ran(0, &["demo"]);
    let session = world.session();
    // It folds the write-ahead log into the file: a newer header in it would be the one that counts.
    world.ran(0, &["audit", "checkpoint"]);
    let path = world.harness().join("journal.db");
    let whole = fs::read(&path).unwrap();
    let log = world.harness().join("journal.db-wal");
    let logged = fs::read(&log).ok();
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    for (contents, part) in [
        // The header's user version: https://www.sqlite.org/fileformat2.html
        (with(60, &9_999_u32.to_be_bytes()), "format 9999"),
        (with(0, b"not a db"), "damaged"),
        (with(4_096, &[0xff; 8_192]), "damaged"),
        (whole[..200].to_vec(), "damaged"),
        (Vec::new(), "damaged"),
    ] {
        fs::write(&path, &contents).unwrap();
        for args in
            [&["sessions", "ls"][..], &["demo"], &["sessions", "resume", &session], &["doctor"]]
        {
            let ran = world.run(args);
            assert_eq!(ran.code, Some(15), "{part}: {args:?}: {}", ran.stderr);
            for part in [part, world.data().to_str().unwrap(), "Nothing was changed"] {
                assert!(ran.stderr.contains(part), "{args:?}: {part}: {}", ran.stderr);
            }
            assert!(fs::read(&path).unwrap() == contents, "{part}: {args:?} changed the file");
            assert!(fs::read(&log).ok() == logged, "{part}: {args:?} changed the log");
        }
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(world.session(), session);
}
