//! Placeholder: see the bench modules.
fn main() {}
