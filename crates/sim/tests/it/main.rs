//! The simulation, looked at itself: it notices what is missing, it is the same every
//! time, and what can happen happens.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod coverage;
mod replay;
mod safeguards;
mod seeds;
