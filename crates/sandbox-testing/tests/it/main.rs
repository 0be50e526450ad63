//! The fake against the conformance suite, and what it offers beyond the port; and the suite against faults.

mod fake;
mod mutants;
