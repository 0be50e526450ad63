//! Spans of journals.

mod traces;
