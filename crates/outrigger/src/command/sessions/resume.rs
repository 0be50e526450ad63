//! `outrigger sessions say | resume`: a session goes on, in this process or in the one that
//! drives it.

use outrigger_agent::{Author, Limit, Message, SessionId, State, TurnEnd, TurnLimits};
use outrigger_engine::Engine;
use serde_json::json;

use crate::command::drive::{Driving, Interrupts, drive};
use crate::command::finish::{Back, Finish};
use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Limits, Output};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};
use crate::{models, outside, session};

/// What a session goes on with.
#[derive(Debug)]
pub(crate) enum More {
    /// What it began, perhaps with other limits.
    Limits(Limits),
    /// Something that is said.
    Said(String),
}

pub(crate) async fn go_on(
    paths: &Paths,
    name: &str,
    back: Back,
    more: More,
    output: Output,
) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let named = session::find(&*store.journal, name).await?.session;
    let session = session::root(&*store.journal, &named).await?;
    let Some(_lock) = session::lock(&paths.lock(session.as_str()))? else {
        return match more {
            More::Said(text) => steer(paths, &config, &store, &named, text, output).await,
            More::Limits(_) => Err(session::held(&session)),
        };
    };
    let before = session::fold(&*store.journal, &session).await?;
    let spec = before.spec().cloned().ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("session {session} was never opened"))
    })?;
    if before.is_cancelled() {
        return Err(Failure::new(Kind::Conflict, format!("session {session} was cancelled")));
    }
    let opened = models::reopen(&spec.model, &config.model)?;
    let backends = compose::backends(paths, &config, Some(&store.served)).await?;
    let servers = outside::servers(&config)?;
    let engine = compose::engine(paths, &config, &store, &opened, &backends, servers)?;
    match more {
        More::Limits(more) => resume(&engine, &session, &before, &config, more).await?,
        More::Said(text) => engine.say(&named, message(text)).await?,
    }
    let mut screen = Screen::new(output);
    let mut interrupts = Interrupts::listen()?;
    let driving = Driving { paths, engine: &engine, journal: &*store.journal, session: &session };
    drive(driving, before.seq(), &mut screen, &mut interrupts).await?;
    let state = engine.state(&session).await?;
    let finish = Finish {
        paths,
        store: &store,
        engine: &engine,
        session: &session,
        back,
        retention_ms: config.retention_ms(),
        notify: &config.notify,
    };
    interrupts.or_left(&session, finish.execute(&state, &mut screen)).await
}

fn message(text: String) -> Message {
    Message { author: Author::Person(session::WHO.to_owned()), text }
}

/// Says something in a turn that another process drives: it is heard before the model
/// is asked again.
async fn steer(
    paths: &Paths,
    config: &Config,
    store: &Store,
    session: &SessionId,
    text: String,
    output: Output,
) -> Outcome<u8> {
    let engine = compose::clerk(paths, config, store)?;
    engine.say(session, message(text)).await?;
    let told = format!("● said; another process drives session {session}, and its model hears it");
    Screen::new(output).note(Tone::Good, told);
    if output.json.is_some() {
        show::line(&json!({ "type": "said", "session": session.as_str() }))?;
    }
    Ok(0)
}

/// Lets a turn go on that stopped before its answer. One that was merely cut off by a
/// crash goes on as if nothing had been.
async fn resume(
    engine: &Engine,
    session: &SessionId,
    before: &State,
    config: &Config,
    more: Limits,
) -> Outcome {
    let raised = more.max_steps.is_some() || !more.budget().is_none();
    let stopped = !matches!(before.ended(), None | Some(TurnEnd::Answered));
    let Some(spec) = before.spec().filter(|_| stopped || raised) else { return Ok(()) };
    let out_of_time = matches!(before.ended(), Some(TurnEnd::TimeExhausted));
    // Steps that a turn may take are no use where the session may not.
    let room = before.spent().steps.saturating_add(before.reserved().steps);
    let steps = before.budget().steps.zip(more.max_steps);
    let steps = steps.map(|(own, more)| own.max(room.saturating_add(more)));
    let raised_to = Limit { steps, ..more.budget() };
    let budget = (!raised_to.is_none()).then(|| raised_to.or(before.budget()));
    let turn = (more.max_steps.is_some() || out_of_time).then(|| TurnLimits {
        steps_max: more.max_steps.unwrap_or(spec.turn.steps_max),
        wall_ms_max: spec.turn.wall_ms_max.max(config.turn_ms_max),
    });
    Ok(engine.resume(session, session::WHO, budget, turn).await?)
}
