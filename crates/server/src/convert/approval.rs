//! What waits for a person.

use outrigger_agent::{ApprovalRequest, Seq, SessionId, State, ToolKind, Work};
use outrigger_api::ApprovalInfo;
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

/// A question of a session.
pub(crate) fn approval(
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
    let expires_ms = state.effect(effect).and_then(|it| it.expires_ms(state.approvals()));
    ApprovalInfo {
        id: session.effect(effect),
        session: session.to_string(),
        title: title.to_owned(),
        effect: effect.0,
        tool,
        arguments,
        rules: asked.rules.clone(),
        approvers: asked.approvers.clone(),
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
