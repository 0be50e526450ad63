//! The configuration: what is read, what wins, and what an error says.

use crate::provider::Nobody;
use crate::support::{Ran, World};
use std::fs;
use std::path::Path;

#[test]
fn an_error_names_the_file_the_line_and_what_is_allowed() {
    for (text, parts) in [
        (
            "\n[limits]\nstepz_max = 3\n",
            &["line 3", "`stepz_max`", "`steps_max`, `tokens_max`, `turn_seconds_max`"][..],
        ),
        (
            "[limitz]\n",
            &[
                "line 1",
                "`limitz`",
                "`model`, `limits`, `sandbox`, `docker`, `gate`, `notify`, `workspace`, `policy`",
            ],
        ),
        (
            "[limits]\nsteps_max = \"3\"\n",
            &["line 2", "steps_max", "string \"3\"", "a whole number from 1 to 1000000"],
        ),
        ("[limits]\nsteps_max = 0\n", &["line 2", "`0`", "a whole number from 1 to 1000000"]),
        ("[limits]\nsteps_max = -1\n", &["line 2", "`-1`", "a whole number from 1 to 1000000"]),
        ("[sandbox]\ncpus_max = 0.001\n", &["line 2", "`0.001`", "a number from 0.01 to 1024"]),
        ("[sandbox]\npids_max = 99999999999\n", &["line 2", "a whole number from 8 to 4194304"]),
        ("[sandbox]\nisolation_min = \"none\"\n", &["line 2", "`none`", "`rootless_single`"]),
        ("[model]\nprovider = \"acme\"\n", &["line 2", "`acme`", "anthropic, openai, openai-chat"]),
        ("[model]\nname = \"a\"\nname = \"b\"\n", &["line 3", "duplicate key"]),
        ("[model\n", &["line 1"]),
    ] {
        let world = World::new();
        world.configure(text);
        let ran = world.run(&["doctor"]);
        assert_eq!(ran.code, Some(2), "{text}: {}", ran.stderr);
        for part in parts.iter().chain(&["outrigger/config.toml", "hint: docs/configuration.md"]) {
            assert!(ran.stderr.contains(part), "{text}: {part}: {}", ran.stderr);
        }
    }
}

/// Nobody pays a model to be told by it that a directory is empty.
#[test]
fn a_directory_that_is_not_there_is_told_before_a_model_is_asked() {
    let (world, nobody) = (World::new(), Nobody::new());
    let dir = world.dir("repo", &[]);
    let args = ["run", "x", "--dir", dir.to_str().unwrap(), "--model", "m", "--provider"];
    let run = |world: &World| {
        world.run(&[&args[..], &["openai-chat", "--base-url", &nobody.url]].concat())
    };
    for (path, why) in
        [("/opt/toolchian", "can't be shown: No such file"), ("opt/toolchain", "no absolute path")]
    {
        world.configure(&format!("[sandbox]\n\nread_only = [\n  \"/usr\",\n  {path:?},\n]\n"));
        let ran = run(&world).expect(2);
        for part in ["outrigger/config.toml, line 5: read_only names ", path, why] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
    assert!(world.sessions().is_empty());
    world.configure("[[sandbox]]\nname = \"a\"\nread_only = [\"/usr\", \"/nowhere\"]\n");
    assert!(run(&world).expect(2).stderr.contains("line 3: read_only names /nowhere"));
}

#[test]
fn an_unknown_template_is_told_before_a_model_is_asked() {
    let (world, nobody) = (World::new(), Nobody::new());
    world.configure("[sandbox]\ntemplate = \"pyhton\"\n");
    let dir = world.dir("repo", &[]);
    let args = ["run", "x", "--dir", dir.to_str().unwrap(), "--model", "m", "--provider"];
    let args = [&args[..], &["openai-chat", "--base-url", &nobody.url]].concat();
    let ran = world.ran(2, &args);
    assert!(ran.stderr.contains("there is no template of that name"), "{}", ran.stderr);
    assert!(ran.stderr.contains("sandbox templates ls"), "{}", ran.stderr);
    assert!(world.sessions().is_empty());
}

#[test]
fn isolation_that_this_machine_lacks_is_told_before_anything_begins() {
    let world = World::new();
    world.configure("[sandbox]\nisolation_min = \"gvisor\"\n");
    let dir = world.dir("repo", &[]);
    let (script, dir) = (world.script(&[]), dir.to_str().unwrap().to_owned());
    let ran = world.ran(13, &["run", "x", "--dir", &dir, "--script", &script]);
    assert!(ran.stderr.contains("accepts no isolation below `gvisor`"), "{}", ran.stderr);
    assert!(world.sessions().is_empty());
    let told = world.ran(0, &["doctor"]).stdout;
    assert!(told.contains("✗ the sandbox `work` accepts no isolation below"), "{told}");
}

#[test]
fn what_expires_first_never_escalates() {
    for (escalate, expire, fits) in [(24, 72, true), (72, 72, false), (73, 72, false)] {
        let world = World::new();
        let hours =
            format!("approval_escalate_hours = {escalate}\napproval_hours_max = {expire}\n");
        world.configure(&format!("[limits]\n{hours}"));
        let ran = world.run(&["inbox", "--remind"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        let found = ran.stderr.contains("must be below limits.approval_hours_max, which is 72");
        assert_eq!(found, !fits, "{}", ran.stderr);
    }
}

#[test]
fn a_named_file_is_read_instead_of_the_users() {
    let world = World::new();
    world.configure("[broken\n");
    let own = world.path("own.toml");
    fs::write(&own, "[limits]\nsteps_max = 7\n").unwrap();
    let dir = world.dir("repo", &[("plain", b"x")]);
    let (script, dir) = (world.script(&[]), dir.to_str().unwrap().to_owned());
    let own = own.to_str().unwrap();
    world.ran(0, &["--config", own, "run", "--script", &script, "--dir", &dir, "a task"]);
    let opened = &world.events(&world.session())[0]["opened"];
    assert_eq!(opened["turn"]["steps_max"], 7);
    for verb in [&["doctor"][..], &["sessions", "ls"]] {
        let ran = world.ran(2, &[&["--config", "nowhere.toml"], verb].concat());
        let is_told = ["nowhere.toml", "No such file"].map(|text| ran.stderr.contains(text));
        assert_eq!(is_told, [true, true], "{}", ran.stderr);
    }
}

/// Asks where nobody listens, and gives what the session was opened with.
fn opened(world: &World, env: &[(&str, &str)], flags: &[&str]) -> serde_json::Value {
    let dir = world.dir("repo", &[("plain", b"x")]);
    let mut command = world.outrigger(&["run", "--dir", dir.to_str().unwrap()]);
    command.args(flags).arg("a task").envs(env.iter().copied());
    Ran::of(command.output().unwrap()).expect(14);
    let session = world.sessions()[0]["session"].as_str().unwrap().to_owned();
    world.events(&session)[0]["opened"].clone()
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let world = World::new();
    let held = [Nobody::new(), Nobody::new(), Nobody::new()];
    let [file, env, flag] = held.each_ref().map(|nobody| nobody.url.clone());
    world.configure(
        &format!(
            "[model]\nprovider = \"openai-chat\"\nname = \"file\"\nbase_url = \"{file}\"\nattempts_max = 1\n\
         [limits]\nsteps_max = 5\ntokens_max = 1000000\n"
        ),
    );
    let environment = [("OUTRIGGER_MODEL", "env"), ("OUTRIGGER_BASE_URL", env.as_str())];
    let flags = ["--model", "flag", "--base-url", &flag, "--max-steps", "6"];
    for (env, flags, name, address, steps) in [
        (&[][..], &[][..], "file", &file, 5),
        (&environment, &[], "env", &env, 5),
        (&environment[..1], &[], "env", &file, 5),
        (&environment, &flags, "flag", &flag, 6),
    ] {
        let spec = opened(&world, env, flags);
        assert_eq!(spec["model"]["name"], name);
        assert_eq!(spec["model"]["address"], **address);
        assert_eq!(
            (&spec["turn"]["steps_max"], &spec["budget"]["tokens"]),
            (&steps.into(), &1_000_000.into())
        );
    }
    // A script wins, wherever a model is named.
    let script = world.script(&[]);
    let dir = world.path("repo");
    let mut command =
        world.outrigger(&["run", "--script", &script, "--dir", dir.to_str().unwrap()]);
    Ran::of(command.arg("a task").envs(environment).output().unwrap()).expect(0);
}

#[test]
fn a_repositorys_own_configuration_is_not_read() {
    let world = World::new();
    let evil: &[u8] = b"[model]\nbase_url = \"http://192.0.2.1\"\n[broken\n";
    let dir = world.dir(
        "repo",
        &[(".outrigger/config.toml", evil), ("outrigger/config.toml", evil), ("config.toml", evil)],
    );
    let script = world.script(&[]);
    let run = |dir: &Path| {
        let mut command = world.outrigger(&["run", "--script", &script, "a task"]);
        Ran::of(command.current_dir(dir).output().unwrap()).expect(0)
    };
    run(&dir);
    run(&dir.join(".outrigger"));
}
