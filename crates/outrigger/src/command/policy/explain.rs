//! `outrigger policy explain`.

use clap::{Args, ValueEnum, value_parser};
use outrigger_agent::Seq;
use outrigger_engine::{Clock, JudgedEffect, SystemClock};
use outrigger_policy::{Approvers, Explanation, Left, Rule, RuleSet, Says, Situation, Verdict};
use serde_json::{Value, json};

use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::rules::ConfiguredRules;
use crate::show::{self, inert};
use crate::{compose, session};

/// A situation, described or taken out of a session.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// What is to be done.
    #[arg(long, value_enum, required_unless_present = "session", conflicts_with = "session")]
    pub(crate) action: Option<Action>,
    /// To what: a model, a sandbox, a path, a host, a secret, a memory, a tool as SERVER/TOOL, an agent.
    #[arg(long, default_value = "", hide_default_value = true, conflicts_with = "session")]
    pub(crate) resource: String,
    /// The person of the turn.
    #[arg(long, default_value = crate::session::WHO, help_heading = "Who")]
    pub(crate) person: String,
    /// The agent that acts.
    #[arg(long, default_value = "agent:default", help_heading = "Who")]
    pub(crate) agent: String,
    /// An agent that started it; once for each.
    #[arg(long, value_name = "AGENT", help_heading = "Who")]
    pub(crate) above: Vec<String>,
    /// The organisation, instead of the one of the rules.
    #[arg(
        long,
        value_name = "ORG",
        default_value = "",
        hide_default_value = true,
        help_heading = "Who"
    )]
    pub(crate) organisation: String,
    /// A label of the session, for example `untrusted`; once for each.
    #[arg(long, value_name = "LABEL", help_heading = "How")]
    pub(crate) label: Vec<String>,
    /// What set the turn off.
    #[arg(long, value_enum, default_value = "person", help_heading = "How")]
    pub(crate) trigger: Trigger,
    /// The sandbox in which it is done.
    #[arg(long, value_name = "NAME", help_heading = "How")]
    pub(crate) sandbox: Option<String>,
    /// The tool by which it is done.
    #[arg(long, value_name = "NAME", help_heading = "How")]
    pub(crate) tool: Option<String>,
    /// The host that a secret goes to.
    #[arg(long, help_heading = "How")]
    pub(crate) host: Option<String>,
    /// The port of a request.
    #[arg(long, help_heading = "How")]
    pub(crate) port: Option<u16>,
    /// The method of a request.
    #[arg(long, help_heading = "How")]
    pub(crate) method: Option<String>,
    /// The path of a request.
    #[arg(long, help_heading = "How")]
    pub(crate) path: Option<String>,
    /// When, in milliseconds since 1970, instead of now.
    #[arg(long, value_name = "MS", help_heading = "How")]
    pub(crate) at_ms: Option<u64>,
    /// The situation of a session, at the effect that `--effect` names.
    #[arg(long, value_name = "SESSION", requires = "effect", help_heading = "From a session")]
    pub(crate) session: Option<String>,
    /// The effect, as `outrigger sessions logs` numbers it.
    #[arg(
        long,
        value_name = "SEQ",
        requires = "session",
        value_parser = value_parser!(u64).range(1..),
        help_heading = "From a session"
    )]
    pub(crate) effect: Option<u64>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What can be done.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Action {
    AskModel,
    Provision,
    Execute,
    ReadFiles,
    WriteFiles,
    Egress,
    UseSecret,
    WriteSharedMemory,
    CallOutsideTool,
    StartSubagent,
    Approve,
}

impl From<Action> for outrigger_policy::Action {
    fn from(action: Action) -> Self {
        match action {
            Action::AskModel => Self::AskModel,
            Action::Provision => Self::Provision,
            Action::Execute => Self::Execute,
            Action::ReadFiles => Self::ReadFiles,
            Action::WriteFiles => Self::WriteFiles,
            Action::Egress => Self::Egress,
            Action::UseSecret => Self::UseSecret,
            Action::WriteSharedMemory => Self::WriteSharedMemory,
            Action::CallOutsideTool => Self::CallOutsideTool,
            Action::StartSubagent => Self::StartSubagent,
            Action::Approve => Self::Approve,
        }
    }
}

/// What sets a turn off.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Trigger {
    Person,
    Schedule,
    Webhook,
    Agent,
}

impl From<Trigger> for outrigger_policy::Trigger {
    fn from(trigger: Trigger) -> Self {
        match trigger {
            Trigger::Person => Self::Person,
            Trigger::Schedule => Self::Schedule,
            Trigger::Webhook => Self::Webhook,
            Trigger::Agent => Self::Agent,
        }
    }
}

pub(crate) async fn explain(paths: &Paths, asked: &Explain) -> Outcome<u8> {
    let set = ConfiguredRules::read(paths)?.in_force()?;
    let found = match (&asked.session, asked.effect, asked.action) {
        (Some(session), Some(effect), _) => recorded(paths, session, Seq(effect)).await?,
        (_, _, Some(action)) => {
            JudgedEffect { situation: described(asked, action.into()), decided: None }
        }
        _ => return Err(Failure::new(Kind::Usage, "neither an action nor a session is named")),
    };
    let explanation = set.explain(&found.situation.facts());
    if asked.output.json.is_some() {
        show::line(&whole(&set, &found, &explanation))?;
        return Ok(0);
    }
    for line in told(&set, &found, &explanation) {
        show::out(&inert(&line))?;
    }
    Ok(0)
}

fn described(asked: &Explain, action: outrigger_policy::Action) -> Situation {
    Situation {
        person: asked.person.clone(),
        agent: asked.agent.clone(),
        above: asked.above.clone(),
        organisation: asked.organisation.clone(),
        sandbox: asked.sandbox.clone(),
        tool: asked.tool.clone(),
        host: asked.host.clone(),
        port: asked.port,
        method: asked.method.clone(),
        path: asked.path.clone(),
        labels: asked.label.iter().cloned().collect(),
        trigger: asked.trigger.into(),
        at_ms: asked.at_ms.unwrap_or_else(|| SystemClock.now_ms()),
        left: Left::default(),
        ..Situation::new(action, &asked.resource)
    }
}

/// An effect of a session as it was when the rules were last asked of it.
async fn recorded(paths: &Paths, name: &str, effect: Seq) -> Outcome<JudgedEffect> {
    let store = compose::store(paths).await?;
    let session = session::find(&*store.journal, name).await?.session;
    let found = outrigger_engine::judged(&*store.journal, &session, effect).await?;
    found.ok_or_else(|| {
        let text = format!("session {session} has no step {}", effect.0);
        Failure::new(Kind::NotFound, text)
            .hint(format!("`outrigger sessions logs {session} --json` shows its events."))
    })
}

fn told(set: &RuleSet, found: &JudgedEffect, explanation: &Explanation) -> Vec<String> {
    let JudgedEffect { situation, decided } = found;
    let verdict = &explanation.verdict;
    let (action, resource) = (situation.action.as_str(), &situation.resource);
    let mut lines = vec![format!("{}: {action} `{resource}`", verdict.ruling().as_str())];
    lines.push(format!("because {}", explanation.why()));
    if let Verdict::Ask { approvers, escalates, .. } = verdict {
        let who = if approvers.is_empty() { "anyone".to_owned() } else { approvers.join(", ") };
        lines.push(format!("may approve: {who}"));
        if !escalates.is_empty() {
            lines.push(format!("once it escalates, too: {}", escalates.join(", ")));
        }
    }
    for subject in &explanation.subjects {
        let rules = |rules: &[String]| match rules {
            [] => "no rule".to_owned(),
            rules => rules.join(", "),
        };
        let (permitting, denying) = (rules(&subject.permitting), rules(&subject.denying));
        lines.push(format!("  {}: permitted by {permitting}; held by {denying}", subject.who));
    }
    for rule in verdict.rules().iter().filter_map(|id| set.rule(id)) {
        lines.push(String::new());
        lines.push(format!("{}:{}", rule.source, rule.line));
        lines.extend(rule.text.lines().map(|line| format!("    {line}")));
    }
    lines.push(String::new());
    lines.push(format!("rule set {}", set.hash()));
    if let Some((before, hash)) = decided {
        let (outcome, rules) = (before.ruling().as_str(), before.rules().join(", "));
        let by = if rules.is_empty() { String::new() } else { format!(" by {rules}") };
        lines.push(format!("decided then: {outcome}{by}, under rule set {hash}"));
    }
    lines
}

fn whole(set: &RuleSet, found: &JudgedEffect, explanation: &Explanation) -> Value {
    let verdict = &explanation.verdict;
    let rules: Vec<_> = verdict.rules().iter().filter_map(|id| set.rule(id)).map(object).collect();
    let subjects: Vec<_> = explanation
        .subjects
        .iter()
        .map(|it| json!({ "who": it.who, "permitted_by": it.permitting, "held_by": it.denying }))
        .collect();
    let then = found
        .decided
        .as_ref()
        .map(|(verdict, hash)| json!({ "verdict": verdict, "rule_set": hash }));
    json!({
        "type": "policy_explanation",
        "outcome": verdict.ruling(),
        "verdict": verdict,
        "why": explanation.why(),
        "rules": rules,
        "subjects": subjects,
        "situation": found.situation,
        "rule_set": set.hash().to_string(),
        "then": then,
    })
}

/// A rule for programs.
pub(crate) fn object(rule: &Rule) -> Value {
    let (approvers, escalates): (Vec<String>, _) = match &rule.says {
        Says::Ask { approvers, escalates } => {
            (approvers.names().collect(), escalates.iter().flat_map(Approvers::words).collect())
        }
        Says::Permit | Says::Forbid => (Vec::new(), Vec::new()),
    };
    json!({
        "id": rule.id, "says": rule.says.ruling().as_str(), "approvers": approvers, "escalates": escalates,
        "reason": rule.reason, "file": rule.source, "line": rule.line, "text": rule.text,
    })
}
