//! `outrigger sandbox shell`: a person's terminal on a terminal in the sandbox.

use outrigger_sandbox::{Command, End, ExecId, Execute, Output, OutputSink, Sandbox, limits};
use tokio::sync::Notify;

use super::context::{SandboxContext, fresh};
use super::network::ExecNetwork;
use super::raw_terminal::{self, RawTerminal};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags;
use crate::sandbox::failed;
use crate::show;

/// The best shell that there is, as one that a person types to.
const LINE: &str = "command -v bash > /dev/null && exec bash -i; exec sh -i";

pub(super) async fn open(sandboxes: &SandboxContext, name: &str) -> Outcome<u8> {
    raw_terminal::needed()?;
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
    request.terminal = Some(raw_terminal::size());
    if let Ok(term) = std::env::var("TERM") {
        request.env.insert("TERM".to_owned(), term);
    }
    let network = ExecNetwork::open(sandboxes, &*sandbox, &mut request).await?;
    let mut terminal = RawTerminal::enter()?;
    let screen = Screen::default();
    let typed = async {
        // What is typed before there is a shell would be nobody's.
        screen.began.notified().await;
        typing(&mut terminal, &*sandbox, &id).await
    };
    let done = tokio::select! {
        done = ExecNetwork::during(network.as_ref(), sandbox.execute(request, &screen)) => done,
        hung_up = typed => {
            sandbox.kill(&id).await.map_err(|error| failed(&error))?;
            return hung_up;
        }
    };
    drop(terminal);
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
async fn typing(terminal: &mut RawTerminal, sandbox: &dyn Sandbox, id: &ExecId) -> Outcome<u8> {
    while let Some(input) = terminal.next().await? {
        // What comes after it ended is nobody's.
        drop(sandbox.input(id, input).await);
    }
    Ok(0)
}

#[derive(Default)]
struct Screen {
    /// The shell wrote something, so that there is one.
    began: Notify,
}

impl OutputSink for Screen {
    fn output(&self, output: Output<'_>) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        self.began.notify_one();
        raw_terminal::show(bytes);
    }
}
