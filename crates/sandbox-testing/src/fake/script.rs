//! The fake's programs: what each does to the tree and what it prints.
//!
//! A script is taken one step at a time by whoever keeps the clock; it must never
//! wait by itself.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::files;
use super::tree::{Node, Symlinks, Tree, WORKSPACE};
use super::words::{self, AppendMode, Condition, SimpleCommand, Target};
use outrigger_sandbox::{Command, End, Error, ExecId, Execute, FileOp, Precondition, WriteMode};

/// Bytes that `head -c` gives in one piece.
const PIECE_BYTES: usize = 64 << 10;

/// Which stream a piece of output belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// What follows a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepResult {
    /// The next step, at once.
    Step,
    /// The next step, after a while.
    Wait(Duration),
    /// Nothing.
    End(End),
}

/// A running script.
#[derive(Debug)]
pub(super) struct Script {
    commands: VecDeque<SimpleCommand>,
    status: i32,
    env: BTreeMap<String, String>,
    cwd: String,
    stdin: Vec<u8>,
}

/// A step that ended the script or failed with a status.
enum Stop {
    Status(i32, String),
    End(End),
}

impl Script {
    /// Reads a request's command.
    ///
    /// # Errors
    /// [`Error::CannotStart`] for an unknown program or a missing working directory.
    pub(super) fn new(request: &Execute, tree: &Tree) -> Result<Self, Error> {
        let cwd = request.cwd.clone().unwrap_or_else(|| WORKSPACE.to_owned());
        let resolved = tree.resolve(&cwd, Symlinks::Followed)?;
        let cannot_start = |program: &str, reason: String| {
            Err(Error::CannotStart { program: program.to_owned(), reason })
        };
        if !matches!(tree.get(&resolved), Ok(Node::Directory)) {
            return cannot_start("sh", format!("working directory {cwd}: no such directory"));
        }
        let mut env = BTreeMap::from([
            ("HOME".to_owned(), WORKSPACE.to_owned()),
            ("PATH".to_owned(), "/usr/bin".to_owned()),
        ]);
        env.extend(request.env.clone());
        let mut status = 0;
        let commands = match &request.command {
            Command::Shell(line) => words::parse(line, &env).unwrap_or_else(|unknown| {
                status = 2;
                let words =
                    vec!["echo".to_owned(), format!("fake shell: unknown syntax: {unknown}")];
                vec![SimpleCommand { when: Condition::Always, words, target: Target::Stderr }]
            }),
            Command::Argv(argv) => {
                let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
                let words: Vec<_> = argv.iter().map(text).collect();
                if !PROGRAMS.contains(&words[0].as_str()) {
                    return cannot_start(&words[0], "no such program".to_owned());
                }
                vec![SimpleCommand { when: Condition::Always, words, target: Target::Stdout }]
            }
        };
        if status != 0 {
            let mut script = Self::with(commands, env, resolved.path, Vec::new());
            let exit = vec!["exit".to_owned(), status.to_string()];
            let exit =
                SimpleCommand { when: Condition::Always, words: exit, target: Target::Stdout };
            script.commands.push_back(exit);
            return Ok(script);
        }
        Ok(Self::with(commands, env, resolved.path, request.stdin.clone()))
    }

    fn with(
        commands: Vec<SimpleCommand>,
        env: BTreeMap<String, String>,
        cwd: String,
        stdin: Vec<u8>,
    ) -> Self {
        Self { commands: commands.into(), status: 0, env, cwd, stdin }
    }

    /// Takes the next step.
    pub(super) fn step(
        &mut self,
        tree: &mut Tree,
        output: &mut dyn FnMut(Stream, &[u8]),
    ) -> StepResult {
        let Some(command) = self.commands.pop_front() else {
            return StepResult::End(End::Exited(self.status));
        };
        let runs = match command.when {
            Condition::Always => true,
            Condition::Succeeded => self.status == 0,
            Condition::Failed => self.status != 0,
        };
        if !runs {
            return StepResult::Step;
        }
        if let Some(wait) = pause(&command.words) {
            self.status = 0;
            return StepResult::Wait(wait);
        }
        let mut redirected = Vec::new();
        let result = match &command.target {
            Target::Stdout => {
                self.run(&command.words, tree, &mut |piece| output(Stream::Stdout, piece))
            }
            Target::Stderr => {
                self.run(&command.words, tree, &mut |piece| output(Stream::Stderr, piece))
            }
            Target::File { path, append } => {
                let ran = self
                    .run(&command.words, tree, &mut |piece| redirected.extend_from_slice(piece));
                ran.and_then(|()| self.write(tree, path, redirected, *append))
            }
        };
        match result {
            Ok(()) => self.status = 0,
            Err(Stop::End(end)) => return StepResult::End(end),
            Err(Stop::Status(status, message)) => {
                if !message.is_empty() {
                    output(Stream::Stderr, format!("{message}\n").as_bytes());
                }
                self.status = status;
            }
        }
        StepResult::Step
    }

    fn path(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.cwd) }
    }

    fn run(
        &self,
        words: &[String],
        tree: &mut Tree,
        print: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Stop> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let failed = |message: String| Err(Stop::Status(1, message));
        match words.as_slice() {
            [] | ["true" | ":", ..] => Ok(()),
            ["false", ..] => failed(String::new()),
            ["fail", ..] => failed("failed".to_owned()),
            ["exit"] => Err(Stop::End(End::Exited(self.status))),
            ["exit", code, ..] => Err(Stop::End(End::Exited(code.parse().unwrap_or(2) & 0xff))),
            ["kill", signal, "$$"] => match signal.trim_start_matches('-').parse() {
                Ok(signal) => Err(Stop::End(End::Signalled(signal))),
                Err(_) => failed(format!("kill: {signal}: no such signal")),
            },
            ["echo", "-n", text @ ..] => {
                print(text.join(" ").as_bytes());
                Ok(())
            }
            ["echo", text @ ..] => {
                print(format!("{}\n", text.join(" ")).as_bytes());
                Ok(())
            }
            ["pwd"] => {
                print(format!("{}\n", self.cwd).as_bytes());
                Ok(())
            }
            ["printenv", name] => match self.env.get(*name) {
                Some(value) => {
                    print(format!("{value}\n").as_bytes());
                    Ok(())
                }
                None => failed(String::new()),
            },
            ["cat"] => {
                print(&self.stdin);
                Ok(())
            }
            ["cat", paths @ ..] => paths.iter().try_for_each(|path| self.cat(tree, path, print)),
            ["head", "-c", count, path] => self.head(tree, count, path, print),
            ["write", path, text @ ..] => {
                self.write(tree, path, text.join(" ").into_bytes(), AppendMode::No)
            }
            ["append", path, text @ ..] => {
                self.write(tree, path, text.join(" ").into_bytes(), AppendMode::Yes)
            }
            [unknown, ..] => Err(Stop::Status(127, format!("sh: {unknown}: not found"))),
        }
    }

    fn cat(&self, tree: &Tree, path: &str, print: &mut dyn FnMut(&[u8])) -> Result<(), Stop> {
        let contents = tree.file(&self.path(path));
        print(contents.map_err(|error| Stop::Status(1, format!("cat: {path}: {}", error.detail)))?);
        Ok(())
    }

    fn head(
        &self,
        tree: &Tree,
        count: &str,
        path: &str,
        print: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Stop> {
        let usage = || Stop::Status(1, format!("head: {count}: no number of bytes"));
        let mut left: usize = count.parse().map_err(|_| usage())?;
        if path != "/dev/zero" {
            let contents = tree.file(&self.path(path));
            let contents = contents
                .map_err(|error| Stop::Status(1, format!("head: {path}: {}", error.detail)))?;
            print(&contents[..left.min(contents.len())]);
            return Ok(());
        }
        let zeros = vec![0; PIECE_BYTES];
        while left > 0 {
            let piece = left.min(PIECE_BYTES);
            print(&zeros[..piece]);
            left -= piece;
        }
        Ok(())
    }

    fn write(
        &self,
        tree: &mut Tree,
        path: &str,
        mut contents: Vec<u8>,
        append: AppendMode,
    ) -> Result<(), Stop> {
        let path = self.path(path);
        if append == AppendMode::Yes
            && let Ok(before) = tree.file(&path)
        {
            contents.splice(0..0, before.iter().copied());
        }
        let op = FileOp::Write {
            id: ExecId::new("script").expect("the name is a valid id"),
            path: path.clone(),
            contents,
            mode: WriteMode::Replace,
            executable: None,
            modified_ns: None,
            precondition: Precondition::None,
        };
        let failed = |detail| Stop::Status(1, format!("sh: {path}: {detail}"));
        files::perform(tree, op).map_err(|error| failed(error.detail)).map(drop)
    }
}

/// Programs that an argument vector can name.
const PROGRAMS: [&str; 13] = [
    "true", "false", "fail", "exit", "kill", "echo", "pwd", "printenv", "cat", "head", "write",
    "append", "sleep",
];

/// How long `sleep SECONDS` or `sleep 250ms` lasts.
fn pause(words: &[String]) -> Option<Duration> {
    let [program, time] = words else { return None };
    if program != "sleep" {
        return None;
    }
    match time.strip_suffix("ms") {
        Some(millis) => millis.parse().ok().map(Duration::from_millis),
        None => time.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    }
}
