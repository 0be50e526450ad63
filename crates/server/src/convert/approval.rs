//! What waits for a person.

use outrigger_agent::{ApprovalRequest, Seq, SessionId, State, ToolKind, Work};
use outrigger_api::{ApprovalInfo, OutsideToolInfo};
use outrigger_store::SessionRow;

/// All that waits in a session.
pub(crate) fn approvals<'a>(
    row: &'a SessionRow,
    state: &'a State,
) -> impl Iterator<Item = ApprovalInfo> + 'a {
    state
        .asked()
        .map(|(effect, _, asked)| approval(&row.session, &row.title, state, (effect, asked)))
}

/// The name of a question. A yes to what the rules asked about an effect is none to what a budget
/// asks about the same one.
pub fn approval_id(session: &SessionId, effect: Seq, asked: &ApprovalRequest) -> String {
    session.effect(effect) + if asked.budget.is_some() { OF_BUDGET } else { "" }
}

/// What the name of a question of a budget ends in.
pub const OF_BUDGET: &str = ".budget";

/// A question of a session.
#[must_use]
pub fn approval(
    session: &SessionId,
    title: &str,
    state: &State,
    (effect, asked): (Seq, &ApprovalRequest),
) -> ApprovalInfo {
    let work = state.effect(effect).map(|effect| &effect.work);
    let (tool, arguments) = match work {
        Some(Work::CallTool(call)) => {
            let arguments = state.call(call).map_or("", |call| call.given());
            (call.tool.clone(), arguments.to_owned())
        }
        Some(Work::Provision { sandbox }) => ("make a sandbox".to_owned(), sandbox.clone()),
        Some(Work::AskModel | Work::Compact) | None => ("ask the model".to_owned(), String::new()),
    };
    let digest = match work {
        Some(Work::CallTool(call)) => Some(call.arguments.to_string()),
        _ => None,
    };
    let outside = match work {
        Some(Work::CallTool(call)) => state.tool(&call.tool).and_then(|it| it.outside.as_ref()),
        _ => None,
    };
    let outside = outside.map(|outside| OutsideToolInfo {
        server: outside.server.clone(),
        tool: outside.tool.clone(),
        changed: outside.changed.is_some(),
    });
    let approvals = state.approvals();
    let expires_ms = state.effect(effect).and_then(|it| it.expires_ms(approvals));
    let escalates_ms = state.effect(effect).and_then(|it| it.escalates_ms(approvals));
    ApprovalInfo {
        id: approval_id(session, effect, asked),
        session: session.to_string(),
        title: title.to_owned(),
        effect: effect.0,
        tool,
        arguments,
        arguments_sha256: digest,
        outside,
        rules: asked.rules.clone(),
        approvers: asked.approvers.clone(),
        escalates_to: asked.escalates.clone(),
        escalates_ms,
        budget: asked.budget.as_ref().map(ToString::to_string),
        since_ms: asked.since_ms,
        expires_ms,
        changes_file: changes_file(state, effect),
        preview: None,
    }
}

/// Whether it is a call that changes a file, so that it can be shown as a diff.
pub(crate) fn changes_file(state: &State, effect: Seq) -> bool {
    match state.effect(effect).map(|effect| &effect.work) {
        Some(Work::CallTool(call)) => {
            state.tool(&call.tool).is_some_and(|tool| tool.kind == ToolKind::WriteFiles)
        }
        Some(Work::AskModel | Work::Compact | Work::Provision { .. }) | None => false,
    }
}
