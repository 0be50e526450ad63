//! Whether rules can be in force, and whether they are likely to mean what they say.

use cedar_policy::{PolicySet, Schema, ValidationError, ValidationMode, Validator};
use std::collections::BTreeMap;

use crate::approval::Approvers;
use crate::directory::{Directory, Principal};
use crate::limits;
use crate::problem::{Problem, Problems, Severity};
use crate::resource::Resource;
use crate::rule::{self, BUILT_IN, Rule, RulePart, Says, Source, Whose};
use crate::vocabulary::VOCABULARY;

/// Rules that can be in force.
pub(crate) struct ValidatedRules {
    pub(crate) rules: BTreeMap<String, Rule>,
    pub(crate) warnings: Vec<Problem>,
}

pub(crate) fn check(sources: &[Source], directory: &Directory) -> Result<ValidatedRules, Problems> {
    let mut problems = Vec::new();
    problems.extend(directory.fault().map(|said| Problem::error("the directory", 0, said)));
    let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
    for source in sources {
        let (found, wrong) = parsed(source, &VOCABULARY.schema);
        problems.extend(wrong);
        for rule in found {
            if let Some(first) = rules.get(&rule.id) {
                let said = format!("`{}` is a name of two rules", rule.id);
                problems.push(
                    Problem::error(&rule.source, rule.line, said)
                        .help(format!("The other is in {}, line {}.", first.source, first.line)),
                );
                continue;
            }
            problems.extend(misspelled(&rule));
            rules.insert(rule.id.clone(), rule);
        }
    }
    if rules.len() > limits::RULES_MAX {
        let said = format!("there are more than {} rules", limits::RULES_MAX);
        problems.push(Problem::error("the rules", 0, said));
    }
    let ceiling = sources.iter().any(|source| source.part == RulePart::Ceiling);
    problems.extend(rules.values().filter_map(|rule| unlikely(rule, directory, ceiling)));
    problems.sort();
    problems.dedup();
    if problems.first().is_some_and(|problem| problem.severity == Severity::Error) {
        problems.retain(|problem| problem.severity == Severity::Error);
        let more = problems.len().saturating_sub(limits::PROBLEMS_MAX);
        problems.truncate(limits::PROBLEMS_MAX);
        if more > 0 {
            problems.push(Problem::error("the rules", 0, format!("and {more} more problems")));
        }
        return Err(Problems(problems));
    }
    Ok(ValidatedRules { rules, warnings: problems })
}

/// The rules of a text, and what is wrong with them, by themselves and by the schema.
pub(crate) fn parsed(source: &Source, schema: &Schema) -> (Vec<Rule>, Vec<Problem>) {
    let (rules, mut problems) = rule::parse(source);
    problems.extend(validated(&rules, source, schema));
    (rules, problems)
}

/// Whether rules fit a schema.
fn validated(rules: &[Rule], source: &Source, schema: &Schema) -> Vec<Problem> {
    let mut set = PolicySet::new();
    for rule in rules {
        // Of two with one name, which is told elsewhere, the first is looked at.
        let _ = set.add(rule.policy.clone());
    }
    let result = Validator::new(schema.clone()).validate(&set, ValidationMode::Strict);
    let line = |id: &str| rules.iter().find(|rule| rule.id == id).map_or(0, |rule| rule.line);
    let errors = result.validation_errors().map(|error| {
        let mut problem = rule::diagnosed(&source.name, &source.text, error);
        if matches!(error, ValidationError::UnrecognizedEntityType(_)) {
            problem.help = format!("The types are {}.", VOCABULARY.types());
        }
        // The same is told for every action.
        if let Some((before, after)) = problem.message.split_once(" for Action::\"") {
            let after = after.split_once('"').map_or("", |(_, after)| after);
            problem.message = format!("{before}{after}");
        }
        if problem.line == 0 {
            problem.line = line(error.policy_id().as_ref());
        }
        problem
    });
    let warnings = result.validation_warnings().map(|warning| {
        let mut problem = rule::diagnosed(&source.name, &source.text, warning);
        problem.severity = Severity::Warning;
        problem
    });
    errors.chain(warnings).collect()
}

/// Names that nothing ever has, so that a rule that forbids would never apply.
fn misspelled(rule: &Rule) -> Vec<Problem> {
    let literals = rule.policy.entity_literals().into_iter();
    let wrong = literals.filter_map(|uid| {
        let (kind, id) = (uid.type_name().basename(), uid.id().unescaped());
        let help = match Resource::spelling(kind, id) {
            Ok(spelled) if spelled == id => return None,
            Ok(spelled) => format!("Write `{kind}::\"{spelled}\"`."),
            Err(()) => String::new(),
        };
        let said = format!("`{}` names {uid}, and nothing is ever spelled so", rule.id);
        Some(Problem::error(&rule.source, rule.line, said).help(help))
    });
    wrong.collect()
}

fn unlikely(rule: &Rule, directory: &Directory, ceiling: bool) -> Option<Problem> {
    let warning = |said: String| Some(Problem::warning(&rule.source, rule.line, said));
    if let Says::Ask { approvers, escalates } = &rule.says {
        if *approvers == Approvers::Anyone && escalates.is_some() {
            return warning(format!(
                "`{}` asks anyone, so that it escalates to nobody else",
                rule.id
            ));
        }
        let nobody = |name: &Principal| match name {
            Principal::Group(group) => {
                directory.groups.get(group).is_none_or(std::collections::BTreeSet::is_empty)
            }
            Principal::Person(_) | Principal::Agent(_) | Principal::Organisation(_) => false,
        };
        let mut named = approvers.named().chain(escalates.iter().flat_map(Approvers::named));
        // The built-in rules name the group that administers, which there may be.
        let is_own = rule.source != BUILT_IN;
        if let Some(name) = named.find(|name| is_own && nobody(name)) {
            return warning(format!("`{}` asks `{name}`, and nobody is in it", rule.id));
        }
    }
    if ceiling
        && rule.part == RulePart::Rules
        && rule.says == Says::Permit
        && rule.whose().0 == [Whose::Organisation]
    {
        let id = &rule.id;
        return warning(format!("`{id}` permits the organisation what only its ceiling can"));
    }
    None
}
