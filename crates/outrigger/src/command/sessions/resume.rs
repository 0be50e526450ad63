//! `outrigger sessions say | resume`: a session goes on, in this process or in the one that
//! drives it.

use outrigger_agent::{
    Limit, Message, ModelFault, ModelSpec, SessionId, State, TurnEnd, TurnLimits,
};
use outrigger_engine::ResumeChange;
use outrigger_store::LeasePurpose;
use serde_json::json;

use crate::command::detach::{self, Driver};
use crate::command::drive::{Driving, Interrupts, drive};
use crate::command::finish::{Back, Finish};
use crate::command::task;
use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Apply, Limits, NewModel, Output};
use crate::models::OpenedModel;
use crate::network::{self, Words};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};
use crate::{models, outside, project_servers, session};

/// What a session goes on with.
#[derive(Debug)]
pub(crate) enum More {
    /// What it began, perhaps with other limits, or with another model.
    Otherwise(Limits, Box<NewModel>),
    /// What is said, the last of it by a person.
    Said(Vec<Message>),
}

/// How a session goes on.
#[derive(Debug)]
pub(crate) struct GoOn {
    pub(crate) apply: Apply,
    pub(crate) more: More,
    /// What its first sandbox may reach as well; nothing at all for `none`.
    pub(crate) network: Option<Words>,
    pub(crate) driver: Driver,
}

pub(crate) async fn go_on(paths: &Paths, name: &str, how: GoOn, output: Output) -> Outcome<u8> {
    let GoOn { apply, more, network, driver } = how;
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let named = session::find(&*store.journal, name).await?.session;
    let session = session::root(&*store.journal, &named).await?;
    let Some(lease) = store.database.lease(&session, LeasePurpose::Drive).await? else {
        return match more {
            More::Said(all) => steer(paths, &config, &store, &named, all, output).await,
            More::Otherwise(..) => Err(session::held(&session)),
        };
    };
    let store = store.under(&lease);
    let before = session::fold(&*store.journal, &session).await?;
    let spec = before.spec().cloned().ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("session {session} was never opened"))
    })?;
    if before.is_cancelled() {
        return Err(Failure::new(Kind::Conflict, format!("session {session} was cancelled")));
    }
    config.read_only_is_there()?;
    let back = Back::settle(paths, &session, apply)?;
    let mut screen = Screen::new(output);
    let (opened, model) =
        Box::pin(model_of(paths, &config, &store, &before, &spec.model, &more, &screen)).await?;
    let config = project_servers::of_session(paths, &config, &spec, &screen)?;
    let backends = compose::backends(paths, &config, Some(&store.served)).await?;
    let servers = outside::servers(paths, &config).await?;
    let engine = compose::engine(paths, &config, &store, &opened, &backends, servers)?;
    let network = network.map(|words| network::of_session(&before, &words)).transpose()?;
    network::secrets_are_there(&*store.database, network.as_deref().unwrap_or_default()).await?;
    match more {
        More::Otherwise(more, _) => {
            let change =
                change(&before, &config, (more.max_steps, more.budget()), (model, network));
            if let Some(change) = change {
                engine.resume(&session, session::WHO, change).await?;
            }
        }
        More::Said(all) => {
            if network.is_some() {
                let change = ResumeChange { network, ..ResumeChange::default() };
                engine.resume(&session, session::WHO, change).await?;
            }
            for message in all {
                engine.say(&named, message).await?;
            }
        }
    }
    if driver == Driver::Detached {
        drop((engine, lease));
        return detach::leave(paths, &store, &session, output).await;
    }
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
    interrupts.or_left(&session, Box::pin(finish.execute(&state, &mut screen))).await
}

/// The model that a session goes on with, and what is journalled of it if it is another one.
async fn model_of(
    paths: &Paths,
    config: &Config,
    store: &Store,
    before: &State,
    spec: &ModelSpec,
    more: &More,
    screen: &Screen,
) -> Outcome<(OpenedModel, Option<ModelSpec>)> {
    if let More::Otherwise(_, asked) = more
        && !asked.is_none()
    {
        let choice = models::choose(paths, &models::instead(spec, &config.model, asked)).await?;
        choice.reason().into_iter().for_each(|text| screen.note(Tone::Detail, text));
        let mut opened = models::open(paths, &choice).await?;
        task::price(config, store, &mut opened, session::WHO).await?;
        let model = Some(opened.spec.clone());
        return Ok((opened, model));
    }
    if let Some(TurnEnd::ModelFailed { fault: ModelFault::Invalid, .. }) = before.ended() {
        let name = &spec.name;
        let text = format!(
            "! {name} refused this session before, and is asked again; --model names another model"
        );
        screen.note(Tone::Warning, text);
    }
    Ok((models::reopen(paths, spec, &config.model).await?, None))
}

/// Says something in a turn that another process drives: it is heard before the model
/// is asked again.
async fn steer(
    paths: &Paths,
    config: &Config,
    store: &Store,
    session: &SessionId,
    all: Vec<Message>,
    output: Output,
) -> Outcome<u8> {
    let engine = compose::clerk(paths, config, store)?;
    for message in all {
        engine.say(session, message).await?;
    }
    // A server that has its sandboxes may have let it go.
    store.database.wake(&session.root()).await?;
    let told = format!("● said; session {session} runs in another process, and its model hears it");
    Screen::new(output).note(Tone::Good, told);
    if output.json.is_some() {
        show::line(&json!({ "type": "said", "session": session.as_str() }))?;
    }
    Ok(0)
}

/// How a turn goes on that stopped before its answer. Nothing for one that was merely cut off
/// by a crash: it goes on as if nothing had been.
pub(crate) fn change(
    before: &State,
    config: &Config,
    (steps_max, raised_to): (Option<u64>, Limit),
    (model, network): (Option<ModelSpec>, Option<Vec<String>>),
) -> Option<ResumeChange> {
    let raised = steps_max.is_some() || !raised_to.is_none();
    let stopped = !matches!(before.ended(), None | Some(TurnEnd::Answered));
    let other = model.is_some() || network.is_some();
    let spec = before.spec().filter(|_| stopped || raised || other)?;
    let out_of_time = matches!(before.ended(), Some(TurnEnd::TimeExhausted));
    // Steps that a turn may take are no use where the session may not.
    let room = before.spent().steps.saturating_add(before.reserved().steps);
    let steps = before.budget().steps.zip(steps_max);
    let steps = steps.map(|(own, more)| own.max(room.saturating_add(more)));
    let raised_to = Limit { steps, ..raised_to };
    let budget = (!raised_to.is_none()).then(|| raised_to.or(before.budget()));
    let turn = (steps_max.is_some() || out_of_time).then(|| TurnLimits {
        steps_max: steps_max.unwrap_or(spec.turn.steps_max),
        wall_ms_max: spec.turn.wall_ms_max.max(config.turn_ms_max),
    });
    Some(ResumeChange { budget, turn, model, network })
}
