//! A world of one's own for the real binary: a data directory, a home, and an
//! environment without anything of the user's, all gone at the end.

use crate::tls_host::kill_gates;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// The binary under test.
pub(crate) const OUTRIGGER: &str = env!("CARGO_BIN_EXE_outrigger");

/// From the start of a wait until a test gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that one test has of the machine.
pub(crate) struct World {
    root: tempfile::TempDir,
    /// The address of its database, if that is PostgreSQL's.
    pub(crate) database: Option<String>,
}

/// What a process did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("outrigger-cli-").tempdir().unwrap();
        for name in ["home", "config", "cache", "state"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root, database: None }
    }

    /// One whose store is a database of its own, at the server that the environment names.
    pub(crate) fn on_postgres() -> Self {
        const SERVER: &str = "OUTRIGGER_TEST_POSTGRES";
        let server = std::env::var(SERVER).unwrap_or_else(|_| {
            panic!("{SERVER} is not set: run this with `cargo xtask postgres`")
        });
        let mut world = Self::new();
        let name = world.root.path().file_name().unwrap().to_str().unwrap();
        let made = format!("CREATE DATABASE \"{name}\"");
        let mut psql = world.command("psql");
        Ran::of(psql.args(["--quiet", "--command", &made, &server]).output().unwrap()).expect(0);
        world.database = Some(server.replacen("/postgres?", &format!("/{name}?"), 1));
        world
    }

    /// Gives its database to a role of its own that may enter no other, and lets nobody else in.
    pub(crate) fn with_own_role(mut self) -> Self {
        let name = self.root.path().file_name().unwrap().to_str().unwrap().to_owned();
        self.sql(&format!(
            "CREATE ROLE \"{name}\" LOGIN; ALTER DATABASE \"{name}\" OWNER TO \"{name}\"; \
             REVOKE ALL ON DATABASE \"{name}\" FROM PUBLIC"
        ));
        let address = self.database.take().unwrap();
        let (rest, _) = address.split_once("&user=").unwrap();
        self.database = Some(format!("{rest}&user={name}"));
        self
    }

    /// What `psql` says at another one's database, with this one's role.
    pub(crate) fn psql_at(&self, other: &Self, statement: &str) -> Ran {
        let (theirs, _) = other.database.as_ref().unwrap().split_once("&user=").unwrap();
        let (_, role) = self.database.as_ref().unwrap().split_once("&user=").unwrap();
        let mut psql = self.command("psql");
        psql.args(["--quiet", "--command", statement, &format!("{theirs}&user={role}")]);
        Ran::of(psql.output().unwrap())
    }

    /// Another one over the same database, with the key that signs its log.
    pub(crate) fn beside_on_postgres(&self) -> Self {
        let mut world = Self::new();
        world.database.clone_from(&self.database);
        let audit = world.harness().join("audit");
        fs::create_dir_all(&audit).unwrap();
        for name in ["key", "key.pub"] {
            fs::copy(self.harness().join("audit").join(name), audit.join(name)).unwrap();
        }
        world
    }

    /// Changes its store behind everybody's back.
    pub(crate) fn sql(&self, statement: &str) {
        const CHANGE: &str = "import sqlite3, sys; store = sqlite3.connect(sys.argv[1]); \
            store.execute(sys.argv[2]); store.commit()";
        let mut change = match &self.database {
            Some(database) => {
                let mut psql = self.command("psql");
                psql.args(["--quiet", "--command", statement, database]);
                psql
            }
            None => {
                let mut python = self.command("python3");
                python.args(["-c", CHANGE]).arg(self.harness().join("journal.db")).arg(statement);
                python
            }
        };
        Ran::of(change.output().unwrap()).expect(0);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes the user's own configuration.
    pub(crate) fn configure(&self, text: &str) {
        let dir = self.path("config/outrigger");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), text).unwrap();
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Of it what the harness keeps.
    pub(crate) fn harness(&self) -> PathBuf {
        self.path("data/harness")
    }

    /// A command with nothing of this process's environment but the way to programs.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            // Tools elsewhere are shown to sandboxes, and differ from machine to machine.
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_DATA_HOME", self.path("home/share"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.root.path())
            .stdin(Stdio::null());
        command.envs(self.database.iter().map(|address| ("OUTRIGGER_DATABASE", address)));
        command
    }

    /// The binary, told where this world's data is.
    pub(crate) fn outrigger(&self, args: &[&str]) -> Command {
        let mut command = self.command(OUTRIGGER);
        command.arg("--data-dir").arg(self.data()).args(args);
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.outrigger(args).output().unwrap())
    }

    /// Runs the binary on a terminal of 60 columns to its end. Both of its outputs are there.
    pub(crate) fn on_terminal(&self, args: &[&str]) -> Ran {
        let line = "stty cols 60; exec \"$BINARY\" --data-dir \"$DATA\" $ARGS";
        let mut terminal = self.command("script");
        terminal.args(["--quiet", "--return", "--command", line, "/dev/null"]);
        terminal.env("TERM", "xterm").env("SHELL", "/bin/sh").env("ARGS", args.join(" "));
        terminal.env("BINARY", OUTRIGGER).env("DATA", self.data());
        Ran::of(terminal.output().expect("`script` of util-linux can be run"))
    }

    /// Runs the binary to its end; it must end with this code.
    pub(crate) fn ran(&self, code: i32, args: &[&str]) -> Ran {
        self.run(args).expect(code)
    }

    /// Starts the binary; it is killed at the end of the test if it is still there.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.start_with(args, &[])
    }

    /// Starts the binary with these variables in its environment; it is killed at the end of the
    /// test if it is still there.
    pub(crate) fn start_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Running {
        let mut command = self.outrigger(args);
        command.envs(variables.iter().copied());
        Running(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    /// Writes a script for the scripted model and gives its path.
    pub(crate) fn script(&self, turns: &[Turn<'_>]) -> String {
        let name = format!("script-{}.toml", fs::read_dir(self.root.path()).unwrap().count());
        let path = self.path(&name);
        let text: String = turns.iter().map(Turn::text).collect();
        fs::write(&path, format!("{text}[[turn]]\ntext = \"That is all.\"\n")).unwrap();
        path.display().to_string()
    }

    /// A new directory with these files, which is no git repository.
    pub(crate) fn dir(&self, name: &str, files: &[(&str, &[u8])]) -> PathBuf {
        let dir = self.path(name);
        fs::create_dir_all(&dir).unwrap();
        for (path, contents) in files {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        dir
    }

    /// Runs git, and gives what it printed.
    pub(crate) fn git(&self, dir: &Path, args: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let mut git = self.command("git");
        git.arg("-C").arg(dir).args(identity).args(["-c", "init.defaultBranch=main"]).args(args);
        Ran::of(git.output().unwrap()).expect(0).stdout
    }

    /// The sessions, newest first, as `sessions ls --json` tells them.
    pub(crate) fn sessions(&self) -> Vec<Value> {
        let listed = self.ran(0, &["sessions", "ls", "--json", "-n", "1000"]);
        listed.json()["sessions"].as_array().unwrap().clone()
    }

    /// The name of the only session.
    pub(crate) fn session(&self) -> String {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions[0]["session"].as_str().unwrap().to_owned()
    }

    /// The events of a session.
    pub(crate) fn events(&self, session: &str) -> Vec<Value> {
        self.records(session).into_iter().map(|record| record["event"].clone()).collect()
    }

    /// The events of a session, with their places and times.
    pub(crate) fn records(&self, session: &str) -> Vec<Value> {
        let logs = self.ran(0, &["sessions", "logs", session, "--json"]);
        logs.lines().into_iter().map(|line| line["record"].clone()).collect()
    }

    /// Runs a program in a session's sandbox beside whatever runs there, and gives
    /// what it printed. A sandbox that rests is resumed for it.
    pub(crate) fn beside(&self, session: &str, words: &[&str]) -> String {
        let sandbox = format!("{session}.work");
        let args = [&["sandbox", "exec", &sandbox, "--"], words].concat();
        self.ran(0, &args).stdout
    }

    /// Waits until the only session has an event of a tool call that is under way.
    pub(crate) fn await_command(&self) -> String {
        until("a command is under way", || {
            let session = self.sessions().first()?["session"].as_str()?.to_owned();
            let events = self.events(&session);
            let last = events.last()?;
            (!last["started"]["place"].is_null()).then_some(session)
        })
    }

    /// Everything of the spawner and what it has under it, by process id.
    pub(crate) fn spawner(&self) -> Option<u32> {
        let state = self.data().join("native");
        let wanted = [b"native-spawner", state.as_os_str().as_encoded_bytes()].join(&0);
        let is_named_so = |pid: u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(wanted.len()).any(|window| window == wanted)
        };
        // What it forks is named like it until it executes something else, and may have
        // a lower number: they begin again after the highest.
        let mut found = processes().into_iter().filter(|pid| is_named_so(*pid));
        found.find(|pid| !parent_of(*pid).is_some_and(is_named_so))
    }

    /// Ends the spawner with its guests. It ends when its socket is gone, and looks
    /// when somebody has called.
    pub(crate) fn stop_spawner(&self) {
        let Some(spawner) = self.spawner() else { return };
        let Ok(dir) = fs::File::open(self.data().join("native")) else { return };
        let socket = format!("/proc/self/fd/{}/spawner.sock", dir.as_raw_fd());
        let call = UnixStream::connect(&socket);
        drop(fs::remove_file(&socket));
        drop(call);
        until("the spawner ends", || (!is_alive(spawner)).then_some(()));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        kill_gates(self);
        self.stop_spawner();
    }
}

/// Process ids of this machine.
pub(crate) fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The process that started another, while that one is there.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Whether a process runs: one that has ended and was not waited for does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits for something that another process does.
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, look)
}

/// Waits for something that takes its time.
pub(crate) fn until_within<T>(
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < patience, "in {patience:?} never: {what}");
        std::thread::sleep(Duration::from_millis(10)); // poll: other processes raise no event for this one
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Standard output as one JSON value a line.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A process that is under way.
pub(crate) struct Running(Option<Child>);

impl Running {
    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    pub(crate) fn pid(&mut self) -> u32 {
        self.child().id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child().try_wait().unwrap().is_some()
    }

    pub(crate) fn signal(&mut self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(self.child());
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ran {
        Ran::of(self.0.take().unwrap().wait_with_output().unwrap())
    }

    /// Its standard output, to be read meanwhile.
    pub(crate) fn stdout(&mut self) -> std::process::ChildStdout {
        self.child().stdout.take().unwrap()
    }

    /// Kills it.
    pub(crate) fn kill(mut self) -> ExitStatus {
        self.child().kill().unwrap();
        self.child().wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// What the scripted model calls in one reply: tools with their arguments.
pub(crate) struct Turn<'a>(pub(crate) &'a [(&'a str, Value)]);

impl Turn<'_> {
    /// As a script has it.
    pub(crate) fn text(&self) -> String {
        let call = |(name, arguments): &(&str, Value)| {
            let arguments = toml::Value::String(arguments.to_string());
            format!("{{ name = \"{name}\", arguments = {arguments} }}")
        };
        let calls: Vec<String> = self.0.iter().map(call).collect();
        format!("[[turn]]\ncalls = [{}]\n", calls.join(", "))
    }
}

/// A call of a shell command.
pub(crate) fn shell(command: &str) -> (&'static str, Value) {
    ("execute", serde_json::json!({ "command": command }))
}

/// Runs a command with something on its standard input.
pub(crate) fn fed(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that refuses its input need not read it to the end.
    drop(child.stdin.take().unwrap().write_all(input));
    Ran::of(child.wait_with_output().unwrap())
}

/// Splitmix64, by Sebastiano Vigna (public domain).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
