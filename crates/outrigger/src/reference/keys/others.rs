//! Who is told, and whose tools sessions have.

use super::{Key, Table, nothing, value};
use crate::limits;

pub(super) const SKILLS: Table = Table {
    name: "skills",
    header: "skills",
    about: "whose skills are taken in, and which content of one is offered ([skills](how-to/skills.md))",
    keys: &[
        Key {
            name: "trusted_keys",
            kind: "list of strings: public keys of Ed25519, 64 hexadecimal digits each",
            default: || "`[]`: every skill".to_owned(),
            about: "`outrigger skills import` takes in only what one of them signed, in the file SKILL.sig.",
            instead: "",
            example: "[\"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a\"]",
        },
        Key {
            name: "pins",
            kind: "table: a skill's folder as sessions see it, and a digest",
            default: || "`{}`".to_owned(),
            about: "A session is told of such a skill only as long as its content has this digest, which `outrigger skills ls` shows.",
            instead: "",
            example: "{ \"/skills/organisation/pdf\" = \"5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef\" }",
        },
    ],
};

pub(super) const NOTIFY: Table = Table {
    name: "notify",
    header: "notify",
    about: "who is told that something waits for a person",
    keys: &[
        Key {
            name: "command",
            kind: "list of strings: a program and its arguments",
            default: || "`[]`".to_owned(),
            about: "Run when a session stops because something waits, with what `outrigger inbox --json` prints for it on standard input, and without the environment variables that hold keys. It has 10 s. It may be told again of what still waits.",
            instead: "",
            example: "[\"notify-me\", \"--urgent\"]",
        },
        Key {
            name: "webhook",
            kind: "string, an address",
            default: nothing,
            about: "The same by a POST of that JSON. Redirections are not followed; an answer other than 2xx is warned of.",
            instead: "",
            example: "\"https://hooks.example/outrigger\"",
        },
    ],
};

pub(super) const TOOLS: Table = Table {
    name: "tools",
    header: "tools.github",
    about: "a server of the Model Context Protocol whose tools sessions have, by its name: 1 to 24 characters of a-z 0-9 and single _ within; any number of such tables ([outside tools](how-to/outside-tools.md))",
    keys: &[
        Key {
            name: "url",
            kind: "string",
            default: nothing,
            about: "Where the server is: `https`, or `http` on this very machine. A redirect is not followed.",
            instead: "",
            example: "\"https://mcp.example/mcp\"",
        },
        Key {
            name: "command",
            kind: "list of strings",
            default: nothing,
            about: "A program that is the server, spoken to over its standard streams, instead of `url`. It runs in `sandbox`, for as long as one call.",
            instead: "",
            example: "[\"my-server\"]",
        },
        Key {
            name: "sandbox",
            kind: "string",
            default: nothing,
            about: "The `[[sandbox]]` in which the program runs: one of its own, in which no tool of ours acts.",
            instead: "",
            example: "\"fetch\"",
        },
        Key {
            name: "token_env",
            kind: "string",
            default: nothing,
            about: "The environment variable that holds a bearer token for it. The token itself never stands in a file of ours.",
            instead: "",
            example: "\"GITHUB_TOKEN\"",
        },
        Key {
            name: "headers_env",
            kind: "table of strings",
            default: nothing,
            about: "Further headers of every request, each with the environment variable that holds its value.",
            instead: "",
            example: "{ \"x-api-key\" = \"MCP_API_KEY\" }",
        },
        Key {
            name: "allow",
            kind: "list of strings",
            default: || "all that the server has".to_owned(),
            about: "The tools that sessions may have, as the server names them.",
            instead: "",
            example: "[\"get_issue\", \"create_issue\"]",
        },
        Key {
            name: "read_only",
            kind: "list of strings",
            default: nothing,
            about: "Tools of the server that change nothing. After a crash they are called again, and the default rules let them be called without asking. What the server itself says of them is not believed.",
            instead: "",
            example: "[\"get_issue\"]",
        },
        Key {
            name: "idempotent",
            kind: "list of strings",
            default: nothing,
            about: "Tools that act, and do the same call with the same key once. After a crash they are called again with that key; any other that was under way is told to the model as unknown.",
            instead: "",
            example: "[\"create_issue\"]",
        },
        Key {
            name: "concurrent",
            kind: "`true` or `false`",
            default: || value(false),
            about: "Whether calls of this server may run beside each other and beside other tools that may.",
            instead: "",
            example: "",
        },
        Key {
            name: "timeout_seconds_max",
            kind: "whole number, 1 to 3600",
            default: || value(limits::OUTSIDE_MS_DEFAULT / 1_000),
            about: "From the start of a call to giving up.",
            instead: "",
            example: "",
        },
        Key {
            name: "result_bytes_max",
            kind: "whole number, 1000 to 1000000",
            default: || value(outrigger_tools::limits::OUTSIDE_BYTES_DEFAULT),
            about: "What the model sees of an answer; the middle of a longer one is left out.",
            instead: "",
            example: "",
        },
    ],
};
