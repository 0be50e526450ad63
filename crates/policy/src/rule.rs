//! One rule: its name, where it stands, what it says and to whom it applies.

use cedar_policy::{
    ActionConstraint, Effect, EntityUid, Policy, PolicyId, PolicySet, PrincipalConstraint,
};
use miette::Diagnostic;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

use crate::approval::Approvers;
use crate::problem::Problem;
use crate::vocabulary::VOCABULARY;
use crate::{Action, Ruling, limits};

/// A text with rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// How problems call it: the name of its file.
    pub name: String,
    /// The rules, in Cedar.
    pub text: String,
    /// Of whom it speaks.
    pub part: RulePart,
}

/// Of whom the rules of a source speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RulePart {
    /// Of people, agents and, where there is no ceiling, the organisation.
    Rules,
    /// Of the organisation alone: what they do not permit, nobody can be permitted.
    Ceiling,
}

/// What a rule says when it applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    /// It may be done, if no other rule says otherwise.
    Permit,
    /// It may not.
    Forbid,
    /// Not before one of these approves.
    Ask {
        /// These.
        approvers: Approvers,
        /// Those who may too once the first did not answer for a time.
        escalates: Option<Approvers>,
    },
}

impl Says {
    /// What it makes of what it applies to.
    #[must_use]
    pub fn ruling(&self) -> Ruling {
        match self {
            Self::Permit => Ruling::Permit,
            Self::Forbid => Ruling::Forbid,
            Self::Ask { .. } => Ruling::Ask,
        }
    }
}

/// The file of the rules that there are without any of one's own.
pub(crate) const BUILT_IN: &str = "default.cedar";

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its unique name, journalled with every decision that it makes.
    pub id: String,
    /// What it says.
    pub says: Says,
    /// Why, for people and for the model; may be empty.
    pub reason: String,
    /// Its text.
    pub text: String,
    /// The file that it stands in, and the line there.
    pub source: String,
    /// The line, from 1.
    pub line: usize,
    /// Of whom its source speaks.
    pub part: RulePart,
    pub(crate) policy: Policy,
}

/// Whose situation a rule has to be asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    /// It says the same of everybody.
    Everybody,
    Person,
    Agent,
    Organisation,
}

impl Rule {
    /// The actions that it may apply to.
    pub(crate) fn actions(&self) -> Vec<Action> {
        match self.policy.action_constraint() {
            ActionConstraint::Any => Action::ALL.to_vec(),
            ActionConstraint::Eq(uid) => VOCABULARY.actions_of(&uid),
            ActionConstraint::In(uids) => {
                let all = uids.iter().flat_map(|uid| VOCABULARY.actions_of(uid));
                all.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
            }
        }
    }

    /// Of whom it has to be asked, and the organisation if it speaks of one only.
    pub(crate) fn whose(&self) -> (Vec<Whose>, Option<String>) {
        let of_type = |name: &str| match name {
            "Person" => vec![Whose::Person],
            "Agent" => vec![Whose::Agent],
            "Organisation" => vec![Whose::Organisation],
            _ => Vec::new(),
        };
        let all = || vec![Whose::Person, Whose::Agent, Whose::Organisation];
        let organisation = |uid: &EntityUid| {
            let is = uid.type_name().basename() == "Organisation";
            is.then(|| uid.id().unescaped().to_owned())
        };
        let (whose, organisation) = match self.policy.principal_constraint() {
            PrincipalConstraint::Any if self.names_the_principal() => (all(), None),
            PrincipalConstraint::Any => (vec![Whose::Everybody], None),
            PrincipalConstraint::In(uid) if uid.type_name().basename() == "Group" => {
                (vec![Whose::Person, Whose::Agent], None)
            }
            PrincipalConstraint::In(uid) => (all(), organisation(&uid)),
            PrincipalConstraint::Eq(uid) => {
                (of_type(uid.type_name().basename()), organisation(&uid))
            }
            PrincipalConstraint::Is(name) => (of_type(name.basename()), None),
            PrincipalConstraint::IsIn(name, uid) => (of_type(name.basename()), organisation(&uid)),
        };
        match self.part {
            RulePart::Rules => (whose, organisation),
            RulePart::Ceiling => (vec![Whose::Organisation], organisation),
        }
    }

    fn names_the_principal(&self) -> bool {
        // One that can't be looked into is asked of everybody.
        let json = self.policy.to_json().ok();
        let conditions = json.and_then(|json| Some(json.get("conditions")?.to_string()));
        conditions.is_none_or(|text| text.contains(r#""Var":"principal""#))
    }

    /// What its hash is made of: the same for texts that mean the same.
    pub(crate) fn canonical(&self) -> String {
        let meaning = self.policy.to_json().map(|json| json.to_string());
        format!("{}\n{:?}\n{}\n", self.id, self.part, meaning.unwrap_or_else(|_| self.text.clone()))
    }
}

const ANNOTATIONS: &str = "the annotations are @id, @approvable, @escalates and @reason";

/// Takes a source apart.
pub(crate) fn parse(source: &Source) -> (Vec<Rule>, Vec<Problem>) {
    let Source { name, text, part } = source;
    if text.len() > limits::SOURCE_BYTES_MAX {
        let said = format!("it has more than {} bytes", limits::SOURCE_BYTES_MAX);
        return (Vec::new(), vec![Problem::error(name, 0, said)]);
    }
    let set = match PolicySet::from_str(text) {
        Ok(set) => set,
        Err(errors) => {
            let all = errors.iter().map(|error| diagnosed(name, text, error));
            return (Vec::new(), all.collect());
        }
    };
    let mut problems: Vec<Problem> = set
        .templates()
        .map(|template| {
            let line = line_of(text, &template.to_cedar());
            Problem::error(name, line, "`?principal` and `?resource` are not filled in by anybody")
                .help("Name who or what is meant.")
        })
        .collect();
    let mut rules = Vec::new();
    for policy in set.policies() {
        match rule(policy, name, text, *part) {
            Ok(rule) => rules.push(rule),
            Err(problem) => problems.push(problem),
        }
    }
    rules.sort_by_key(|rule| rule.line);
    (rules, problems)
}

fn rule(policy: &Policy, source: &str, whole: &str, part: RulePart) -> Result<Rule, Problem> {
    let text = policy.to_cedar().unwrap_or_else(|| policy.to_string());
    let line = line_of(whole, &text);
    let wrong = |message: String| Problem::error(source, line, message);
    let known = ["id", "approvable", "escalates", "reason"];
    let unknown = policy.annotations().find(|(name, _)| !known.contains(name));
    if let Some((unknown, _)) = unknown {
        return Err(wrong(format!("`@{unknown}` is unknown: {ANNOTATIONS}")));
    }
    let id = policy.annotation("id").unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    if id.is_empty() || id.len() > limits::RULE_ID_BYTES_MAX || !id.bytes().all(plain) {
        let max = limits::RULE_ID_BYTES_MAX;
        return Err(wrong(format!(
            "it has no name: expected `@id(\"...\")` with 1 to {max} characters of a-z A-Z 0-9 _ - . : /"
        ))
        .help("Decisions name the rules that made them."));
    }
    Ok(Rule {
        says: says(policy, id).map_err(|(said, help)| wrong(said).help(help))?,
        reason: policy.annotation("reason").unwrap_or_default().to_owned(),
        text: text.trim().to_owned(),
        source: source.to_owned(),
        line,
        part,
        policy: policy.new_id(PolicyId::new(id)),
        id: id.to_owned(),
    })
}

/// What a rule says; or what is wrong with that, and what to do.
fn says(policy: &Policy, id: &str) -> Result<Says, (String, &'static str)> {
    let named = |annotation: &str, example| {
        let who = policy.annotation(annotation).map(Approvers::parse).transpose();
        who.map_err(|said| (format!("`{id}` names nobody who may approve: {said}"), example))
    };
    let approvers = named(
        "approvable",
        "For example `@approvable(\"group:ops,person:ada\")` or `@approvable(\"anyone\")`.",
    )?;
    let escalates = named("escalates", "For example `@escalates(\"group:leads,person:ada\")`.")?;
    match (policy.effect(), approvers, escalates) {
        (Effect::Permit, None, None) => Ok(Says::Permit),
        (Effect::Permit, _, _) => Err((
            format!("`{id}` permits, and what is permitted needs no approval"),
            "Write a `forbid` that is approvable, beside a `permit`.",
        )),
        (Effect::Forbid, None, None) => Ok(Says::Forbid),
        (Effect::Forbid, None, Some(_)) => Err((
            format!("`{id}` escalates, and asks nobody before"),
            "Add `@approvable(\"...\")` with whom it asks first.",
        )),
        (Effect::Forbid, Some(approvers), escalates) => Ok(Says::Ask { approvers, escalates }),
    }
}

/// The line at which a part of a text begins.
fn line_of(whole: &str, part: &str) -> usize {
    let at = whole.find(part).unwrap_or_default();
    let blank = part.len() - part.trim_start().len();
    line_at(whole, at + blank)
}

fn line_at(whole: &str, at: usize) -> usize {
    whole.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// What the language says of a text, with the line.
pub(crate) fn diagnosed(source: &str, text: &str, error: &impl Diagnostic) -> Problem {
    let label = error.labels().and_then(|mut labels| labels.next());
    let line = label.as_ref().map_or(0, |label| line_at(text, label.offset()));
    let mut message = error.to_string();
    if let Some(label) = label.as_ref().and_then(|label| label.label()) {
        message = format!("{message} ({label})");
    }
    let help = error.help().map(|help| help.to_string()).unwrap_or_default();
    Problem::error(source, line, message).help(help)
}
