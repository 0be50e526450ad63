//! Pure verdicts: facts and rules in, permit, forbid or ask out.
//!
//! Owns the rules, the verdict, and [`Granted`], the value that an effect must
//! carry before anybody may perform it. Only this crate makes one, and it can't
//! be read back from storage, so authority is always decided, never remembered.
//! Must never do I/O, read a clock, or know how an effect is performed.
//!
//! Read first: [`RuleSet::judge`], [`RuleSet::grant`].

#![forbid(unsafe_code)]

mod facts;
mod granted;
mod rules;
mod verdict;

pub use facts::{Action, Facts};
pub use granted::{Granted, Refused};
pub use rules::{Approved, Matcher, Outcome, Rule, RuleSet};
pub use verdict::{RuleSetHash, Verdict};
