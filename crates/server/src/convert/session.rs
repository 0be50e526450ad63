//! A session in a list.

use outrigger_agent::{Limit, State, TurnEnd, WhenBusy, Workspace};
use outrigger_api::{BusyAction, SessionGroup, SessionInfo, SessionRights, UsageInfo};
use outrigger_policy::Trigger;
use outrigger_store::SessionRow;

use super::share::shares;

/// How a session stands whose turn was cut off.
const CUT_OFF: &str = "interrupted";

/// A session. `driven`: whether anybody drives it.
pub(crate) fn session(row: &SessionRow, state: &State, driven: bool) -> SessionInfo {
    let spec = state.spec();
    let approvals = state.asked().count();
    let group = group(state, driven, approvals > 0);
    let cut_off = state.in_turn() && approvals == 0 && !driven;
    let status = if cut_off { CUT_OFF } else { state.status() };
    let role = spec.map(|spec| &spec.role);
    let by_agent = || role.and_then(|role| role.parent.as_ref()).map(|_| Trigger::Agent);
    let opened_by = role.and_then(|role| role.trigger).or_else(by_agent);
    let directory = spec.and_then(|spec| spec.workspace.as_ref()).map(Workspace::begun_in);
    SessionInfo {
        id: row.session.to_string(),
        person: spec.map(|spec| spec.principal.clone()).unwrap_or_default(),
        shares: shares(state),
        // Whoever is told of it has their own.
        rights: SessionRights::default(),
        title: row.title.clone(),
        status: status.to_owned(),
        group,
        head: row.head.0,
        created_at_ms: row.created_at_ms,
        last_at_ms: row.last_at_ms,
        parent: spec.and_then(|spec| spec.parent()).map(|parent| parent.session.to_string()),
        agent: role.and_then(|role| role.agent.clone()),
        trigger: opened_by.map(|trigger| trigger.as_str().to_owned()),
        model: spec.map(|spec| spec.model.name.clone()).unwrap_or_default(),
        scripted: spec.is_some_and(|spec| spec.model.scripted),
        directory,
        network: spec.map(|spec| spec.network().to_vec()).unwrap_or_default(),
        labels: state.labels().iter().cloned().collect(),
        usage: usage(state),
        approvals: u32::try_from(approvals).unwrap_or(u32::MAX),
        cancelled: state.is_cancelled(),
        when_busy: spec.map_or(BusyAction::Steer, |spec| when_busy_of(spec.when_busy)),
    }
}

/// As the journal has it.
#[must_use]
pub fn when_busy(asked: BusyAction) -> WhenBusy {
    match asked {
        BusyAction::Steer => WhenBusy::Steer,
        BusyAction::Queue => WhenBusy::Queue,
        BusyAction::Interrupt => WhenBusy::Interrupt,
        BusyAction::Refuse => WhenBusy::Refuse,
    }
}

fn when_busy_of(asked: WhenBusy) -> BusyAction {
    match asked {
        WhenBusy::Steer => BusyAction::Steer,
        WhenBusy::Queue => BusyAction::Queue,
        WhenBusy::Interrupt => BusyAction::Interrupt,
        WhenBusy::Refuse => BusyAction::Refuse,
    }
}

fn group(state: &State, driven: bool, asks: bool) -> SessionGroup {
    if state.in_turn() {
        return if driven && !asks { SessionGroup::Running } else { SessionGroup::NeedsYou };
    }
    match state.ended() {
        None | Some(TurnEnd::Answered | TurnEnd::Cancelled) => SessionGroup::Done,
        Some(_) if state.is_cancelled() => SessionGroup::Done,
        Some(_) => SessionGroup::NeedsYou,
    }
}

fn usage(state: &State) -> UsageInfo {
    let (spent, Limit { tokens, money_nanos, .. }) = (state.spent(), state.budget());
    let is_priced = state.spec().is_some_and(|spec| spec.model.price.is_some());
    UsageInfo {
        steps: spent.steps,
        tokens: spent.tokens,
        money_nanos: is_priced.then_some(spent.money_nanos),
        wall_ms: spent.wall_ms,
        tokens_max: tokens,
        money_nanos_max: money_nanos,
    }
}
