//! A call of a tool, and what it took.

use outrigger_agent::FileBaseline;
use outrigger_sandbox::ExecId;
use std::collections::BTreeMap;

use crate::parsed::ParsedCall;

/// A tool call that is about to be performed.
#[derive(Debug, Clone)]
pub struct Invocation<'a> {
    /// The built-in tool, which for a further sandbox has not the name that the model wrote,
    /// and its arguments.
    pub parsed: &'a ParsedCall,
    /// The exec id of the call. The same call with the same id, in the same life of
    /// the sandbox, changes nothing a second time.
    pub exec: ExecId,
    /// What the file that it changes was when a person approved the call: it is changed
    /// only if it still is.
    pub seen: Option<&'a FileBaseline>,
    /// How long its command may run at the most, in milliseconds, whatever its arguments say:
    /// what the session's limits leave.
    pub command_ms_max: Option<u64>,
    /// Variables that its command has beside the sandbox's own, and in their place.
    pub env: BTreeMap<String, String>,
}

/// What a command took, as its sandbox says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandTime {
    /// From its start to its end, in milliseconds.
    pub wall_ms: u64,
    /// Processor time of it and the children that it waited for, in milliseconds.
    pub cpu_ms: u64,
}
