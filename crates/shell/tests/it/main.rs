//! The crate from outside: the table of commands, hostile texts, and the shell itself.

mod everyday;
mod hostile;
mod shell;
mod table;

const GUARDED: &[&str] = &["/memory", "/skills"];

fn word(command: &str) -> &'static str {
    let facts = outrigger_shell::label(command, GUARDED);
    match (facts.opaque, facts.touches.is_empty()) {
        (true, true) => "opaque",
        (true, false) => "opaque, touches",
        (false, false) => "touches",
        (false, true) => "clean",
    }
}
