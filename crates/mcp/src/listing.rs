//! The list of a server's tools, put together page by page.
//!
//! Owns what is taken into it: names that can stand in a command and in a rule, each once,
//! and no more than the limits allow, looked at with every tool. Must never keep a name
//! that is none.

use outrigger_tools::limits::OUTSIDE_TOOLS_MAX;
use outrigger_tools::outside::{Fault, ToolListing, is_name};
use rmcp::model::Tool;
use std::collections::BTreeSet;

use crate::answer::described;
use crate::limits;

/// What is known so far.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    listed: ToolListing,
    names: BTreeSet<String>,
    count: usize,
    bytes: usize,
}

impl Listing {
    /// Takes in a page. Of two tools of one name the first counts.
    pub(crate) fn add(&mut self, page: &[Tool]) -> Result<(), Fault> {
        for tool in page {
            self.count += 1;
            if self.count > OUTSIDE_TOOLS_MAX {
                return Err(too_much(&format!("has more than {OUTSIDE_TOOLS_MAX} tools")));
            }
            let says = described(tool);
            self.bytes += says.tool.len() + says.description.len() + says.schema.as_str().len();
            if self.bytes > limits::LIST_BYTES_MAX {
                let max = limits::LIST_BYTES_MAX;
                return Err(too_much(&format!("says more than {max} bytes of its tools")));
            }
            if !is_name(&says.tool) {
                self.listed.left_out += 1;
            } else if self.names.insert(says.tool.clone()) {
                self.listed.tools.push(says);
            }
        }
        Ok(())
    }

    /// All that it has.
    pub(crate) fn whole(self) -> ToolListing {
        self.listed
    }
}

fn too_much(what: &str) -> Fault {
    Fault::NotAsked { detail: format!("the server {what}") }
}
