//! Spans of journals.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod traces;
