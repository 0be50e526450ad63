//! What the rules are told of an effect: everything comes from the journal, and of the
//! model's words only what the tool itself will act on.

use outrigger_agent::{Measure, OutsideTool, Role, Seq, State, ToolKind, Work};
use outrigger_policy::{Action, Facts, Left, Looks, OutsideFacts, ShellFacts, Situation};
use outrigger_shell::CommandFacts;
use outrigger_tools::ParsedCall;

/// Where file tools act that name no path.
const WORKSPACE: &str = "/workspace";

/// What the rules are told of an effect that is not settled in `state`, to be looked at.
pub(crate) fn situation(state: &State, effect: Seq, at_ms: u64) -> Option<Situation> {
    let effect = state.effect(effect)?;
    let all = Looks::all();
    let parsed = parse(state, &effect.work);
    Some(with_facts(state, &effect.work, parsed.as_ref(), at_ms, all, |it| Situation::from(it)))
}

/// The call of a built-in tool that an effect performs. Nothing for another effect, and for a
/// call that no reply of the model contains.
pub(crate) fn parse(state: &State, work: &Work) -> Option<ParsedCall> {
    let Work::CallTool(call) = work else { return None };
    let tool = state.tool(&call.tool);
    let built_in = match tool.map(|tool| tool.kind) {
        Some(ToolKind::Subagent | ToolKind::Outside) => return None,
        Some(ToolKind::Execute | ToolKind::ReadFiles | ToolKind::WriteFiles) | None => {
            tool.map_or(call.tool.as_str(), |tool| tool.built_in())
        }
    };
    let directory = tool.and_then(|tool| tool.directory.as_deref());
    Some(ParsedCall::new(built_in, state.call(call)?.given(), directory))
}

/// Judges an effect as the journal has it; `parsed` is what [`parse`] makes of it. What nobody
/// looks at is not worked out.
pub(crate) fn with_facts<T>(
    state: &State,
    work: &Work,
    parsed: Option<&ParsedCall>,
    at_ms: u64,
    looks: Looks,
    judge: impl FnOnce(&Facts<'_>) -> T,
) -> T {
    let (principal, model) = match state.spec() {
        Some(spec) => (spec.principal.as_str(), spec.model.name.as_str()),
        None => ("", ""),
    };
    let role = state.spec().map(|spec| &spec.role);
    let agent = role.map(Role::acting).unwrap_or_default();
    let above = role.map(Role::above).unwrap_or_default();
    let all = Facts {
        at_ms,
        speakers: state.speakers(),
        agent: &agent,
        above: &above,
        left: left(state, work),
        labels: state.labels(),
        trigger: state.trigger(),
        ..Facts::new(principal, Action::AskModel, model)
    };
    let Work::CallTool(call) = work else {
        return match work {
            Work::Provision { sandbox } => judge(&Facts {
                action: Action::Provision,
                resource: sandbox,
                sandbox: Some(sandbox),
                ..all
            }),
            Work::AskModel | Work::Compact | Work::CallTool(_) => judge(&all),
        };
    };
    let tool = state.tool(&call.tool);
    let sandbox = tool.and_then(|tool| tool.sandbox.as_deref());
    let all = Facts { sandbox, tool: Some(&call.tool), ..all };
    let action = match tool.map(|tool| tool.kind) {
        // A tool that is not on offer never gets here; the strictest is right for it.
        Some(ToolKind::Execute) | None => {
            let resource = sandbox.unwrap_or_default();
            let command = parsed.filter(|_| looks.shell).and_then(ParsedCall::command);
            let shell = command.map(shell);
            let shell = shell.as_ref();
            return judge(&Facts { action: Action::Execute, resource, shell, ..all });
        }
        Some(ToolKind::ReadFiles) => Action::ReadFiles,
        Some(ToolKind::WriteFiles) => Action::WriteFiles,
        Some(ToolKind::Subagent) => {
            let wanted = state.assignment(call);
            let resource = wanted.map(|(wanted, _)| wanted.agent).unwrap_or_default();
            return judge(&Facts { action: Action::StartSubagent, resource: &resource, ..all });
        }
        Some(ToolKind::Outside) => {
            let outside = tool.and_then(|tool| tool.outside.as_ref());
            // One that names no server has no sure spelling, and is refused.
            let resource = outside.map(|it| format!("{}/{}", it.server, it.tool));
            let resource = resource.unwrap_or_default();
            let outside = outside.map(|outside| known(state, outside));
            let action = Action::CallOutsideTool;
            return judge(&Facts { action, resource: &resource, outside, ..all });
        }
    };
    let target = parsed.and_then(ParsedCall::target);
    judge(&Facts { action, resource: target.as_deref().unwrap_or(WORKSPACE), ..all })
}

/// What a parser makes of a command.
fn shell(command: &CommandFacts) -> ShellFacts {
    let CommandFacts { programs, touches, opaque } = command.clone();
    ShellFacts { programs, touches, opaque }
}

/// What is known of an outside tool.
fn known(state: &State, tool: &OutsideTool) -> OutsideFacts {
    let own = outrigger_tools::outside::label(&tool.server);
    let elsewhere = state.labels().iter().any(|label| !own.contains(label));
    OutsideFacts { read_only: tool.read_only, changed: tool.changed.is_some(), elsewhere }
}

pub(crate) fn left(state: &State, work: &Work) -> Left {
    // What else runs may still cost what is reserved for it.
    let left = state.budget().left(state.spent().plus(state.reserved_beside(work)));
    Left {
        tokens: left.of(Measure::Tokens),
        steps: left.of(Measure::Steps),
        // Rounded down: a rule that wants some left is not told of more than there is.
        money_micros: left.of(Measure::Money).map(|nanos| nanos / 1_000),
        egress_bytes: left.of(Measure::Egress),
    }
}
