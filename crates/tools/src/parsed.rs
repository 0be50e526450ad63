//! A call of a built-in tool with its arguments read: once, for the rules that judge it, for
//! people who are asked about it, and for the tool itself.

use outrigger_agent::ToolOutput;
use outrigger_shell::CommandFacts;
use std::sync::OnceLock;

use crate::arguments::Arguments;
use crate::catalogue::{self, Tool, ToolName};
use crate::namespace::{self, MOUNTS};
use crate::{output, search};

/// A call as a model wrote it, read and checked.
#[derive(Debug)]
pub struct ParsedCall {
    checked: Result<(&'static Tool, Arguments), String>,
    directory: Option<String>,
    facts: OnceLock<Option<CommandFacts>>,
}

impl ParsedCall {
    /// Reads the arguments of a call of the built-in tool of that name: JSON, if the model
    /// behaved. Its relative paths begin in `directory`, if that is not the workspace's top.
    /// What is wrong with them is told to the model when the call is performed.
    #[must_use]
    pub fn new(tool: &str, arguments: &str, directory: Option<&str>) -> Self {
        let checked = Tool::named(tool).ok_or_else(|| catalogue::unknown(tool));
        let checked = checked.and_then(|tool| Ok((tool, tool.check(arguments, directory)?)));
        let directory = directory.map(str::to_owned);
        Self { checked, directory, facts: OnceLock::new() }
    }

    /// The file or folder that a call of a file tool is about, in its one spelling. `None` if
    /// it is no file tool, or performs nothing because its arguments are wrong.
    #[must_use]
    pub fn target(&self) -> Option<String> {
        let (tool, arguments) = self.checked.as_ref().ok()?;
        let path = match tool.name {
            ToolName::Execute => None,
            ToolName::ReadFile | ToolName::WriteFile | ToolName::EditFile => {
                arguments.text("file_path")
            }
            ToolName::Ls | ToolName::Grep => arguments.text("path"),
            ToolName::Glob => Some(search::globbed(arguments).0),
        }?;
        // What has no spelling is refused by the tool.
        Some(namespace::canonical(path).unwrap_or_else(|_| path.to_owned()))
    }

    /// What can be said of the command of a call of `execute`, from its text: a label, never
    /// a boundary. `None` for another tool, and for wrong arguments.
    #[must_use]
    pub fn command(&self) -> Option<&CommandFacts> {
        let read = || {
            let (tool, arguments) = self.checked.as_ref().ok()?;
            let command = (tool.name == ToolName::Execute).then(|| arguments.required("command"));
            command.map(|command| outrigger_shell::label(command, &MOUNTS))
        };
        self.facts.get_or_init(read).as_ref()
    }

    /// The tool with its arguments, or what the model is told is wrong with them.
    pub(crate) fn checked(&self) -> Result<(&'static Tool, &Arguments), ToolOutput> {
        let (tool, arguments) =
            self.checked.as_ref().map_err(|complaint| output::error(complaint.clone()))?;
        Ok((tool, arguments))
    }

    /// Where it begins, if that is not the workspace's top.
    pub(crate) fn directory(&self) -> Option<&str> {
        self.directory.as_deref()
    }
}
