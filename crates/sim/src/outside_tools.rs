//! The tools of a server outside: one that acts, one that acts once for a key however often
//! it is asked, and one that only reads.

use outrigger_agent::{Concurrency, Raw, ToolSpec};
use outrigger_tools::outside::{DeclaredEffect, Offer, ToolDescription};

use crate::limits;
use crate::seed::is_one_of;

/// Its name.
pub(crate) const SERVER: &str = "outside";

/// Its tools, and what our configuration says of each.
pub(crate) const TOOLS: [(&str, DeclaredEffect); 3] = [
    ("send", DeclaredEffect::Acts),
    ("put", DeclaredEffect::Idempotent),
    ("look", DeclaredEffect::ReadOnly),
];

/// Whether a seed's sessions have its tools.
pub(crate) fn has(seed: u64) -> bool {
    is_one_of(seed, 53, limits::DESKS_OF_256)
}

pub(crate) fn described(tool: &str) -> ToolDescription {
    let schema = Raw::new(r#"{"type":"object"}"#.to_owned()).expect("it is JSON");
    ToolDescription { tool: tool.to_owned(), description: format!("Does {tool}."), schema }
}

/// Its tools, as a session is opened with them.
pub(crate) fn tools(seed: u64) -> Vec<ToolSpec> {
    if !has(seed) {
        return Vec::new();
    }
    let spec = |(tool, declared): (&str, DeclaredEffect)| {
        let described = described(tool);
        let offer = Offer {
            server: SERVER,
            described: &described,
            changed: None,
            declared,
            concurrency: Concurrency::Exclusive,
            sandbox: None,
            timeout_ms: limits::DESK_MS_MAX,
        };
        offer.spec().expect("its name and schema are plain")
    };
    TOOLS.into_iter().map(spec).collect()
}

/// A call that a model makes of one of them.
pub(crate) fn call(rng: &mut fastrand::Rng, word: &str) -> (&'static str, String) {
    let name = ["mcp__outside__send", "mcp__outside__put", "mcp__outside__look"][rng.usize(..3)];
    (name, format!(r#"{{"what":"{word}"}}"#))
}

/// Whether a call may be made again after a crash.
pub(crate) fn may_repeat(tool: &str) -> bool {
    tool != "send"
}
