//! A terminal of a test's own: tmux draws, and what it drew is text.

use std::fs::OpenOptions;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::{OUTRIGGER, Ran, World, until};

/// So long a line that is sent after a question came is no answer.
const GUARD: Duration = Duration::from_millis(500);

/// Looks at what has become of it, ten milliseconds apart.
const LOOKS_BETWEEN_KEYS: usize = 60;

/// A terminal with a shell command in it. It goes with this.
pub(crate) struct Tmux<'a> {
    world: &'a World,
    /// The one before it in the same world may still be on its way out.
    number: u32,
}

impl<'a> Tmux<'a> {
    /// Runs a shell command, in which `$O` is the binary with this world's data.
    pub(crate) fn new(world: &'a World, (columns, rows): (u32, u32), line: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let tmux = Self { world, number: NUMBER.fetch_add(1, Ordering::Relaxed) };
        let config = world.path("tmux.conf");
        let text = "set -g status off\nset -sg escape-time 0\nset -g history-limit 50000\n\
                    set -g remain-on-exit on\nset -g default-terminal xterm-256color\n\
                    set -g default-shell /bin/sh\n";
        std::fs::write(&config, text).unwrap();
        let line = line.replace("$O", "\"$BINARY\" --data-dir \"$DATA\"");
        // What tmux knows of a command that ended does not always have its code.
        let line = format!("{line}; echo $? > \"$CODE\"");
        let mut command = tmux.command(&["-f", config.to_str().unwrap(), "new-session", "-d"]);
        command.args(["-x", &columns.to_string(), "-y", &rows.to_string(), &line]);
        command.env("BINARY", OUTRIGGER).env("DATA", world.data()).env("LC_ALL", "C.UTF-8");
        command.env("CODE", tmux.code());
        command.current_dir(world.dir("repo", &[]));
        said(command);
        tmux
    }

    /// Where the exit code of what runs in it is written.
    fn code(&self) -> std::path::PathBuf {
        self.world.path(&format!("exit-code-{}", self.number))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command("tmux");
        let socket = self.world.path(&format!("tmux-{}.sock", self.number));
        command.arg("-u").arg("-S").arg(socket).args(args);
        command
    }

    fn ask(&self, args: &[&str]) -> String {
        said(self.command(args))
    }

    /// Presses keys, by tmux's names.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"], keys].concat());
    }

    /// Types a text.
    pub(crate) fn types(&self, text: &str) {
        self.ask(&["send-keys", "-l", text]);
    }

    /// Answers what is asked. An answer that is sent with the question would be a message.
    pub(crate) fn press(&self, key: &str, then: &str) {
        self.until("a letter and Enter answer");
        std::thread::sleep(GUARD); // poll: not a wait for anything, it is to be looked at
        self.keys(&[key, "Enter"]);
        self.until(then);
    }

    /// Says a text, and waits until something is shown.
    pub(crate) fn say(&self, text: &str, then: &str) {
        self.types(text);
        self.keys(&["Enter"]);
        self.until(then);
    }

    /// Pastes a text, as a terminal does that was asked to mark it.
    pub(crate) fn paste(&self, text: &str) {
        self.ask(&["set-buffer", text]);
        self.ask(&["paste-buffer", "-p"]);
    }

    /// Makes it another size, and waits until what runs in it is told: tmux does that a quarter
    /// of a second after it has moved what it shows.
    pub(crate) fn resize(&self, columns: u16) {
        self.ask(&["resize-window", "-x", &columns.to_string()]);
        let terminal = self.ask(&["display-message", "-p", "#{pane_tty}"]);
        let terminal = OpenOptions::new().read(true).open(terminal.trim()).unwrap();
        until("what runs in it is told its size", || {
            let told = rustix::termios::tcgetwinsize(&terminal).unwrap();
            (told.ws_col == columns).then_some(())
        });
    }

    /// All that there is, the scrollback as well, without what is different each time.
    pub(crate) fn shown(&self) -> String {
        masked(self.world, &self.ask(&["capture-pane", "-p", "-S", "-"]))
    }

    /// All that there is, with what colours it.
    pub(crate) fn coloured(&self) -> String {
        self.ask(&["capture-pane", "-p", "-e", "-S", "-"])
    }

    /// Waits until something is shown.
    pub(crate) fn until(&self, text: &str) {
        let found = || self.shown().contains(text).then_some(());
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| until(text, found)));
        assert!(looked.is_ok(), "never shown: {text}\n{}", self.shown());
    }

    /// Waits until what runs in it has ended; its exit code.
    pub(crate) fn ended(&self) -> i32 {
        self.ended_by(&[])
    }

    /// Presses keys until what runs in it has ended, now and then again: what is typed in the
    /// first moment of a question is no answer. Its exit code.
    pub(crate) fn ended_by(&self, keys: &[&str]) -> i32 {
        let mut looks = 0;
        until("the command ends", || {
            if looks % LOOKS_BETWEEN_KEYS == 0 && !keys.is_empty() {
                self.keys(keys);
            }
            looks += 1;
            std::fs::read_to_string(self.code()).ok()?.trim().parse().ok()
        })
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        drop(self.command(&["kill-server"]).output());
    }
}

fn said(mut command: Command) -> String {
    let output: Output = command.output().expect("tmux; install the package of that name");
    Ran::of(output).expect(0).stdout
}

/// Names, paths and times are different each time.
fn masked(world: &World, text: &str) -> String {
    let mut masked = String::new();
    let root = world.path("").display().to_string();
    for line in text.replace(root.trim_end_matches('/'), "WORLD").lines() {
        let limits = "! memory and CPU of the sandbox are not limited";
        if line.starts_with(limits) || line.starts_with("Pane is dead") {
            continue;
        }
        let line = match line.find("□ sandbox ready") {
            Some(at) => format!("{}□ sandbox ready", &line[..at]),
            None => words(line),
        };
        masked.push_str(line.trim_end());
        masked.push('\n');
    }
    let end = masked.trim_end().len();
    masked.truncate(end);
    masked.push('\n');
    masked
}

/// Masks names of sessions, by their letters, and times.
fn words(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let is_name = |word: &str| {
        word.len() >= 12
            && word[..12].chars().all(|char| "0123456789abcdefghjkmnpqrstvwxyz".contains(char))
            && !word[12..].starts_with(|char: char| char.is_ascii_alphanumeric())
    };
    for at in 0..words.len() {
        if words[at].is_char_boundary(12.min(words[at].len())) && is_name(&words[at]) {
            words[at] = format!("SESSION{}", &words[at][12..]);
        }
        let number = words[at].chars().all(|char| char.is_ascii_digit() || char == '.');
        let unit = words.get(at + 1).is_some_and(|unit| unit == "s");
        if number && unit && at > 0 && words[at - 1] == "·" {
            "N".clone_into(&mut words[at]);
        }
    }
    words.join(" ")
}
