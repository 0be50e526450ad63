//! The built-in tools: what a model is told of them, how its arguments are
//! checked, and what it sees of what they gave.
//!
//! Owns schemas, words and cuts. The work itself is done by a
//! [`outrigger_sandbox::Sandbox`], through its one door. Must never decide whether
//! a call is allowed, keep state between calls, or let through a terminal's
//! control sequences.
//!
//! Read first: [`specs`], [`ParsedCall`], [`perform`].

#![forbid(unsafe_code)]

use outrigger_agent::{Raw, ToolOutput, ToolSpec};
use outrigger_sandbox::{Error, OutputSink};

mod arguments;
mod call;
mod catalogue;
mod cut;
mod execute;
mod files;
pub mod limits;
pub mod namespace;
mod output;
pub mod outside;
mod parsed;
mod preview;
mod search;
pub mod subagent;

pub use call::{CommandTime, Invocation};
pub use parsed::ParsedCall;
pub use preview::{Preview, preview};

use catalogue::{TOOLS, Tool, ToolName};
use namespace::Namespace;

/// All tools, acting in the sandbox of that name.
#[must_use]
pub fn specs(sandbox: &str) -> Vec<ToolSpec> {
    TOOLS.iter().map(|tool| tool.spec(sandbox)).collect()
}

/// All tools, acting in a further sandbox of that name, which they carry in theirs.
#[must_use]
pub fn specs_of_further(sandbox: &str) -> Vec<ToolSpec> {
    TOOLS.iter().map(|tool| tool.spec_of_further(sandbox)).collect()
}

/// Says of tools that trees are served: their calls about one need no sandbox.
pub fn serve(tools: &mut [ToolSpec]) {
    for tool in tools.iter_mut().filter(|tool| tool.outside.is_none()) {
        tool.served = Tool::named(tool.built_in()).and_then(Tool::served);
    }
}

/// Lets tools begin in a directory of the workspace: commands start there, and relative paths
/// mean what is there.
pub fn begin_in(tools: &mut [ToolSpec], directory: &str) {
    let quoted = serde_json::Value::from(directory).to_string();
    // It goes into a text that has its quotation marks.
    let inside = &quoted[1..quoted.len() - 1];
    for tool in tools.iter_mut().filter(|tool| Tool::named(tool.built_in()).is_some()) {
        tool.directory = Some(directory.to_owned());
        // Where their words name the workspace, they say where a call begins.
        tool.description = tool.description.replace(namespace::WORKSPACE, directory);
        let schema = tool.schema.as_str();
        let schema = schema.replace(namespace::WORKSPACE, inside);
        tool.schema = Raw::new(schema).expect("a quoted text in a JSON string leaves it JSON");
    }
}

/// Performs a call and gives what the model sees of it, with what a command took; nothing
/// for what is no command. `sink` gets a command's output as it comes, uncut.
///
/// What the model can act on is an output with `Status::Error`: malformed
/// arguments, typed file errors, a deadline. A command that ran and failed is
/// `Status::Ok` with its exit code in the text.
///
/// # Errors
/// [`Error::Lost`], [`Error::Backend`], [`Error::Unavailable`] and
/// [`Error::Forgotten`]: what became of the call is not known here, and what that
/// means is the caller's to say.
pub async fn perform(
    call: &Invocation<'_>,
    namespace: &Namespace,
    sink: &dyn OutputSink,
) -> Result<(ToolOutput, Option<CommandTime>), Error> {
    let (tool, arguments) = match call.parsed.checked() {
        Ok(checked) => checked,
        Err(complaint) => return Ok((complaint, None)),
    };
    let done = match tool.name {
        ToolName::Execute => {
            return match execute::execute(arguments, call, namespace, sink).await {
                Ok((output, took)) => Ok((output, Some(took))),
                Err(error) => output::failure(tool.name, error).map(|output| (output, None)),
            };
        }
        ToolName::Ls => files::ls(arguments, namespace).await,
        ToolName::ReadFile => files::read_file(arguments, namespace).await,
        ToolName::WriteFile => files::write_file(arguments, call, namespace).await,
        ToolName::EditFile => files::edit_file(arguments, call, namespace).await,
        ToolName::Glob => search::glob(arguments, namespace).await,
        ToolName::Grep => search::grep(arguments, namespace).await,
    };
    let output = match done {
        Err(Error::File(error)) if call.seen.is_some() && preview::is_change(&error) => {
            preview::changed(arguments)
        }
        done => done.or_else(|error| output::failure(tool.name, error))?,
    };
    Ok((output, None))
}
