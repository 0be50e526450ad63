//! Pure verdicts: facts and rules in, permit, forbid or ask out.
//!
//! Owns the rules, the verdict, and [`Granted`], the value that an effect must
//! carry before anybody may perform it. Only this crate makes one, and it can't
//! be read back from storage, so authority is always decided, never remembered.
//! Must never do I/O, read a clock, or know how an effect is performed.
//!
//! Read first: [`RuleSet::judge`], [`RuleSet::grant`], `schema.cedarschema`,
//! `default.cedar`.

#![forbid(unsafe_code)]

mod access;
mod approval;
mod case;
mod check;
mod directory;
mod explanation;
mod facts;
mod granted;
pub mod limits;
mod problem;
mod request;
mod request_rules;
mod resource;
mod rule;
mod rules;
mod scope;
mod situation;
mod slices;
mod verdict;
mod vocabulary;

pub use access::{AccessAction, AccessRights, AccessRules, SessionStanding};
pub use approval::{Approved, Approvers};
pub use case::{Case, CaseOutcome, Cases};
pub use directory::{Directory, Principal};
pub use explanation::{Explanation, Subject};
pub use facts::{
    Action, Facts, Left, OutgoingRequest, OutsideFacts, ShellFacts, Trigger, UNTRUSTED,
};
pub use granted::{Granted, Refused};
pub use problem::{Problem, Problems, Severity};
pub use request_rules::{HostVerdict, RequestRules};
pub use resource::is_within;
pub use rule::{Rule, RulePart, Says, Source};
pub use rules::{DEFAULT, Looks, RuleSet};
pub use scope::{MemoryKind, MemoryScope, Owner, Scope};
pub use situation::Situation;
pub use verdict::{RuleSetHash, Ruling, Verdict};
pub use vocabulary::SCHEMA;
