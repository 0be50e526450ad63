//! Which agents a session may start.

use super::{Key, Table, nothing};

pub(in crate::reference) const AGENTS: Table = Table {
    name: "agents",
    header: "agents.reviewer",
    about: "an agent that a session may start as a subagent, by its name: 1 to 32 characters of a-z 0-9 -; any number of such tables. The agent `default` is always there; its table changes it ([subagents](how-to/subagents.md))",
    keys: &[
        Key {
            name: "description",
            kind: "string",
            default: || "its name".to_owned(),
            about: "What the model that may start it is told of it.",
            instead: "",
            example: "\"reads a change and says what is wrong with it\"",
        },
        Key {
            name: "instructions",
            kind: "string",
            default: nothing,
            about: "What is added to its system prompt.",
            instead: "",
            example: "\"You review changes. Do not change files.\"",
        },
        Key {
            name: "tools",
            kind: "list of strings",
            default: || "all".to_owned(),
            about: "The tools that it has, of those of the session that starts it.",
            instead: "",
            example: "[\"read_file\", \"ls\", \"glob\", \"grep\", \"execute\"]",
        },
        Key {
            name: "steps",
            kind: "whole number, 1 to 1000000000000000",
            default: nothing,
            about: "The most model calls and tool calls of one of them.",
            instead: "",
            example: "50",
        },
        Key {
            name: "tokens",
            kind: "whole number, 1 to 1000000000000000",
            default: nothing,
            about: "The most tokens of one of them, input and output together.",
            instead: "",
            example: "200000",
        },
        Key {
            name: "dollars",
            kind: "number, 0 to 1000000000",
            default: nothing,
            about: "The most money of one of them, in US dollars.",
            instead: "",
            example: "0.5",
        },
        Key {
            name: "seconds",
            kind: "whole number, 1 to 1000000000000000",
            default: nothing,
            about: "The most time that its effects may take, those beside each other counted each.",
            instead: "",
            example: "1800",
        },
        Key {
            name: "cpu_seconds",
            kind: "whole number, 1 to 1000000000000000",
            default: nothing,
            about: "The most processor time of its commands.",
            instead: "",
            example: "600",
        },
        Key {
            name: "egress_bytes",
            kind: "whole number, 1 to 1000000000000000",
            default: nothing,
            about: "The most bytes that it may send to tools outside.",
            instead: "",
            example: "1048576",
        },
    ],
};
