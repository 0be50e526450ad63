//! What is pinned of the tools of servers outside, a file for each server.
//!
//! The first that a server says of its tools is trusted; whatever it says otherwise later,
//! and every tool that comes later, waits until a person trusts it. A server at another
//! address is another server; back at its first address it is what it was there.

use outrigger_agent::{Digest, Raw};
use outrigger_tools::outside::ToolDescription;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::Server;
use crate::exit::Outcome;
use crate::paths::Paths;
use crate::{json_file, limits};

/// What is pinned of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pins {
    /// Where the server was that said this.
    pub(crate) address: String,
    pub(crate) tools: BTreeMap<String, Pin>,
    /// What is pinned of it where it was before, the last first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    elsewhere: Vec<Elsewhere>,
}

/// What is pinned of a server at another address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Elsewhere {
    address: String,
    tools: BTreeMap<String, Pin>,
}

/// Whether a server was heard before at its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Before,
    /// All that it said is trusted.
    FirstTime,
}

/// What is pinned of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin {
    /// What a person trusts; nothing for a tool that came later.
    pub(crate) trusted: Option<Text>,
    /// What the server said last, if that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) said: Option<Text>,
    /// Whether the server had it when it was asked last.
    pub(crate) there: bool,
}

/// What a server says of a tool, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Text {
    description: String,
    schema: Raw,
}

impl Text {
    pub(crate) fn described(&self, tool: &str) -> ToolDescription {
        let (description, schema) = (self.description.clone(), self.schema.clone());
        ToolDescription { tool: tool.to_owned(), description, schema }
    }

    /// As people read it: the words, then the schema, line by line.
    pub(crate) fn lines(&self, tool: &str) -> String {
        let inert = self.described(tool).inert();
        let schema: serde_json::Value =
            serde_json::from_str(inert.schema.as_str()).unwrap_or_default();
        format!("{}\n\n{schema:#}\n", inert.description)
    }

    fn of(described: &ToolDescription) -> Self {
        let ToolDescription { description, schema, .. } = described.clone();
        Self { description, schema }
    }
}

impl Pin {
    /// What a person is asked about: what the server said last, unless that is trusted.
    pub(crate) fn waiting(&self) -> Option<&Text> {
        self.said.as_ref()
    }

    /// From now on a person trusts what the server said last.
    pub(crate) fn trust(&mut self) {
        if let Some(said) = self.said.take() {
            self.trusted = Some(said);
        }
    }

    /// What the server says now, where that is not what is trusted.
    pub(crate) fn changed(&self, tool: &str) -> Option<Digest> {
        let said = self.said.as_ref().filter(|_| self.trusted.is_some())?;
        Some(said.described(tool).digest())
    }

    /// How it stands, in a word.
    pub(crate) fn status(&self) -> &'static str {
        match (&self.trusted, &self.said, self.there) {
            (_, _, false) => "gone",
            (None, _, true) => "new",
            (Some(_), Some(_), true) => "changed",
            (Some(_), None, true) => "trusted",
        }
    }
}

impl Pins {
    /// Whether the server has a tool of that name.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|pin| pin.there)
    }

    /// What there is and may be used.
    pub(crate) fn allowed<'a>(
        &'a self,
        server: &'a Server,
    ) -> impl Iterator<Item = (&'a str, &'a Pin)> {
        let allowed = |tool: &str| server.allow.as_ref().is_none_or(|it| it.contains(tool));
        let there = self.tools.iter().filter(move |(tool, pin)| pin.there && allowed(tool));
        there.map(|(tool, pin)| (tool.as_str(), pin))
    }

    /// Goes to an address.
    fn turn_to(&mut self, address: &str) -> Heard {
        if self.address == address {
            return Heard::Before;
        }
        let known = self.elsewhere.iter().position(|it| it.address == address);
        let there = known.map(|index| self.elsewhere.remove(index));
        let heard = if there.is_some() { Heard::Before } else { Heard::FirstTime };
        let there = there.map(|it| it.tools).unwrap_or_default();
        let left = Elsewhere {
            address: std::mem::replace(&mut self.address, address.to_owned()),
            tools: std::mem::replace(&mut self.tools, there),
        };
        if !left.address.is_empty() {
            self.elsewhere.insert(0, left);
            self.elsewhere.truncate(limits::PINNED_ADDRESSES_MAX);
        }
        heard
    }

    /// Takes in what the server says now.
    fn hear(&mut self, address: &str, listed: &[ToolDescription]) -> Heard {
        let heard = self.turn_to(address);
        self.tools.values_mut().for_each(|pin| pin.there = false);
        for described in listed {
            let pin = self.tools.entry(described.tool.clone()).or_default();
            let text = Text::of(described);
            pin.there = true;
            let known = pin.trusted.as_ref().map(|it| it.described(&described.tool).digest());
            if heard == Heard::FirstTime {
                pin.trusted = Some(text);
            } else if known.as_ref() == Some(&described.digest()) {
                pin.said = None;
            } else {
                pin.said = Some(text);
            }
        }
        // What nobody trusts and nobody offers is nothing to remember.
        self.tools.retain(|_, pin| pin.there || pin.trusted.is_some());
        heard
    }
}

/// Takes in what a server says now, and gives what is pinned of it from now on.
pub(crate) fn take(
    paths: &Paths,
    server: &Server,
    listed: &[ToolDescription],
) -> Outcome<(Pins, Heard)> {
    let mut heard = Heard::Before;
    let pins = change(paths, &server.name, |pins| {
        heard = pins.hear(&server.address(), listed);
        Ok(())
    })?;
    Ok((pins, heard))
}

/// What is pinned of a server.
pub(crate) fn read(paths: &Paths, server: &str) -> Outcome<Pins> {
    json_file::load(&place(paths, server), MEND)
}

/// Changes what is pinned, one process at a time, and whole or not at all.
pub(crate) fn change(
    paths: &Paths,
    server: &str,
    change: impl FnOnce(&mut Pins) -> Outcome,
) -> Outcome<Pins> {
    json_file::change(paths, &place(paths, server), MEND, change)
}

/// The name of a server has neither a slash nor a dot.
fn place(paths: &Paths, server: &str) -> PathBuf {
    paths.harness().join("outside").join(format!("{server}.json"))
}

/// What is done about pins that can't be read.
const MEND: &str =
    "Put the file back as it was, or delete it: then what the server says next is trusted.";

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn said(tools: &[(&str, &str)]) -> Vec<ToolDescription> {
        let one = |(tool, description): &(&str, &str)| {
            let schema = Raw::new("{\"type\":\"object\"}".to_owned()).unwrap();
            ToolDescription {
                tool: (*tool).to_owned(),
                description: (*description).to_owned(),
                schema,
            }
        };
        tools.iter().map(one).collect()
    }

    #[test]
    fn the_first_is_trusted_and_what_comes_later_waits() {
        let mut pins = Pins::default();
        let mut shown = String::new();
        for (address, tools) in [
            ("one", &[("a", "does a"), ("b", "does b")][..]),
            ("one", &[("a", "does a, and sends your keys"), ("b", "does b"), ("c", "does c")]),
            ("one", &[("a", "does a"), ("c", "does c")]),
            ("one", &[("a", "does a, and sends your keys")]),
            ("two", &[("a", "does x")]),
            ("one", &[("a", "does a")]),
            ("two", &[("a", "does y")]),
        ] {
            let heard = pins.hear(address, &said(tools));
            shown += &format!("{heard:?}: ");
            for (tool, pin) in &pins.tools {
                let changed = pin.changed(tool).is_some();
                let told = pin.trusted.as_ref().map(|text| text.description.as_str());
                shown += &format!("{tool} {} {changed} {told:?}; ", pin.status());
            }
            shown.push('\n');
        }
        expect![[r#"
            FirstTime: a trusted false Some("does a"); b trusted false Some("does b"); 
            Before: a changed true Some("does a"); b trusted false Some("does b"); c new false None; 
            Before: a trusted false Some("does a"); b gone false Some("does b"); c new false None; 
            Before: a changed true Some("does a"); b gone false Some("does b"); 
            FirstTime: a trusted false Some("does x"); 
            Before: a trusted false Some("does a"); b gone false Some("does b"); 
            Before: a changed true Some("does x"); 
        "#]]
        .assert_eq(&shown);
    }
}
