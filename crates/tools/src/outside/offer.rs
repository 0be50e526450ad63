//! How a tool outside is offered to a model: under a name that can be no other's, with its
//! server's words made harmless.

use outrigger_agent::{
    Concurrency, Deadline, Digest, OutsideTool, Recovery, ToolKind, ToolSpec, labels_of,
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

use super::description::ToolDescription;
use crate::limits;

/// What our configuration says of a tool: never the server's own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeclaredEffect {
    /// It acts, and nothing is known of doing it twice.
    #[default]
    Acts,
    /// It acts, and the same call with the same key is done once.
    Idempotent,
    /// It changes nothing.
    ReadOnly,
}

/// A tool that is to be offered.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// Its server, as our configuration names it.
    pub server: &'a str,
    /// What the model is told of it.
    pub described: &'a ToolDescription,
    /// What the server says now, if that is something else.
    pub changed: Option<&'a Digest>,
    /// What our configuration says of it.
    pub declared: DeclaredEffect,
    /// Whether calls of it may run beside others.
    pub concurrency: Concurrency,
    /// The sandbox in which its server runs, if it runs in one.
    pub sandbox: Option<&'a str>,
    /// From the start of a call to giving up, in milliseconds.
    pub timeout_ms: u64,
}

/// Why a tool can't be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// Models and rules can't name it.
    #[error("its name is not 1 to {max} characters of A-Z a-z 0-9 _ - .")]
    Name {
        /// What is left for the name beside the server's.
        max: usize,
    },
    /// Its arguments are no object.
    #[error("the schema of its arguments is not that of an object")]
    Schema,
    /// What it says is more than a model should read.
    #[error("it says {bytes} bytes of itself, and {} are the most", limits::SCHEMA_BYTES_MAX)]
    Large {
        /// How much.
        bytes: usize,
    },
}

impl Offer<'_> {
    /// The tool as the session records it.
    ///
    /// # Errors
    /// Why it can't be offered.
    pub fn spec(&self) -> Result<ToolSpec, OfferError> {
        let ToolDescription { tool, description, schema } = self.described;
        let name = name(self.server, tool)?;
        let bytes = description.len() + schema.as_str().len();
        if bytes > limits::SCHEMA_BYTES_MAX {
            return Err(OfferError::Large { bytes });
        }
        let object = serde_json::from_str::<Map<String, Value>>(schema.as_str());
        let object = object.map_err(|_| OfferError::Schema)?;
        if object.get("type").is_none_or(|kind| kind != "object") {
            return Err(OfferError::Schema);
        }
        let inert = self.described.inert();
        let recovery = match self.declared {
            DeclaredEffect::Acts => Recovery::Unknown,
            DeclaredEffect::Idempotent | DeclaredEffect::ReadOnly => Recovery::Repeat,
        };
        Ok(ToolSpec {
            name,
            description: inert.description,
            schema: inert.schema,
            kind: ToolKind::Outside,
            concurrency: self.concurrency,
            recovery,
            sandbox: self.sandbox.map(str::to_owned),
            served: None,
            built_in: None,
            directory: None,
            deadline: Some(Deadline {
                // No argument of a call says how long it may take.
                argument: String::new(),
                usual_ms: self.timeout_ms,
                most_ms: self.timeout_ms,
                cpu_millis: 0,
            }),
            outside: Some(OutsideTool {
                server: self.server.to_owned(),
                tool: tool.clone(),
                digest: self.described.digest(),
                changed: self.changed.cloned(),
                read_only: self.declared == DeclaredEffect::ReadOnly,
            }),
        })
    }
}

/// The name by which a model calls a tool outside. No tool of ours has two underscores
/// in its name, so that none can be shadowed.
///
/// # Errors
/// [`OfferError::Name`].
pub fn name(server: &str, tool: &str) -> Result<String, OfferError> {
    let before = format!("mcp__{server}__");
    let max = limits::TOOL_NAME_CHARS_MAX.saturating_sub(before.len());
    if tool.len() > max || !is_name(tool) {
        return Err(OfferError::Name { max });
    }
    // Providers take no dot.
    Ok(before + &tool.replace('.', "_"))
}

/// Whether a server may call a tool so: 1 to [`limits::OUTSIDE_NAME_CHARS_MAX`] characters
/// of `A-Z a-z 0-9 _ - .`, as the protocol recommends.
#[must_use]
pub fn is_name(tool: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=limits::OUTSIDE_NAME_CHARS_MAX).contains(&tool.len()) && tool.bytes().all(plain)
}

/// The labels of whatever a server says.
#[must_use]
pub fn label(server: &str) -> BTreeSet<String> {
    labels_of(&format!("mcp:{server}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use outrigger_agent::Raw;

    fn described(tool: &str, description: &str, schema: &str) -> ToolDescription {
        let schema = Raw::new(schema.to_owned()).unwrap();
        ToolDescription { tool: tool.to_owned(), description: description.to_owned(), schema }
    }

    fn spec(described: &ToolDescription) -> Result<ToolSpec, OfferError> {
        let (declared, concurrency) = (DeclaredEffect::Acts, Concurrency::Exclusive);
        let (changed, sandbox, timeout_ms) = (None, None, 1_000);
        Offer { server: "s", described, changed, declared, concurrency, sandbox, timeout_ms }.spec()
    }

    #[test]
    fn what_a_server_says_is_made_harmless() {
        let schema = r#"{"type":"object","properties":{"a\u001b[2J":{"description":"x\u202ey"}}}"#;
        let hidden = "add\u{1b}]0;title\u{7}\u{200b} numbers\u{e0041}\u{e0042}\u{9b}31m";
        let spec = spec(&described("a.b", hidden, schema)).unwrap();
        expect![[r#"
            mcp__s__a_b
            "add numbers"
            {"type":"object","properties":{"a":{"description":"xy"}}}
        "#]]
        .assert_eq(&format!("{}\n{:?}\n{}\n", spec.name, spec.description, spec.schema.as_str()));
    }

    #[test]
    fn what_is_unfit_says_why() {
        let object = r#"{"type":"object"}"#;
        let long = "x".repeat(60);
        let mut said = String::new();
        for described in [
            described("", "", object),
            described("execute\u{200b}", "", object),
            described("a/b", "", object),
            described(&long, "", object),
            described("t", "", "true"),
            described("t", "", r#"{"type":"string"}"#),
            described("t", &"x".repeat(200_000), object),
        ] {
            said += &format!("{}\n", spec(&described).unwrap_err());
        }
        expect![[r#"
            its name is not 1 to 56 characters of A-Z a-z 0-9 _ - .
            its name is not 1 to 56 characters of A-Z a-z 0-9 _ - .
            its name is not 1 to 56 characters of A-Z a-z 0-9 _ - .
            its name is not 1 to 56 characters of A-Z a-z 0-9 _ - .
            the schema of its arguments is not that of an object
            the schema of its arguments is not that of an object
            it says 200017 bytes of itself, and 65536 are the most
        "#]]
        .assert_eq(&said);
    }

    #[test]
    fn no_tool_of_ours_has_a_name_like_theirs() {
        for tool in crate::specs("work").into_iter().chain(crate::specs_of_further("fetch")) {
            assert!(!tool.name.contains("__"), "{}", tool.name);
        }
    }
}
