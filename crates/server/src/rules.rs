//! The rules that agents are judged by: listed, asked, and why an effect was judged as it was.

use axum::Json;
use axum::extract::{Path, State as Extract};
use outrigger_agent::{Seq, SessionId};
use outrigger_api::{
    EffectRules, ExplainRules, ProblemCode, RuleInfo, RuleList, RuleSubject, RulesDecision,
    RulesExplanation, RulesSituation, VerdictKind,
};
use outrigger_engine::{JudgedEffect, judged};
use outrigger_policy::{
    AccessAction, Action, Approvers, Rule, RuleSet, Ruling, Says, Situation, Verdict,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::input::Body;
use crate::login::Person;
use crate::problems::ReadProblems;
use crate::{RequestError, Server};

/// All rules in force, those that nobody configured too.
#[utoipa::path(get, path = "/v1/rules",
    operation_id = "list_rules", tag = "rules", responses(
    (status = 200, body = RuleList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    _: Person,
) -> Result<Json<RuleList>, RequestError> {
    let rules = server.parts.engine.rules()?;
    Ok(Json(RuleList {
        rule_set: rules.hash().to_string(),
        data: rules.rules().map(info).collect(),
        warnings: rules.warnings().iter().map(ToString::to_string).collect(),
    }))
}

/// What the rules would say of something, and why.
#[utoipa::path(post, path = "/v1/rules/explain",
    operation_id = "explain_rules", tag = "rules", request_body = ExplainRules,
    responses(
        (status = 200, body = RulesExplanation),
        ReadProblems,
    ))]
pub(crate) async fn explain(
    Extract(server): Extract<Server>,
    person: Person,
    Body(asked): Body<ExplainRules>,
) -> Result<Json<RulesExplanation>, RequestError> {
    let action: Action = word("action", &asked.action)?;
    let new = Situation::new(action, &asked.resource);
    let trigger = asked.trigger.as_deref().map(|it| word("trigger", it)).transpose()?;
    let situation = Situation {
        person: asked.person.unwrap_or(person.name),
        speakers: asked.speakers,
        agent: asked.agent.unwrap_or(new.agent),
        labels: asked.labels,
        trigger: trigger.unwrap_or(new.trigger),
        tool: asked.tool,
        host: asked.host,
        port: asked.port,
        method: asked.method,
        path: asked.path,
        at_ms: server.now_ms(),
        ..Situation::new(action, &asked.resource)
    };
    Ok(Json(explained(&server.parts.engine.rules()?, &situation)))
}

/// A word that the rules know.
fn word<T: DeserializeOwned>(field: &str, said: &str) -> Result<T, RequestError> {
    serde_json::from_value(Value::String(said.to_owned())).map_err(|error| {
        RequestError::new(ProblemCode::InvalidRequest, format!("`{field}`: {error}"))
    })
}

/// Why an effect was permitted, asked about or forbidden, and what the rules of now say of it.
#[utoipa::path(get, path = "/v1/sessions/{id}/effects/{effect}/rules",
    operation_id = "explain_effect", tag = "rules",
    params(
        ("id" = String, Path, description = "The session"),
        ("effect" = u64, Path, description = "The effect"),
    ),
    responses(
        (status = 200, body = EffectRules),
        ReadProblems,
    ))]
pub(crate) async fn effect(
    Extract(server): Extract<Server>,
    person: Person,
    path: Result<Path<(String, u64)>, axum::extract::rejection::PathRejection>,
) -> Result<Json<EffectRules>, RequestError> {
    let Path((name, effect)) = path.map_err(|it| RequestError::not_found(it.body_text()))?;
    let session = seen(&server, &person, &name, Seq(effect)).await?;
    let found = judged(&*server.parts.journal, &session, Seq(effect)).await?;
    let JudgedEffect { situation, decided } = found.ok_or_else(|| {
        RequestError::not_found(format!("session {session} has no effect {effect}"))
    })?;
    let then = decided.map(|(verdict, rule_set)| RulesDecision {
        ruling: ruling(verdict.ruling()),
        rules: verdict.rules().to_vec(),
        rule_set: rule_set.to_string(),
    });
    let now = explained(&server.parts.engine.rules()?, &situation);
    let action = situation.action.as_str().to_owned();
    let Situation { resource, person, speakers, agent, labels, .. } = situation;
    let situation = RulesSituation { action, resource, person, speakers, agent, labels };
    Ok(Json(EffectRules { now, then, situation }))
}

/// A session that a person may see, or in which the rules ask them about this effect.
async fn seen(
    server: &Server,
    person: &Person,
    name: &str,
    effect: Seq,
) -> Result<SessionId, RequestError> {
    let error = match server.session(person, name, AccessAction::View).await {
        Ok(session) => return Ok(session),
        Err(error) => error,
    };
    let Some(session) = SessionId::new(name) else { return Err(error) };
    let engine = &server.parts.engine;
    match engine.state(&session).await {
        Ok(state) if engine.asks(&state, effect, &person.name) => Ok(session),
        Ok(_) | Err(_) => Err(error),
    }
}

fn explained(rules: &RuleSet, situation: &Situation) -> RulesExplanation {
    let explanation = rules.explain(&situation.facts());
    let verdict = &explanation.verdict;
    let approvers = match verdict {
        Verdict::Ask { approvers, .. } => approvers.clone(),
        Verdict::Permit { .. } | Verdict::Forbid { .. } => Vec::new(),
    };
    let subjects = explanation.subjects.iter().map(|subject| RuleSubject {
        who: subject.who.clone(),
        permitted_by: subject.permitting.clone(),
        held_by: subject.denying.clone(),
    });
    RulesExplanation {
        ruling: ruling(verdict.ruling()),
        why: explanation.why(),
        approvers,
        rules: verdict.rules().iter().filter_map(|id| rules.rule(id)).map(info).collect(),
        subjects: subjects.collect(),
        rule_set: rules.hash().to_string(),
    }
}

fn info(rule: &Rule) -> RuleInfo {
    let (approvers, escalates): (Vec<String>, Vec<String>) = match &rule.says {
        Says::Ask { approvers, escalates } => {
            (approvers.words(), escalates.iter().flat_map(Approvers::words).collect())
        }
        Says::Permit | Says::Forbid => Default::default(),
    };
    RuleInfo {
        id: rule.id.clone(),
        says: ruling(rule.says.ruling()),
        approvers,
        escalates,
        reason: rule.reason.clone(),
        file: rule.source.clone(),
        line: rule.line,
        text: rule.text.clone(),
    }
}

fn ruling(ruling: Ruling) -> VerdictKind {
    match ruling {
        Ruling::Permit => VerdictKind::Permit,
        Ruling::Ask => VerdictKind::Ask,
        Ruling::Forbid => VerdictKind::Forbid,
    }
}
