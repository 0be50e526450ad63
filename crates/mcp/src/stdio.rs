//! A server that is a program, in a sandbox of the session's, spoken to over its standard
//! streams.
//!
//! Owns that it lives as long as it can: begun at the first call, it keeps what it holds in
//! memory for the next ones, until it ends, its sandbox goes cold, or a call of it was given up.
//! Then the next call begins it anew, and says so. No credential is given to it.

mod program;
mod script;

use async_trait::async_trait;
use outrigger_sandbox::Sandbox;
use outrigger_tools::outside::{Block, Fault, Outside, OutsideCall, ToolAnswer, ToolListing};
use rmcp::transport::async_rw::AsyncRwTransport;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::DuplexStream;
use tokio::sync::Mutex;

use crate::connection::Connection;
use crate::fault::{self, CallError};
use crate::limits;
use program::{Beginning, Complaints, Program};

/// What the model is told where a program is not the one of the call before.
const ANEW: &str = "The program of this server was begun anew for this call: what the one before held in memory is gone.";

/// A server that is a program.
#[derive(Debug)]
pub struct Stdio {
    command: Vec<String>,
    /// The program of each session, at most [`limits::PROGRAMS_MAX`].
    sessions: Mutex<BTreeMap<String, Arc<Mutex<SessionProgram>>>>,
}

/// The program of one session. Who calls it holds it alone.
#[derive(Debug, Default)]
struct SessionProgram {
    /// Taken out while it is called: a call that is dropped in the middle leaves none, because
    /// half of an answer may be left in its pipe.
    live: Option<LiveProgram>,
    /// Whether one was begun before.
    had: bool,
}

/// A program with which the protocol was begun.
#[derive(Debug)]
struct LiveProgram {
    program: Program,
    connection: Connection,
}

/// What a call found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The program of the call before, or the first one.
    Usual,
    /// Another one in its place.
    Anew,
}

impl Stdio {
    /// The server that this program is.
    #[must_use]
    pub fn new(command: Vec<String>) -> Self {
        Self { command, sessions: Mutex::default() }
    }

    /// The program of a session. Where there are many, one that nobody calls gives way.
    async fn of(&self, holder: &str, exec: &str) -> Result<Arc<Mutex<SessionProgram>>, Fault> {
        let mut sessions = self.sessions.lock().await;
        if !sessions.contains_key(holder) && sessions.len() >= limits::PROGRAMS_MAX {
            let idle = sessions.iter().find(|(_, one)| Arc::strong_count(one) == 1);
            let Some(name) = idle.map(|(name, _)| name.clone()) else {
                let most = limits::PROGRAMS_MAX;
                let detail = format!("{most} sessions call its program just now; call it later");
                return Err(Fault::NotAsked { detail });
            };
            let idle = sessions.remove(&name);
            let live = idle.and_then(|idle| Arc::into_inner(idle)?.into_inner().live);
            if let Some(live) = live {
                live.program.end(exec).await;
            }
        }
        Ok(Arc::clone(sessions.entry(holder.to_owned()).or_default()))
    }

    /// Begins the program, for a call or a list.
    async fn begin(
        &self,
        sandbox: &Arc<dyn Sandbox>,
        (holder, exec): (&str, &str),
        complaints: Complaints,
    ) -> Result<(Program, DuplexStream, Beginning), Fault> {
        let dir = format!("/tmp/.mcp-{holder}");
        Program::begin(sandbox, dir, &self.command, complaints, exec).await
    }
}

fn transport(
    near: DuplexStream,
) -> AsyncRwTransport<
    rmcp::RoleClient,
    tokio::io::ReadHalf<DuplexStream>,
    tokio::io::WriteHalf<DuplexStream>,
> {
    let (read, write) = tokio::io::split(near);
    AsyncRwTransport::new(read, write).with_max_line_length(limits::EVENT_BYTES_MAX)
}

/// A fault with what became of the program.
fn explained(fault: Fault, how: Option<String>) -> Fault {
    let Some(how) = how else { return fault };
    match fault {
        Fault::NotAsked { detail } => Fault::NotAsked { detail: format!("{detail}: {how}") },
        Fault::MayHaveHappened { detail } => {
            Fault::MayHaveHappened { detail: format!("{detail}: {how}") }
        }
        changed @ Fault::Changed { .. } => changed,
    }
}

fn nowhere() -> Fault {
    Fault::NotAsked { detail: "its program needs a sandbox, and has none".to_owned() }
}

/// Nobody waits longer than that.
async fn within<T>(
    ms: u64,
    late: impl FnOnce() -> Fault,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    tokio::time::timeout(Duration::from_millis(ms), work).await.unwrap_or_else(|_| Err(late()))
}

impl SessionProgram {
    /// One attempt at a call, and with what program it was made.
    async fn call(
        &mut self,
        server: &Stdio,
        sandbox: &Arc<dyn Sandbox>,
        call: &OutsideCall<'_>,
        left_ms: u64,
    ) -> (Result<ToolAnswer, Fault>, Standing) {
        let sent = &AtomicBool::new(false);
        let late = || fault::late(sent.load(Ordering::SeqCst), call.timeout_ms);
        if let Some(mut live) = self.take_running(sandbox, call.exec).await {
            let LiveProgram { program, connection } = &mut live;
            let talking = within(left_ms, late, talk(connection, call, sent));
            let done = Box::pin(program.exchange(call.exec, left_ms, talking)).await;
            return (self.keep(live, done, call.exec).await, Standing::Usual);
        }
        let (exec, holder) = (call.exec, call.holder);
        let begun = server.begin(sandbox, (holder, exec), Complaints::Dropped).await;
        let (mut program, near, beginning) = match begun {
            Ok(begun) => begun,
            Err(fault) => return (Err(fault), Standing::Usual),
        };
        let had = std::mem::replace(&mut self.had, true);
        let standing = match beginning {
            Beginning::First if !had => Standing::Usual,
            Beginning::First | Beginning::Again => Standing::Anew,
        };
        let mut opened = None;
        let talking = within(left_ms, late, async {
            let connection = opened.insert(Connection::open(transport(near)).await?);
            talk(connection, call, sent).await
        });
        let done = Box::pin(program.exchange(exec, left_ms, talking)).await;
        match opened {
            Some(connection) => {
                (self.keep(LiveProgram { program, connection }, done, exec).await, standing)
            }
            None => (given_up(program, done, exec).await, standing),
        }
    }

    /// The program that was begun before, if it still runs where the session's sandbox is.
    async fn take_running(
        &mut self,
        sandbox: &Arc<dyn Sandbox>,
        exec: &str,
    ) -> Option<LiveProgram> {
        let mut live = self.live.take()?;
        let may = live.program.may_run_in(&**sandbox) && live.connection.is_open();
        (may && live.program.runs(sandbox, exec).await).then_some(live)
    }

    /// Keeps the program for the next call if nothing of this one is left in its pipes.
    async fn keep(
        &mut self,
        live: LiveProgram,
        done: Result<ToolAnswer, Fault>,
        exec: &str,
    ) -> Result<ToolAnswer, Fault> {
        match done {
            Ok(_) | Err(Fault::Changed { .. }) => {
                self.live = Some(live);
                done
            }
            Err(_) => given_up(live.program, done, exec).await,
        }
    }
}

/// Ends a program, and says of what came of it how it ended.
async fn given_up<T>(program: Program, done: Result<T, Fault>, exec: &str) -> Result<T, Fault> {
    let (how, _) = program.ending(exec).await;
    program.end(exec).await;
    done.map_err(|fault| explained(fault, how))
}

async fn talk(
    connection: &Connection,
    call: &OutsideCall<'_>,
    sent: &AtomicBool,
) -> Result<ToolAnswer, Fault> {
    match connection.call(call, sent).await {
        Ok(answered) | Err(CallError::Refused(answered)) => Ok(answered),
        Err(CallError::Fault(fault)) => Err(fault),
        Err(CallError::Forgotten) => {
            Err(Fault::MayHaveHappened { detail: "the program ended".to_owned() })
        }
    }
}

#[async_trait]
impl Outside for Stdio {
    async fn list(&self, sandbox: Option<&Arc<dyn Sandbox>>) -> Result<ToolListing, Fault> {
        let sandbox = sandbox.ok_or_else(nowhere)?;
        let exec = format!("mcp-list-{}", uuid::Uuid::new_v4().simple());
        let (mut program, near, _) = self.begin(sandbox, (&exec, &exec), Complaints::Kept).await?;
        let policy = limits::CONNECT_MS_MAX + limits::LIST_MS_MAX;
        let late = || fault::too_slow("listing its tools", Duration::from_millis(policy));
        let listing =
            within(policy, late, async { Connection::open(transport(near)).await?.tools().await });
        let listed = Box::pin(program.exchange(&exec, policy, listing)).await;
        let (how, complaint) = program.ending(&exec).await;
        program.end(&exec).await;
        match (listed.map_err(|fault| explained(fault, how)), complaint) {
            (Err(Fault::NotAsked { detail }), Some(line)) => {
                Err(Fault::NotAsked { detail: format!("{detail}; it says: {line}") })
            }
            (listed, _) => listed,
        }
    }

    async fn call(&self, call: &OutsideCall<'_>) -> Result<ToolAnswer, Fault> {
        let sandbox = call.sandbox.ok_or_else(nowhere)?;
        let begun = Instant::now();
        let held = self.of(call.holder, call.exec).await?;
        // One after the other: what a program says is read by one.
        let all = Duration::from_millis(call.timeout_ms);
        let Ok(mut held) = tokio::time::timeout(all, held.lock()).await else {
            let detail = "another call of its program was not over in time".to_owned();
            return Err(Fault::NotAsked { detail });
        };
        let waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let left_ms = call.timeout_ms.saturating_sub(waited_ms).max(1);
        let (done, standing) = held.call(self, sandbox, call, left_ms).await;
        let mut answered = done?;
        if standing == Standing::Anew {
            answered.blocks.insert(0, Block::Notice(ANEW.to_owned()));
        }
        Ok(answered)
    }
}
