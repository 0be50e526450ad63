//! The rules in force, and how they combine: whoever is asked of must be permitted,
//! forbid wins over ask, ask over permit, and what no rule speaks of is forbidden.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::approval::{Approved, Approvers};
use crate::check;
use crate::directory::{Directory, Membership, Principal};
use crate::problem::{Problem, Problems};
use crate::request::{AccessQuery, Malformed};
use crate::rule::{BUILT_IN, Rule, RulePart, Says, Source, Whose};
use crate::slices::{MatchedRules, Slices};
use crate::vocabulary::SCHEMA;
use crate::{
    Action, Explanation, Facts, Granted, Refused, RuleSetHash, Situation, Subject, Verdict,
};

/// The rules that hold where nobody configured others, as they stand in this crate.
pub const DEFAULT: &str = include_str!("default.cedar");

/// The rules in force, with the hash that names them. A copy is cheap. As data they are their texts,
/// which are checked again where they are read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Texts", into = "Texts")]
pub struct RuleSet {
    inner: Arc<Inner>,
}

/// What rules are made of.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    sources: Vec<Source>,
    directory: Directory,
}

#[derive(Debug)]
struct Inner {
    texts: Texts,
    rules: BTreeMap<String, Rule>,
    membership: Membership,
    has_ceiling: bool,
    slices: Slices,
    warnings: Vec<Problem>,
    hash: RuleSetHash,
    /// Whether any text speaks of what a command's text says, and of the time.
    looks: Looks,
    /// What was weighed last: most effects are judged and started in the same moment.
    last: Mutex<Option<(Situation, Evaluation)>>,
}

/// What rules may look at that takes work to find out, changes by itself, or is known only where a
/// request is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    /// `context.shell`.
    pub shell: bool,
    /// `context.at_ms`, `context.hour_utc` and `context.weekday_utc`.
    pub time: bool,
    /// `context.left`.
    pub left: bool,
    /// `context.method`.
    pub method: bool,
    /// `context.path`.
    pub path: bool,
    /// `Path`: where files are.
    pub files: bool,
}

impl Looks {
    /// At everything.
    #[must_use]
    pub fn all() -> Self {
        Self { shell: true, time: true, left: true, method: true, path: true, files: true }
    }

    /// By the words of the texts, so that it errs only towards more.
    fn of(sources: &[Source]) -> Self {
        let says = |word: &str| sources.iter().any(|source| source.text.contains(word));
        let time = ["at_ms", "_utc"].into_iter().any(says);
        // Common words, which a reason may have too: only where they are asked for.
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        let bare: Vec<_> = sources.iter().map(|source| bare(&source.text)).collect();
        let asks = |word: &str| {
            let ways = [format!("context.{word}"), format!("has{word}"), format!("\"{word}\"")];
            bare.iter().any(|text| ways.iter().any(|way| text.contains(way)))
        };
        let (method, path) = (asks("method"), asks("path"));
        let files = says("Path");
        Self { shell: says("shell"), time, left: says("left"), method, path, files }
    }
}

/// What all rules together say of a situation.
#[derive(Debug, Clone)]
struct Evaluation {
    verdict: Verdict,
    /// The rules that ask, if it is they who decide.
    asking: BTreeSet<String>,
    subjects: Vec<Subject>,
    /// Why it can't be put to the rules at all.
    malformed: Option<String>,
}

impl RuleSet {
    /// Takes rules into force, for the people of a directory.
    ///
    /// # Errors
    /// [`Problems`] if a text can't be parsed, does not fit [`SCHEMA`], or two rules
    /// have one name.
    pub fn new(sources: &[Source], directory: Directory) -> Result<Self, Problems> {
        let check::ValidatedRules { rules, warnings } = check::check(sources, &directory)?;
        let has_ceiling = sources.iter().any(|source| source.part == RulePart::Ceiling);
        let hash = hash(&rules, has_ceiling, &directory);
        let looks = Looks::of(sources);
        let slices = Slices::new(rules.values());
        let membership = Membership::new(&directory);
        let texts = Texts { sources: sources.to_vec(), directory };
        let inner = Inner {
            texts,
            rules,
            membership,
            has_ceiling,
            slices,
            warnings,
            hash,
            looks,
            last: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Who is in which group.
    pub(crate) fn membership(&self) -> &Membership {
        &self.inner.membership
    }

    /// Rules from one text, where nobody is in a group.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_cedar(text: &str) -> Result<Self, Problems> {
        let (name, text) = ("rules".to_owned(), text.to_owned());
        Self::new(&[Source { name, text, part: RulePart::Rules }], Directory::default())
    }

    /// What a careful team accepts unchanged: within a sandbox everything may be done,
    /// what reaches somebody else asks first.
    #[must_use]
    pub fn local_default() -> Self {
        // A constant that takes long to make.
        static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
            RuleSet::new(&[RuleSet::default_source()], Directory::default())
                .expect("a test takes the default rules into force")
        });
        RULES.clone()
    }

    /// The default rules, to be put beside others.
    #[must_use]
    pub fn default_source() -> Source {
        let (name, text) = (BUILT_IN.to_owned(), DEFAULT.to_owned());
        Source { name, text, part: RulePart::Rules }
    }

    /// The name of exactly these rules and this directory.
    #[must_use]
    pub fn hash(&self) -> RuleSetHash {
        self.inner.hash
    }

    /// What the rules may look at.
    #[must_use]
    pub fn looks(&self) -> Looks {
        self.inner.looks
    }

    /// All rules, by name.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.inner.rules.values()
    }

    /// One rule.
    #[must_use]
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.inner.rules.get(id)
    }

    /// What will hardly be meant so.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.inner.warnings
    }

    /// How many rules a decision on an action looks at, at most.
    #[must_use]
    pub fn slice_len(&self, action: Action) -> usize {
        self.inner.slices.len(action)
    }

    /// Judges a situation.
    #[must_use]
    pub fn judge(&self, facts: &Facts<'_>) -> Verdict {
        self.inner.weigh(facts).verdict
    }

    /// Judges a situation and says what each rule had to do with it.
    #[must_use]
    pub fn explain(&self, facts: &Facts<'_>) -> Explanation {
        let Evaluation { verdict, asking: _, subjects, malformed } = self.inner.weigh(facts);
        Explanation { verdict, subjects, malformed }
    }

    /// Judges again, at execution, and hands out the authority to perform `effect`.
    /// An approval counts only under the very rules that it was given under, and only
    /// while whoever gave it may; it never overrides a rule that forbids.
    ///
    /// # Errors
    /// [`Refused`] with the verdict if the rules do not permit it now.
    pub fn grant<T>(
        &self,
        facts: &Facts<'_>,
        approved: &[Approved],
        effect: T,
    ) -> Result<Granted<T>, Refused> {
        let Evaluation { verdict, asking, .. } = self.inner.weigh(facts);
        let permitted = match &verdict {
            Verdict::Permit { .. } => true,
            Verdict::Forbid { .. } => false,
            Verdict::Ask { .. } => {
                let counts =
                    |rule: &String| approved.iter().any(|it| self.inner.takes(rule, facts, it));
                !asking.is_empty() && asking.iter().all(counts)
            }
        };
        if permitted { Ok(Granted::mint(effect)) } else { Err(Refused { verdict }) }
    }

    /// Whether an approval would count now for at least one of the rules that ask.
    #[must_use]
    pub fn may_approve(&self, facts: &Facts<'_>, approval: &Approved) -> bool {
        let Evaluation { asking, .. } = self.inner.weigh(facts);
        asking.iter().any(|rule| self.inner.takes(rule, facts, approval))
    }
}

impl TryFrom<Texts> for RuleSet {
    type Error = Problems;

    fn try_from(Texts { sources, directory }: Texts) -> Result<Self, Problems> {
        Self::new(&sources, directory)
    }
}

impl From<RuleSet> for Texts {
    fn from(rules: RuleSet) -> Self {
        rules.inner.texts.clone()
    }
}

impl Inner {
    /// The rules never change, so that the same situation weighs the same.
    fn weigh(&self, facts: &Facts<'_>) -> Evaluation {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((situation, weighed)) = &*last()
            && situation.facts() == *facts
        {
            return weighed.clone();
        }
        let weighed = self.weigh_anew(facts);
        *last() = Some((Situation::from(facts), weighed.clone()));
        weighed
    }

    fn weigh_anew(&self, facts: &Facts<'_>) -> Evaluation {
        match self.ask_all(facts) {
            Ok((said, subjects)) => self.combine(said, subjects),
            Err(Malformed(why)) => Evaluation {
                verdict: Verdict::forbid(Vec::new()),
                asking: BTreeSet::new(),
                subjects: Vec::new(),
                malformed: Some(why),
            },
        }
    }

    fn ask_all(&self, facts: &Facts<'_>) -> Result<(MatchedRules, Vec<Subject>), Malformed> {
        let asking = AccessQuery::new(facts, &self.membership, None)?;
        let common = self.ask(&asking, Whose::Everybody, &asking.people[0])?;
        let agents = asking.agents.iter().map(|agent| (Whose::Agent, agent));
        let people = asking.people.iter().map(|person| (Whose::Person, person));
        let who = agents.chain(people).chain([(Whose::Organisation, &asking.organisation)]);
        let mut subjects = Vec::new();
        let mut all = MatchedRules::default();
        for (whose, who) in who {
            let mut said = self.ask(&asking, whose, who)?;
            if whose == Whose::Organisation && self.has_ceiling {
                said.permits.retain(|id| {
                    self.rules.get(id).is_some_and(|rule| rule.part == RulePart::Ceiling)
                });
                let MatchedRules { permits: _, forbids, failed } = common.clone();
                said.join(MatchedRules { permits: BTreeSet::new(), forbids, failed });
            } else {
                said.join(common.clone());
            }
            subjects.push(Subject {
                who: who.to_string(),
                permitting: said.permits.iter().cloned().collect(),
                denying: said.forbids.union(&said.failed).cloned().collect(),
            });
            all.join(said);
        }
        Ok((all, subjects))
    }

    fn ask(
        &self,
        asking: &AccessQuery,
        whose: Whose,
        who: &Principal,
    ) -> Result<MatchedRules, Malformed> {
        let Principal::Organisation(organisation) = &asking.organisation else {
            return Ok(MatchedRules::default());
        };
        let scope = (asking.action, whose, organisation.as_str());
        self.slices.ask(scope, || asking.request(who), asking.entities())
    }

    fn combine(&self, said: MatchedRules, subjects: Vec<Subject>) -> Evaluation {
        let MatchedRules { permits, forbids, failed } = said;
        let asks = |id: &String| matches!(self.says(id), Some(Says::Ask { .. }));
        let hard: BTreeSet<String> =
            forbids.iter().filter(|id| !asks(id)).chain(&failed).cloned().collect();
        let all_permitted = subjects.iter().all(|subject| !subject.permitting.is_empty());
        let decided = |verdict, asking| Evaluation { verdict, asking, subjects, malformed: None };
        if !hard.is_empty() || !all_permitted {
            let reason = |id: &String| self.rules.get(id).map(|rule| rule.reason.clone());
            let reasons = hard.iter().filter_map(reason).filter(|reason| !reason.is_empty());
            let (reasons, rules) = (reasons.collect(), hard.iter().cloned().collect());
            return decided(Verdict::Forbid { rules, reasons }, BTreeSet::new());
        }
        if forbids.is_empty() {
            return decided(
                Verdict::Permit { rules: permits.into_iter().collect() },
                BTreeSet::new(),
            );
        }
        let (mut approvers, mut escalates) = (BTreeSet::new(), BTreeSet::new());
        for id in &forbids {
            if let Some(Says::Ask { approvers: first, escalates: then }) = self.says(id) {
                approvers.extend(first.names());
                escalates.extend(then.iter().flat_map(Approvers::words));
            }
        }
        let rules = forbids.iter().cloned().collect();
        let (approvers, escalates) =
            (approvers.into_iter().collect(), escalates.into_iter().collect());
        decided(Verdict::Ask { rules, approvers, escalates }, forbids)
    }

    fn says(&self, id: &str) -> Option<&Says> {
        self.rules.get(id).map(|rule| &rule.says)
    }

    /// Whether a rule takes an approval now: it was given under these rules, by somebody
    /// whom the rule names, and no rule forbids them to approve.
    fn takes(&self, rule: &str, facts: &Facts<'_>, approval: &Approved) -> bool {
        let (Some(Says::Ask { approvers, escalates }), Ok(by)) =
            (self.says(rule), approval.by.parse::<Principal>())
        else {
            return false;
        };
        let escalates = escalates.iter().filter(|_| approval.escalated);
        approval.rule_set == self.hash
            && escalates.chain([approvers]).any(|named| named.include(&by, &self.membership))
            && self.lets_approve(facts, &by).unwrap_or(false)
    }

    fn lets_approve(&self, facts: &Facts<'_>, by: &Principal) -> Result<bool, Malformed> {
        let facts = Facts { action: Action::Approve, resource: facts.action.as_str(), ..*facts };
        let asking = AccessQuery::new(&facts, &self.membership, Some(by))?;
        let mut said = self.ask(&asking, Whose::Everybody, by)?;
        said.join(self.ask(&asking, Whose::Person, by)?);
        said.join(self.ask(&asking, Whose::Organisation, &asking.organisation)?);
        // A rule that asks of everything does not ask of its own approvals.
        let asks = |id: &String| matches!(self.says(id), Some(Says::Ask { .. }));
        Ok(said.forbids.iter().all(asks) && said.failed.is_empty())
    }
}

fn hash(rules: &BTreeMap<String, Rule>, has_ceiling: bool, directory: &Directory) -> RuleSetHash {
    let mut hasher = Sha256::new();
    let mut put = |text: &str| {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    };
    put(SCHEMA);
    put(if has_ceiling { "ceiling" } else { "no ceiling" });
    rules.values().for_each(|rule| put(&rule.canonical()));
    put(&directory.organisation);
    for (name, members) in &directory.groups {
        put(name);
        put(&members.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    }
    RuleSetHash::new(hasher.finalize().into())
}
