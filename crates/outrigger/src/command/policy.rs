//! `outrigger policy`: whether rules hold, what they say of a situation, and whether
//! that is what was expected.

mod explain;

use clap::Subcommand;
use outrigger_policy::{
    AccessRules, Cases, Problem, Problems, RulePart, RuleSet, Ruling, Severity,
};
use serde_json::json;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::exit::{Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::show::{self, inert};
use crate::{config, rules};
use explain::Explain;

/// The rules that every step is judged by.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Check rules: whether they can be in force, and mean what they say. Exit code 2 if not.
    Check {
        /// Files of rules to check instead of those that are configured.
        files: Vec<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Say what the rules make of a situation, which of them, and why.
    Explain(Box<Explain>),
    /// Try the situations of a file, each with its expected outcome. Exit code 1 if one differs.
    Test {
        /// The file, in TOML; docs/how-to/write-policies.md shows one.
        file: PathBuf,
        /// Files of rules to try instead of those that are configured.
        #[arg(long, value_name = "FILE")]
        rules: Vec<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
}

impl Policy {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Check { output, .. } | Self::Test { output, .. } => *output,
            Self::Explain(asked) => asked.output,
        }
    }
}

/// The exit code of tests of which one came out otherwise.
const DIFFERED: u8 = 1;

pub(crate) async fn execute(paths: &Paths, asked: Policy) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    match asked {
        Policy::Check { files, output } => check(&rules::instead(&config.policy, &files), output),
        Policy::Explain(asked) => explain::explain(paths, &asked).await,
        Policy::Test { file, rules, output } => test(&config, &file, &rules, output),
    }
}

fn check(policy: &config::Policy, output: Output) -> Outcome<u8> {
    let (sources, directory) = rules::read(policy)?;
    let access = rules::sources(&policy.access, RulePart::Rules)?;
    let access = AccessRules::new(&access, &directory).err().map(|Problems(problems)| problems);
    let made = RuleSet::new(&sources, directory);
    let of_agents = match &made {
        Ok(set) => set.warnings(),
        Err(Problems(problems)) => problems,
    };
    let valid = made.is_ok() && access.is_none();
    let problems: Vec<_> = of_agents.iter().chain(access.iter().flatten()).collect();
    let code = if valid { 0 } else { Kind::Usage as u8 };
    if output.json.is_some() {
        let problems: Vec<_> = problems.into_iter().map(problem).collect();
        let all: Vec<_> = made.iter().flat_map(RuleSet::rules).map(explain::object).collect();
        show::line(&json!({
            "type": "policy_check",
            "valid": valid,
            "rule_set": made.as_ref().ok().map(|set| set.hash().to_string()),
            "rules": all,
            "problems": problems,
        }))?;
        return Ok(code);
    }
    if let Ok(set) = &made {
        for rule in set.rules() {
            let place = format!("{}:{}", rule.source, rule.line);
            let says = rule.says.ruling().as_str();
            show::out(&inert(&format!("{says:<7} {:<32} {place}", rule.id)))?;
        }
        let count = show::count(set.rules().count() as u64, "rule");
        show::out(&format!(
            "{count} of {}, rule set {}",
            show::count(sources.len() as u64, "file"),
            set.hash()
        ))?;
    }
    // What is wrong stands where it is looked for: at the end.
    for problem in problems {
        let severity = severity(problem);
        show::out(&inert(&format!("{severity}: {problem}")))?;
        if !problem.help.is_empty() {
            show::out(&inert(&format!("  hint: {}", problem.help)))?;
        }
    }
    Ok(code)
}

fn severity(problem: &Problem) -> &'static str {
    match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn problem(problem: &Problem) -> serde_json::Value {
    json!({
        "severity": severity(problem),
        "file": problem.source,
        "line": problem.line,
        "message": problem.message,
        "help": problem.help,
    })
}

fn test(config: &Config, file: &Path, files: &[PathBuf], output: Output) -> Outcome<u8> {
    let set = rules::load(&rules::instead(&config.policy, files))?;
    let hint = "docs/how-to/write-policies.md shows a file of tests.";
    let Cases { case: cases } = config::parse(&rules::text(file)?, file, hint)?;
    let tried: Vec<_> = cases.iter().map(|case| (case, case.run(&set))).collect();
    let differ = tried.iter().filter(|(_, tried)| !tried.passed).count();
    if output.json.is_some() {
        let cases = tried.iter().map(|(case, tried)| {
            json!({
                "name": case.name,
                "passed": tried.passed,
                "expected": case.expect,
                "expected_rules": case.rules,
                "found": tried.ruling,
                "rules": tried.verdict.rules(),
            })
        });
        let cases: Vec<_> = cases.collect();
        let hash = set.hash().to_string();
        show::line(&json!({
            "type": "policy_test", "passed": differ == 0, "differ": differ, "rule_set": hash, "cases": cases,
        }))?;
        return Ok(if differ > 0 { DIFFERED } else { 0 });
    }
    for (case, tried) in &tried {
        let mark = if tried.passed { "ok  " } else { "FAIL" };
        let found = shown(tried.ruling, tried.verdict.rules());
        let mut row = format!("{mark}  {:<44}  {found}", case.name);
        if !tried.passed {
            let rules = case.rules.as_deref();
            let expected = rules
                .map_or_else(|| case.expect.as_str().to_owned(), |rules| shown(case.expect, rules));
            row = format!("{row}, expected {expected}");
        }
        show::out(&inert(&row))?;
    }
    let count = show::count(tried.len() as u64, "situation");
    show::out(&format!("{count}, {differ} not as expected"))?;
    Ok(if differ > 0 { DIFFERED } else { 0 })
}

fn shown(outcome: Ruling, rules: &[String]) -> String {
    if rules.is_empty() {
        return format!("{} (no rule permits it)", outcome.as_str());
    }
    format!("{} by {}", outcome.as_str(), rules.join(", "))
}
