//! The built-in tools: what a model is told of them, how its arguments are
//! checked, and what it sees of what they gave.
//!
//! Owns schemas, words and cuts. The work itself is done by a
//! [`outrigger_sandbox::Sandbox`], through its one door. Must never decide whether
//! a call is allowed, keep state between calls, or let through a terminal's
//! control sequences.
//!
//! Read first: [`specs`], [`perform`].

#![forbid(unsafe_code)]

use outrigger_agent::{Seen, ToolOutput, ToolSpec};
use outrigger_sandbox::{Error, ExecId, OutputSink, Sandbox};

mod arguments;
mod catalogue;
mod cut;
mod execute;
mod files;
pub mod limits;
pub mod namespace;
mod output;
pub mod outside;
mod preview;
mod search;
pub mod subagent;

pub use preview::{Preview, preview};

use arguments::Arguments;
use catalogue::{TOOLS, Tool, ToolName};
use namespace::Files;

/// A tool call that is about to be performed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation<'a> {
    /// Name of the built-in tool, which for a further sandbox is not the one that the
    /// model wrote.
    pub tool: &'a str,
    /// Its arguments, as the model wrote them: JSON, if it behaved.
    pub arguments: &'a str,
    /// The exec id of the call. The same call with the same id, in the same life of
    /// the sandbox, changes nothing a second time.
    pub exec: ExecId,
    /// What the file that it changes was when a person approved the call: it is changed
    /// only if it still is.
    pub seen: Option<&'a Seen>,
}

/// What a command took, as its sandbox says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Took {
    /// From its start to its end, in milliseconds.
    pub wall_ms: u64,
    /// Processor time of it and the children that it waited for, in milliseconds.
    pub cpu_ms: u64,
}

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

/// The file or folder that a call of a built-in file tool is about, in its one spelling,
/// as that tool itself reads its arguments. `None` if it is no file tool, or performs
/// nothing because its arguments are wrong.
#[must_use]
pub fn target(tool: &str, arguments: &str) -> Option<String> {
    let tool = Tool::named(tool)?;
    let arguments = arguments::check(tool, arguments).ok()?;
    let path = given_target(tool, &arguments)?;
    // What has no spelling is refused by the tool.
    Some(namespace::canonical(&path).unwrap_or(path))
}

fn given_target(tool: &Tool, arguments: &Arguments) -> Option<String> {
    let text = |name: &str| arguments.text(name).map(str::to_owned);
    match tool.name {
        ToolName::Execute => None,
        ToolName::ReadFile | ToolName::WriteFile | ToolName::EditFile => text("file_path"),
        ToolName::Ls | ToolName::Grep => {
            Some(text("path").unwrap_or_else(|| files::WORKSPACE.to_owned()))
        }
        ToolName::Glob => Some(search::globbed(arguments).0.to_owned()),
    }
}

/// What can be said of the command of a call of `execute`, from its text: a label, never a
/// boundary. `None` for another tool, and for wrong arguments.
#[must_use]
pub fn label(tool: &str, arguments: &str) -> Option<outrigger_shell::Facts> {
    let tool = Tool::named(tool).filter(|tool| tool.name == ToolName::Execute)?;
    let arguments = arguments::check(tool, arguments).ok()?;
    Some(outrigger_shell::label(arguments.required("command"), &namespace::MOUNTS))
}

/// Performs a call and gives what the model sees of it. `sink` gets a command's
/// output as it comes, uncut.
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
    sandbox: &dyn Sandbox,
    sink: &dyn OutputSink,
) -> Result<ToolOutput, Error> {
    perform_counted(call, sandbox, sink).await.map(|(output, _)| output)
}

/// The same, with what a command took; nothing for what is no command.
///
/// # Errors
/// As [`perform`].
pub async fn perform_counted(
    call: &Invocation<'_>,
    sandbox: &dyn Sandbox,
    sink: &dyn OutputSink,
) -> Result<(ToolOutput, Option<Took>), Error> {
    let (tool, arguments) = match checked(call) {
        Ok(checked) => checked,
        Err(complaint) => return Ok((complaint, None)),
    };
    if tool.name != ToolName::Execute {
        return on_files(tool, &arguments, call, sandbox).await.map(|output| (output, None));
    }
    match execute::execute(&arguments, &call.exec, sandbox, sink).await {
        Ok((output, took)) => Ok((output, Some(took))),
        Err(error) => output::failure(tool.name, error).map(|output| (output, None)),
    }
}

/// Performs a call of a file tool on whatever has the files.
///
/// # Errors
/// As [`perform`]; [`Error::Invalid`] for a command.
pub async fn perform_files(
    call: &Invocation<'_>,
    files: &(impl Files + ?Sized),
) -> Result<ToolOutput, Error> {
    let (tool, arguments) = match checked(call) {
        Ok(checked) => checked,
        Err(complaint) => return Ok(complaint),
    };
    on_files(tool, &arguments, call, files).await
}

async fn on_files(
    tool: &Tool,
    arguments: &Arguments,
    call: &Invocation<'_>,
    files: &(impl Files + ?Sized),
) -> Result<ToolOutput, Error> {
    let done = match tool.name {
        ToolName::Execute => Err(Error::Invalid("a command needs a sandbox".to_owned())),
        ToolName::Ls => files::ls(arguments, files).await,
        ToolName::ReadFile => files::read_file(arguments, files).await,
        ToolName::WriteFile => files::write_file(arguments, call, files).await,
        ToolName::EditFile => files::edit_file(arguments, call, files).await,
        ToolName::Glob => search::glob(arguments, files).await,
        ToolName::Grep => search::grep(arguments, files).await,
    };
    match done {
        Err(Error::File(error)) if call.seen.is_some() && preview::is_change(&error) => {
            Ok(preview::changed(arguments))
        }
        done => done.or_else(|error| output::failure(tool.name, error)),
    }
}

/// The tool with its arguments, or what is wrong with them.
fn checked(call: &Invocation<'_>) -> Result<(&'static Tool, Arguments), ToolOutput> {
    let tool =
        Tool::named(call.tool).ok_or_else(|| output::error(catalogue::unknown(call.tool)))?;
    let arguments = arguments::check(tool, call.arguments).map_err(output::error)?;
    Ok((tool, arguments))
}
