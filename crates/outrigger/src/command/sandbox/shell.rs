//! `outrigger sandbox shell`: a person's terminal on a terminal in the sandbox.
//!
//! Owns the raw mode of the person's terminal, and gives it back whatever happens.

use outrigger_sandbox::{
    Command, End, ExecId, Execute, Input, Output, OutputSink, Sandbox, TerminalSize, limits,
};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{IsTerminal, Write};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::context::{SandboxContext, fresh};
use super::network::ExecNetwork;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags;
use crate::sandbox::failed;
use crate::show;

/// The best shell that there is, as one that a person types to.
const LINE: &str = "command -v bash > /dev/null && exec bash -i; exec sh -i";
/// What is read of the keyboard at once.
const PIECE_BYTES: usize = 4 << 10;

pub(super) async fn open(sandboxes: &SandboxContext, name: &str) -> Outcome<u8> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::new(Kind::Usage, "a shell needs a terminal, and this is none")
            .hint("`outrigger sandbox exec` runs a command without one."));
    }
    if !sandboxes.backend.capabilities().terminal {
        let backend = &sandboxes.backend.capabilities().backend;
        return Err(Failure::new(Kind::Usage, format!("{backend} sandboxes have no terminals")));
    }
    let sandbox = sandboxes.existing(name).await?;
    let id = ExecId::new(fresh("shell")).expect("a word, a dash and digits are plain");
    let mut request = Execute::new(id.clone(), Command::Shell(LINE.to_owned()));
    request.deadline_ms = limits::DEADLINE_MS_MAX;
    // It is shown as it comes, and kept for nobody.
    request.stdout_bytes_max = limits::OUTPUT_BYTES_MAX;
    request.terminal = Some(size());
    if let Ok(term) = std::env::var("TERM") {
        request.env.insert("TERM".to_owned(), term);
    }
    let network = ExecNetwork::open(sandboxes, &*sandbox, &mut request).await?;
    let raw = Raw::enter()?;
    let screen = Screen::default();
    let typed = async {
        // What is typed before there is a shell would be nobody's.
        screen.began.notified().await;
        typing(&*sandbox, &id).await
    };
    let done = tokio::select! {
        done = ExecNetwork::during(network.as_ref(), sandbox.execute(request, &screen)) => done,
        hung_up = typed => {
            let killed = sandbox.kill(&id).await;
            drop(raw);
            killed.map_err(|error| failed(&error))?;
            return hung_up;
        }
    };
    drop(raw);
    if let Some(network) = network {
        let output = flags::Output { json: None, quiet: false };
        network.explain(&show::Screen::new(output)).await;
    }
    match done.map_err(|error| failed(&error))?.end {
        End::Exited(code) => Ok(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        End::Deadline => Err(Failure::new(Kind::BudgetExhausted, "the shell was open for a day")),
        _ => Err(Failure::new(Kind::SandboxUnavailable, "the shell was killed")),
    }
}

/// Gives the shell what is typed and how large the window is, until there is no
/// more of either.
async fn typing(sandbox: &dyn Sandbox, id: &ExecId) -> Outcome<u8> {
    let lost = |error: std::io::Error| Failure::from_error(Kind::Usage, &error);
    let mut keyboard = tokio::io::stdin();
    let mut resized = signal(SignalKind::window_change()).map_err(lost)?;
    let mut hung_up = signal(SignalKind::hangup()).map_err(lost)?;
    let mut ended = signal(SignalKind::terminate()).map_err(lost)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let input = tokio::select! {
            read = keyboard.read(&mut piece) => match read.map_err(lost)? {
                0 => return Ok(0),
                length => Input::Bytes(piece[..length].to_vec()),
            },
            _ = resized.recv() => Input::Size(size()),
            _ = hung_up.recv() => return Ok(0),
            _ = ended.recv() => return Err(Failure::new(Kind::Interrupted, "the shell was ended")),
        };
        // What comes after it ended is nobody's.
        drop(sandbox.input(id, input).await);
    }
}

fn size() -> TerminalSize {
    let found = tcgetwinsize(std::io::stdout()).ok();
    let found = found.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    found.map_or(TerminalSize { rows: 24, columns: 80 }, |size| TerminalSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// The person's terminal, passing every key on. Dropping it gives it back as it was.
struct Raw(Termios);

impl Raw {
    fn enter() -> Outcome<Self> {
        let failed = |error: rustix::io::Errno| {
            Failure::new(Kind::Usage, format!("the terminal can't be used: {error}"))
        };
        let before = tcgetattr(std::io::stdin()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// The person's terminal takes what the shell writes as it is: that is what a shell
/// is for, and the one place where a sandbox moves a cursor.
#[derive(Default)]
struct Screen {
    /// The shell wrote something, so that there is one.
    began: Notify,
}

impl OutputSink for Screen {
    fn output(&self, output: Output<'_>) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        self.began.notify_one();
        let mut stdout = std::io::stdout();
        drop(stdout.write_all(bytes).and_then(|()| stdout.flush()));
    }
}
