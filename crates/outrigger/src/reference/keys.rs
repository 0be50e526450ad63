//! Every key of a configuration file, as people read of it.

use crate::config::Sandbox;
use crate::limits;
use outrigger_model::limits::ATTEMPTS_MAX;
use outrigger_sandbox::Spec;

/// A table of the file.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
}

impl Table {
    /// Its header in a file.
    pub(super) fn header(&self) -> &'static str {
        if self.name == "tools" { "tools.github" } else { self.name }
    }
}

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Its type, with the range.
    pub(super) kind: &'static str,
    /// What holds where it is absent: a value in backquotes, or words.
    pub(super) default: fn() -> String,
    pub(super) about: &'static str,
    /// What says the same: a flag, a variable.
    pub(super) instead: &'static str,
}

impl Key {
    /// A value for an example.
    pub(super) fn example(&self) -> String {
        let given = match self.name {
            "provider" => "\"openai-chat\"",
            "name" if self.about.contains("model") => "\"qwen3-coder\"",
            "base_url" => "\"http://127.0.0.1:8000/v1\"",
            "api_key_env" => "\"MY_SERVER_KEY\"",
            "script" => "\"turns.toml\"",
            "socket" => "\"/var/run/docker.sock\"",
            "runtime" => "\"runc\"",
            "image" => "\"debian:12\"",
            "workspace" => "true",
            "scope" => "\"assistant\"",
            "age_hours_max" => "720",
            "approval_hours_max" => "72",
            "command" if self.about.contains("server") => "[\"my-server\"]",
            "sandbox" => "\"fetch\"",
            "command" => "[\"notify-me\", \"--urgent\"]",
            "webhook" => "\"https://hooks.example/outrigger\"",
            "files" => "[\"rules/hosts.cedar\"]",
            "ceiling" => "[\"rules/ceiling.cedar\"]",
            "people" => "\"people.toml\"",
            "session" => "{ dollars = 2, soft_dollars = 1.5, cpu_seconds = 3600 }",
            "user" => "{ dollars = 100, soft_dollars = 80, per = \"month\" }",
            "organisation" => "{ dollars = 1000, tokens = 1000000000, per = \"month\" }",
            "prices" => "\"prices.toml\"",
            "url" => "\"https://mcp.example/mcp\"",
            "token_env" => "\"GITHUB_TOKEN\"",
            "headers_env" => "{ \"x-api-key\" = \"MCP_API_KEY\" }",
            "allow" => "[\"get_issue\", \"create_issue\"]",
            "read_only" if self.about.contains("server") => "[\"get_issue\"]",
            "read_only" => "[\"/opt/toolchain\"]",
            "idempotent" => "[\"create_issue\"]",
            _ => return (self.default)().trim_matches('`').to_owned(),
        };
        given.to_owned()
    }
}

/// A value in backquotes.
fn value(value: impl std::fmt::Display) -> String {
    format!("`{value}`")
}

fn nothing() -> String {
    "–".to_owned()
}

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "model",
        about: "which model is asked, and where",
        keys: &[
            Key {
                name: "provider",
                kind: "`\"anthropic\"`, `\"openai\"` or `\"openai-chat\"`",
                default: || {
                    "told by the name, for `claude…`, `gpt…` and `o1` and its like".to_owned()
                },
                about: "How the provider is spoken to: Anthropic Messages, OpenAI Responses, or OpenAI Chat Completions, which most other servers speak.",
                instead: "`--provider`, `OUTRIGGER_PROVIDER`",
            },
            Key {
                name: "name",
                kind: "string",
                default: nothing,
                about: "The model, as its provider names it.",
                instead: "`--model`, `OUTRIGGER_MODEL`",
            },
            Key {
                name: "base_url",
                kind: "string",
                default: || "the provider's own address".to_owned(),
                about: "Where the provider is. The key is sent there, if there is one; an address of your own needs none unless `api_key_env` names its variable. The address is dropped where a stronger file or flag names another `provider`.",
                instead: "`--base-url`, `OUTRIGGER_BASE_URL`",
            },
            Key {
                name: "api_key_env",
                kind: "string",
                default: || "`ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, by the provider".to_owned(),
                about: "The environment variable that holds the key. The key itself never stands in a file of ours.",
                instead: "",
            },
            Key {
                name: "context_tokens",
                kind: "whole number, 1 to 1000000000",
                default: || value(limits::CONTEXT_TOKENS_DEFAULT),
                about: "Tokens that the model's context holds; the conversation is summarised before it is full.",
                instead: "",
            },
            Key {
                name: "output_tokens_max",
                kind: "whole number, 1 to 1000000000",
                default: || value(limits::OUTPUT_TOKENS_DEFAULT),
                about: "Tokens of output that one call may ask for.",
                instead: "",
            },
            Key {
                name: "attempts_max",
                kind: "whole number, 1 to 6",
                default: || value(ATTEMPTS_MAX),
                about: "Attempts of one model call, the first one included. The wait between them doubles from half a second to eight; a provider's Retry-After is honoured, and one above two minutes ends the call, to be resumed later.",
                instead: "",
            },
            Key {
                name: "script",
                kind: "path",
                default: nothing,
                about: "A file of turns to play instead of asking a model, whatever the other keys say.",
                instead: "`--script`",
            },
        ],
    },
    Table {
        name: "limits",
        about: "where a session stops, in a way that it can be resumed from",
        keys: &[
            Key {
                name: "steps_max",
                kind: "whole number, 1 to 1000000",
                default: || value(limits::STEPS_DEFAULT),
                about: "Model calls and tool calls of one turn.",
                instead: "`--max-steps`",
            },
            Key {
                name: "tokens_max",
                kind: "whole number, 1 to 1000000000",
                default: || value(limits::TOKENS_DEFAULT),
                about: "Tokens of a session, input and output together.",
                instead: "`--max-tokens`",
            },
            Key {
                name: "turn_seconds_max",
                kind: "whole number, 1 to 2592000",
                default: || value(limits::TURN_MS_DEFAULT / 1_000),
                about: "Seconds of one turn by the clock on the wall. Waiting for a person is none of it.",
                instead: "",
            },
            Key {
                name: "approval_hours_max",
                kind: "whole number, 1 to 8760",
                default: || "it waits for ever".to_owned(),
                about: "Hours after which what nobody approved is denied. It costs nothing meanwhile: the sandbox is cold, and no process runs.",
                instead: "",
            },
        ],
    },
    Table {
        name: "sandbox",
        about: "the sandboxes of a session: what they may take and see, and how they are looked after",
        keys: &[
            Key {
                name: "name",
                kind: "1 to 24 characters of `a-z 0-9 _`",
                default: || value(format_args!("\"{}\"", limits::SANDBOX_NAME_DEFAULT)),
                about: "Its name in the session. The tools of every sandbox but the first end in it, for example `execute_fetch`.",
                instead: "",
            },
            Key {
                name: "backend",
                kind: "`\"native\"` or `\"docker\"`",
                default: || value(format_args!("\"{}\"", Sandbox::default().backend.as_str())),
                about: "Where it is made. A session stays in the backend that it was begun in.",
                instead: "",
            },
            Key {
                name: "template",
                kind: "string",
                default: || "`\"host-tools\"`".to_owned(),
                about: "The root filesystem that it begins with, by a name that its backend knows. `host-tools` is this machine's own programs, read-only. The native backend knows the images that `outrigger sandbox import` and `pull` made templates of; for the Docker backend it is an image of the engine's, and `host-tools` is the one of `[docker]`.",
                instead: "",
            },
            Key {
                name: "memory_mib_max",
                kind: "whole number, 16 to 16777216",
                default: || value(Spec::default().memory_bytes_max >> 20),
                about: "MiB of memory, of all its processes together. Not enforced where no cgroup can be written; `outrigger doctor` says so.",
                instead: "",
            },
            Key {
                name: "pids_max",
                kind: "whole number, 8 to 4194304",
                default: || value(Spec::default().pids_max),
                about: "Processes and threads at once.",
                instead: "",
            },
            Key {
                name: "cpus_max",
                kind: "number, 0.01 to 1024",
                default: || {
                    value(format_args!("{:?}", f64::from(Spec::default().cpu_millis_max) / 1_000.0))
                },
                about: "Cores. Not enforced where no cgroup can be written.",
                instead: "",
            },
            Key {
                name: "disk_mib_max",
                kind: "whole number, 1 to 1073741824",
                default: || value(Spec::default().disk_bytes_max >> 20),
                about: "MiB that it may write to its disk.",
                instead: "",
            },
            Key {
                name: "files_max",
                kind: "whole number, 64 to 4294967295",
                default: || value(Spec::default().disk_inodes_max),
                about: "Files, directories and links on its disk.",
                instead: "",
            },
            Key {
                name: "read_only",
                kind: "list of paths",
                default: || "`[]`".to_owned(),
                about: "Further directories of this machine that sandboxes see, read-only, for example a toolchain outside `/usr`. Whatever is in them can be read by the model, in every sandbox of the native backend.",
                instead: "",
            },
            Key {
                name: "isolation_min",
                kind: "`\"reduced\"`, `\"rootless_single\"`, `\"container\"`, `\"rootless_range\"`, `\"root_range\"` or `\"gvisor\"`",
                default: || value(format_args!("\"{}\"", Spec::default().isolation_min)),
                about: "The least isolation that is accepted; with less, nothing runs. A session keeps to what it was begun with. `outrigger doctor` says what this machine offers.",
                instead: "",
            },
            Key {
                name: "network",
                kind: "`\"none\"`",
                default: || "`\"none\"`".to_owned(),
                about: "Its network. No backend gives its sandboxes one, so anything else is refused.",
                instead: "",
            },
            Key {
                name: "workspace",
                kind: "boolean",
                default: || "`true` for the first, `false` for the others".to_owned(),
                about: "Whether the directory is copied into it. Changes are taken out of the first sandbox only.",
                instead: "",
            },
            Key {
                name: "scope",
                kind: "`\"thread\"` or `\"assistant\"`",
                default: || "`\"thread\"`".to_owned(),
                about: "Whose it is: the session's own, destroyed with it, or shared by all sessions of an assistant, as the first of them filled it.",
                instead: "",
            },
            Key {
                name: "assistant",
                kind: "1 to 24 characters of `a-z 0-9 _`",
                default: || value(format_args!("\"{}\"", limits::ASSISTANT_DEFAULT)),
                about: "The assistant whose sessions share it, if they do.",
                instead: "",
            },
            Key {
                name: "suspend",
                kind: "`\"cold\"`, `\"frozen\"` or `\"off\"`",
                default: || "`\"cold\"`".to_owned(),
                about: "What becomes of it while the session waits for a person: nothing of it runs, its processes stop, or it goes on. Less deeply where its backend can't. `off` never freezes it either.",
                instead: "",
            },
            Key {
                name: "freeze_after_ms",
                kind: "whole number, 1 to 86400000",
                default: || value(outrigger_engine::limits::FREEZE_AFTER_MS_DEFAULT),
                about: "Milliseconds that the model thinks before its processes are stopped. The next command finds them where they were.",
                instead: "",
            },
            Key {
                name: "snapshots",
                kind: "`\"turn\"` or `\"off\"`",
                default: || "`\"turn\"`".to_owned(),
                about: "When its disk is kept, to begin from if it is lost: when it was filled and after each turn that may have changed it, or never.",
                instead: "",
            },
            Key {
                name: "snapshots_kept",
                kind: "whole number, 1 to 256",
                default: || value(outrigger_engine::limits::KEPT_DEFAULT),
                about: "Snapshots that are kept at once; the oldest goes first.",
                instead: "",
            },
            Key {
                name: "idle_seconds_max",
                kind: "whole number, 1 to 31536000",
                default: || value(limits::SANDBOX_IDLE_MS_DEFAULT / 1_000),
                about: "Seconds without a request or a running command until it goes cold by itself, also when nobody is there.",
                instead: "",
            },
            Key {
                name: "age_hours_max",
                kind: "whole number, 1 to 87600",
                default: nothing,
                about: "Hours after which one that is shared is destroyed, whatever runs in it.",
                instead: "",
            },
            Key {
                name: "retention_hours",
                kind: "whole number, 1 to 87600",
                default: || value(limits::RETENTION_MS_DEFAULT / 3_600_000),
                about: "Hours for which sandboxes and snapshots are kept that nobody uses: those of sessions that answered, and those that no session names. The largest number of all tables holds.",
                instead: "",
            },
        ],
    },
    Table {
        name: "docker",
        about: "the engine of sandboxes whose `backend` is `docker`",
        keys: &[
            Key {
                name: "socket",
                kind: "path",
                default: || "that of `DOCKER_HOST`, else `/var/run/docker.sock`".to_owned(),
                about: "The engine's socket. No sandbox ever sees it.",
                instead: "",
            },
            Key {
                name: "runtime",
                kind: "string",
                default: || "the engine's own".to_owned(),
                about: "The runtime of all its sandboxes. `runsc` gives the isolation `gvisor`, where the engine has it.",
                instead: "",
            },
            Key {
                name: "image",
                kind: "string",
                default: nothing,
                about: "The image of sandboxes that name no other template. It must be there: images are never pulled by themselves.",
                instead: "",
            },
        ],
    },
    Table {
        name: "notify",
        about: "who is told that something waits for a person",
        keys: &[
            Key {
                name: "command",
                kind: "list of strings: a program and its arguments",
                default: || "`[]`".to_owned(),
                about: "Run when a session stops because something waits, with what `outrigger inbox --json` prints for it on standard input. It has 10 s. It may be told again of what still waits.",
                instead: "",
            },
            Key {
                name: "webhook",
                kind: "string, an address",
                default: nothing,
                about: "The same by a POST of that JSON. Redirections are not followed; an answer other than 2xx is warned of.",
                instead: "",
            },
        ],
    },
    Table {
        name: "workspace",
        about: "how much of a directory is copied into a sandbox",
        keys: &[
            Key {
                name: "mib_max",
                kind: "whole number, 1 to 16777216",
                default: || value(limits::WORKSPACE_BYTES_DEFAULT >> 20),
                about: "MiB of its files together.",
                instead: "",
            },
            Key {
                name: "files_max",
                kind: "whole number, 1 to 100000000",
                default: || value(limits::WORKSPACE_FILES_DEFAULT),
                about: "How many files.",
                instead: "",
            },
        ],
    },
    Table {
        name: "policy",
        about: "the rules that every step is judged by; `docs/how-to/write-policies.md` shows how they are written",
        keys: &[
            Key {
                name: "defaults",
                kind: "boolean",
                default: || "`true`".to_owned(),
                about: "Whether the built-in rules hold beside those of the files. A stronger file can't change what a weaker one says.",
                instead: "",
            },
            Key {
                name: "files",
                kind: "list of paths",
                default: || "`[]`".to_owned(),
                about: "Files of rules, in Cedar. Those of all configuration files hold together.",
                instead: "",
            },
            Key {
                name: "ceiling",
                kind: "list of paths",
                default: || "`[]`".to_owned(),
                about: "Files of rules for the organisation: what they do not permit, nobody can be permitted. Without one the organisation is judged by the other rules. Only one configuration file may say it.",
                instead: "",
            },
            Key {
                name: "people",
                kind: "path",
                default: || "nobody is in a group".to_owned(),
                about: "A file that says who is in which group. Only one configuration file may say it.",
                instead: "",
            },
        ],
    },
    Table {
        name: "budget",
        about: "what may be spent; `docs/how-to/budgets.md` shows how it is used",
        keys: &[
            Key {
                name: "session",
                kind: LEVEL,
                default: || "`limits.tokens_max` tokens".to_owned(),
                about: "Of one session. `tokens` comes before `limits.tokens_max`.",
                instead: "`--max-tokens`, `--max-dollars`",
            },
            Key {
                name: "user",
                kind: ACCOUNT,
                default: || "no limit".to_owned(),
                about: "Of all sessions of one user, for whom nothing was set with `outrigger budget set`. A stronger file can't change what a weaker one says.",
                instead: "`outrigger budget set user:NAME`",
            },
            Key {
                name: "organisation",
                kind: ACCOUNT,
                default: || "no limit".to_owned(),
                about: "Of all sessions, likewise.",
                instead: "`outrigger budget set org`",
            },
            Key {
                name: "prices",
                kind: "path",
                default: || "list prices of some providers".to_owned(),
                about: "A file that says what models cost. It comes before the built-in prices; a model at an address of your own has only prices from here.",
                instead: "",
            },
        ],
    },
    Table {
        name: "tools",
        about: "a server of the Model Context Protocol whose tools sessions have, by its name: 1 to 24 characters of a-z 0-9 and single _ within; any number of such tables ([outside tools](how-to/outside-tools.md))",
        keys: &[
            Key {
                name: "url",
                kind: "string",
                default: nothing,
                about: "Where the server is: `https`, or `http` on this very machine. A redirect is not followed.",
                instead: "",
            },
            Key {
                name: "command",
                kind: "list of strings",
                default: nothing,
                about: "A program that is the server, spoken to over its standard streams, instead of `url`. It runs in `sandbox`, for as long as one call.",
                instead: "",
            },
            Key {
                name: "sandbox",
                kind: "string",
                default: nothing,
                about: "The `[[sandbox]]` in which the program runs: one of its own, in which no tool of ours acts.",
                instead: "",
            },
            Key {
                name: "token_env",
                kind: "string",
                default: nothing,
                about: "The environment variable that holds a bearer token for it. The token itself never stands in a file of ours.",
                instead: "",
            },
            Key {
                name: "headers_env",
                kind: "table of strings",
                default: nothing,
                about: "Further headers of every request, each with the environment variable that holds its value.",
                instead: "",
            },
            Key {
                name: "allow",
                kind: "list of strings",
                default: || "all that the server has".to_owned(),
                about: "The tools that sessions may have, as the server names them.",
                instead: "",
            },
            Key {
                name: "read_only",
                kind: "list of strings",
                default: nothing,
                about: "Tools of the server that change nothing. After a crash they are called again, and the default rules let them be called without asking. What the server itself says of them is not believed.",
                instead: "",
            },
            Key {
                name: "idempotent",
                kind: "list of strings",
                default: nothing,
                about: "Tools that act, and do the same call with the same key once. After a crash they are called again with that key; any other that was under way is told to the model as unknown.",
                instead: "",
            },
            Key {
                name: "concurrent",
                kind: "`true` or `false`",
                default: || value(false),
                about: "Whether calls of this server may run beside each other and beside other tools that may.",
                instead: "",
            },
            Key {
                name: "timeout_seconds_max",
                kind: "whole number, 1 to 3600",
                default: || value(limits::OUTSIDE_MS_DEFAULT / 1_000),
                about: "From the start of a call to giving up.",
                instead: "",
            },
            Key {
                name: "result_bytes_max",
                kind: "whole number, 1000 to 1000000",
                default: || value(outrigger_tools::limits::OUTSIDE_BYTES_DEFAULT),
                about: "What the model sees of an answer; the middle of a longer one is left out.",
                instead: "",
            },
        ],
    },
];

const LEVEL: &str = "table: `steps`, `tokens`, `dollars`, `seconds`, `cpu_seconds`, and the same with `soft_` before it, from where on a person is asked";
const ACCOUNT: &str = "the same table, and `per`: `\"day\"` or `\"month\"`, in UTC";
