//! `outrigger sessions share`: who else may see a session on the server, or take part in it.

use clap::Args;
use outrigger_agent::{SessionId, SharedAccess, State};
use outrigger_policy::Principal;
use serde_json::json;

use crate::compose;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::session;
use crate::show::{self, Screen, Tone, inert};

#[derive(Debug, Args)]
pub(crate) struct ShareSession {
    /// The session, the beginning of its name, or `@last`.
    pub(crate) session: String,
    /// With whom: `person:bob`, `group:ops`, or `org:NAME` for everybody. May be given several
    /// times; without, it is shown with whom the session is shared.
    #[arg(long, value_name = "WHO")]
    pub(crate) with: Vec<Principal>,
    /// They may speak in it, too, and answer what it asks: the agent then works with your memory
    /// and your budget, and does only what both of you may.
    #[arg(long, requires = "with")]
    pub(crate) take_part: bool,
    /// They may not any more.
    #[arg(long, requires = "with", conflicts_with = "take_part")]
    pub(crate) revoke: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) async fn share(paths: &Paths, asked: ShareSession) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let session = session::find(&*store.journal, &asked.session).await?.session.root();
    if let Some(agent) = asked.with.iter().find(|with| matches!(with, Principal::Agent(_))) {
        let text = format!("--with {agent}: a session is shared with people and groups");
        return Err(Failure::new(Kind::Usage, text));
    }
    let access = match (asked.revoke, asked.take_part) {
        (true, _) => SharedAccess::None,
        (false, true) => SharedAccess::TakePart,
        (false, false) => SharedAccess::Read,
    };
    let engine = compose::clerk(paths, &config, &store)?;
    for with in &asked.with {
        engine.share(&session, with, access, session::WHO).await?;
    }
    let state = session::fold(&*store.journal, &session).await?;
    print(&session, &state, asked.output)
}

/// Prints with whom a session is shared.
pub(crate) fn print(session: &SessionId, state: &State, output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&json!({ "type": "shared", "session": session, "shares": state.shares() }))?;
        return Ok(0);
    }
    for (with, access) in state.shares() {
        let how = match access {
            SharedAccess::TakePart => "to take part",
            SharedAccess::Read | SharedAccess::None => "to read",
        };
        show::row(&inert(&format!("{with}  {how}")))?;
    }
    if state.shares().is_empty() {
        let text = format!("session {session} is shared with nobody");
        Screen::new(output).note(Tone::Detail, text);
    }
    Ok(0)
}
