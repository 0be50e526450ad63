//! A question of the rules, put to whoever sits at the terminal, and what they can say to it.
//!
//! Owns what an answer is bound to, and when an answer that stands covers another question: only
//! where nothing differs but its place. Asks nobody itself, and performs nothing.

use outrigger_agent::{Answer, ApprovalRequest, Digest, FileBaseline, Seq, SessionId};
use outrigger_engine::{AnswerRequest, Engine};
use outrigger_policy::RuleSet;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::change::ProposedChange;
use crate::exit::Outcome;
use crate::session;
use crate::show::inert;
use crate::waiting::{self, PendingApproval};

/// The argument that a person edits by itself, as text.
const COMMAND: &str = "command";

/// A question, with all that is shown of it.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// By which it stands in the inbox.
    pub(crate) id: String,
    pub(crate) session: SessionId,
    pub(crate) effect: Seq,
    tool: String,
    arguments: Option<Digest>,
    /// The arguments as the model wrote them.
    given: String,
    asked: ApprovalRequest,
    /// What would be done, a line each.
    pub(crate) lines: Vec<String>,
    /// What it would make of a file.
    pub(crate) diff: Option<String>,
    seen: Option<FileBaseline>,
    changes_file: bool,
    /// Why it is asked, a line each.
    pub(crate) why: Vec<String>,
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Yes,
    /// Yes, also whenever the same is asked again while they sit there.
    Always,
    /// No, and why; the model is told.
    No(String),
    /// This instead.
    Instead(String),
}

/// A key by which a person chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Yes,
    No,
    Always,
    Edit,
    Why,
    Later,
}

impl Choice {
    /// What a person typed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_lowercase().as_str() {
            "y" | "yes" => Self::Yes,
            "n" | "no" => Self::No,
            "a" | "always" => Self::Always,
            "e" | "edit" => Self::Edit,
            "w" | "why" => Self::Why,
            "l" | "later" => Self::Later,
            _ => return None,
        })
    }
}

impl Question {
    /// The question that a session asks. Reaches the sandbox for what it would change.
    pub(crate) async fn of(
        engine: &Engine,
        rules: Option<&RuleSet>,
        waiting: &PendingApproval,
    ) -> Outcome<Option<Self>> {
        let change = ProposedChange::of(engine, waiting).await?;
        let change = change.map(|change| (change.diff, change.seen)).unzip();
        Ok(Self::with(rules, waiting, change))
    }

    /// The question, with what it would make of a file, and of which one.
    pub(crate) fn with(
        rules: Option<&RuleSet>,
        waiting: &PendingApproval,
        (diff, seen): (Option<String>, Option<FileBaseline>),
    ) -> Option<Self> {
        let (_, asked) = waiting.asked()?;
        let info = waiting.info()?;
        Some(Self {
            id: waiting.id(),
            session: waiting.session.clone(),
            effect: waiting.effect,
            lines: waiting::act(&info),
            tool: info.tool,
            arguments: waiting.arguments(),
            given: info.arguments,
            diff,
            seen,
            changes_file: waiting.changes_file(),
            why: why(asked, rules, waiting),
            asked: asked.clone(),
        })
    }

    /// Whether it is the same one, with nothing changed of what was shown.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.id == other.id && self.asked == other.asked && self.seen == other.seen
    }

    /// In a line: what is asked.
    pub(crate) fn title(&self) -> String {
        match &self.asked.budget {
            Some(shortfall) => inert(&shortfall.to_string()),
            None => format!("{}: {}", inert(&self.tool), reasons(&self.why)),
        }
    }

    /// Whether an answer can hold for the same question later. One about a file is about the
    /// file that was looked at, and one about money is about an amount.
    pub(crate) fn can_stand(&self) -> bool {
        self.arguments.is_some() && !self.changes_file && self.asked.budget.is_none()
    }

    /// What a person edits: the command, or all arguments.
    pub(crate) fn draft(&self) -> Option<String> {
        self.arguments.as_ref().filter(|_| self.asked.budget.is_none())?;
        let arguments: Map<String, Value> = serde_json::from_str(&self.given).ok()?;
        match arguments.get(COMMAND) {
            Some(Value::String(command)) => Some(command.clone()),
            _ => serde_json::to_string_pretty(&arguments).ok(),
        }
    }

    /// The keys by which it can be answered.
    pub(crate) fn choices(&self) -> String {
        let mut choices = vec!["y yes", "n no"];
        if self.can_stand() {
            choices.push("a always in this session");
        }
        if self.draft().is_some() {
            choices.push("e edit");
        }
        choices.extend(["w why", "l later"]);
        choices.join(" · ")
    }

    /// What the engine is told. An answer that stands names the effect that it was given about.
    pub(crate) fn answer(&self, decision: &Decision, standing: Option<Seq>) -> AnswerRequest {
        let answer = match decision {
            Decision::Yes | Decision::Always => {
                let (rule_set, seen) = (self.asked.rule_set, self.seen.clone());
                Answer::Approved { rule_set, seen, standing }
            }
            Decision::No(reason) if reason.trim().is_empty() => {
                Answer::Denied { reason: "no reason was given".to_owned() }
            }
            Decision::No(reason) => Answer::Denied { reason: reason.clone() },
            Decision::Instead(draft) => Answer::Amended { arguments: self.amended(draft) },
        };
        AnswerRequest {
            effect: self.effect,
            by: session::WHO.to_owned(),
            arguments: self.arguments.clone(),
            asked: Some(self.asked.clone()),
            answer,
        }
    }

    /// Why what a person made of the arguments can't be any.
    pub(crate) fn refuses(&self, draft: &str) -> Option<String> {
        let amended = self.amended(draft);
        let error = serde_json::from_str::<Map<String, Value>>(&amended).err()?;
        Some(format!("the arguments are no JSON object: {error}"))
    }

    /// The arguments with what a person made of them.
    pub(crate) fn amended(&self, draft: &str) -> String {
        let arguments = serde_json::from_str::<Map<String, Value>>(&self.given);
        match arguments {
            Ok(mut arguments) if arguments.get(COMMAND).is_some_and(Value::is_string) => {
                arguments.insert(COMMAND.to_owned(), Value::String(draft.to_owned()));
                Value::Object(arguments).to_string()
            }
            // Whether it is an object is for the engine to say.
            _ => draft.to_owned(),
        }
    }
}

/// Why the rules ask, or the budget.
fn why(asked: &ApprovalRequest, rules: Option<&RuleSet>, waiting: &PendingApproval) -> Vec<String> {
    let mut lines = Vec::new();
    for id in &asked.rules {
        let rule = rules.and_then(|rules| rules.rule(id));
        lines.push(match rule {
            Some(rule) if !rule.reason.is_empty() => format!("{} (rule {id})", rule.reason),
            _ => format!("the rule {id} asks"),
        });
        if let Some(rule) = rule {
            let text = rule.text.trim().lines();
            lines.push(format!("  {}:{}", rule.source, rule.line));
            lines.extend(text.map(|line| format!("  {line}")));
        }
    }
    lines.extend(asked.budget.as_ref().map(ToString::to_string));
    if !asked.approvers.is_empty() {
        lines.push(format!("it can be approved by {}", asked.approvers.join(", ")));
    }
    let labels: Vec<&str> = waiting.state.labels().iter().map(String::as_str).collect();
    if !labels.is_empty() {
        lines.push(format!("what was read labels the session: {}", labels.join(", ")));
    }
    lines.iter().map(|line| inert(line)).collect()
}

/// The reasons without the rules' own text.
fn reasons(why: &[String]) -> String {
    let said = why.iter().filter(|line| !line.starts_with(' ')).map(String::as_str);
    said.collect::<Vec<_>>().join("; ")
}

/// What two questions have in common if nothing differs but their place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SameQuestion {
    session: SessionId,
    tool: String,
    arguments: Option<Digest>,
    rules: Vec<String>,
    rule_set: String,
}

/// Answers that hold for the same question as long as the process lives that took them.
#[derive(Debug, Default)]
pub(crate) struct StandingAnswers(BTreeMap<SameQuestion, Seq>);

impl StandingAnswers {
    /// The answer to this question holds from now on.
    pub(crate) fn add(&mut self, question: &Question) {
        if question.can_stand() {
            self.0.insert(same(question), question.effect);
        }
    }

    /// The effect about which the same was answered.
    pub(crate) fn covers(&self, question: &Question) -> Option<Seq> {
        self.0.get(&same(question)).copied().filter(|_| question.can_stand())
    }
}

fn same(question: &Question) -> SameQuestion {
    SameQuestion {
        session: question.session.clone(),
        tool: question.tool.clone(),
        arguments: question.arguments.clone(),
        rules: question.asked.rules.clone(),
        rule_set: question.asked.rule_set.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use expect_test::expect;

    /// A question about a command.
    pub(crate) fn question(effect: u64, command: &str) -> Question {
        let given = serde_json::json!({ "command": command, "deadline_ms": 5 }).to_string();
        Question {
            id: format!("s.{effect}"),
            session: SessionId::new("s").unwrap(),
            effect: Seq(effect),
            tool: "execute".to_owned(),
            arguments: Some(Digest::of(given.as_bytes())),
            given,
            asked: ApprovalRequest {
                rules: vec!["commands-ask".to_owned()],
                approvers: Vec::new(),
                escalates: Vec::new(),
                rule_set: RuleSet::local_default().hash(),
                since_ms: 1,
                budget: None,
            },
            lines: vec!["execute".to_owned(), "│ make".to_owned()],
            diff: None,
            seen: None,
            changes_file: false,
            why: vec!["the rule commands-ask asks".to_owned(), "  forbid (...)".to_owned()],
        }
    }

    #[test]
    fn an_answer_stands_for_the_same_question_alone() {
        let mut standing = StandingAnswers::default();
        standing.add(&question(3, "make"));
        assert_eq!(standing.covers(&question(9, "make")), Some(Seq(3)));
        assert_eq!(standing.covers(&question(9, "make install")), None);
        let mut other = question(9, "make");
        other.asked.rules.push("tainted".to_owned());
        assert_eq!(standing.covers(&other), None, "another rule asks as well");
        let mut other = question(9, "make");
        other.asked.rule_set = RuleSet::from_cedar("").unwrap().hash();
        assert_eq!(standing.covers(&other), None, "other rules are in force");
        let mut other = question(9, "make");
        other.session = SessionId::new("s-4").unwrap();
        assert_eq!(standing.covers(&other), None, "a subagent asks");
        let mut file = question(3, "make");
        file.changes_file = true;
        standing.add(&file);
        assert_eq!(standing.covers(&file), None, "each change of a file is looked at");
    }

    #[test]
    fn what_is_said_is_bound_to_what_was_asked() {
        let question = question(3, "make");
        expect!["y yes · n no · a always in this session · e edit · w why · l later"]
            .assert_eq(&question.choices());
        expect!["execute: the rule commands-ask asks"].assert_eq(&question.title());
        let instead = question.answer(&Decision::Instead("make -n".to_owned()), None);
        expect![[r#"
            Amended {
                arguments: "{\"command\":\"make -n\",\"deadline_ms\":5}",
            }
        "#]]
        .assert_debug_eq(&instead.answer);
        assert_eq!(instead.asked.as_ref(), Some(&question.asked));
        let yes = question.answer(&Decision::Yes, Some(Seq(2)));
        assert!(matches!(yes.answer, Answer::Approved { standing: Some(Seq(2)), .. }));
        let no = question.answer(&Decision::No(" ".to_owned()), None);
        assert_eq!(no.answer, Answer::Denied { reason: "no reason was given".to_owned() });
    }
}
