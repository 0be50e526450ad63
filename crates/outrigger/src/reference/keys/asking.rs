//! The model, the limits of a session, its rules and its budget.

use super::{Key, Table, nothing, value};
use crate::limits;
use outrigger_model::limits::ATTEMPTS_MAX;

const LEVEL: &str = "table: `steps`, `tokens`, `dollars`, `seconds`, `cpu_seconds`, `egress_bytes`, and the same with `soft_` before it, from where on a person is asked";

const ACCOUNT: &str = "the same table, and `per`: `\"day\"` or `\"month\"`, in UTC";

pub(super) const MODEL: Table = Table {
    name: "model",
    header: "model",
    about: "which model is asked, and where",
    keys: &[
        Key {
            name: "provider",
            kind: "`\"anthropic\"`, `\"openai\"` or `\"openai-chat\"`",
            default: || "told by the name, for `claude…`, `gpt…` and `o1` and its like".to_owned(),
            about: "How the provider is spoken to: Anthropic Messages, OpenAI Responses, or OpenAI Chat Completions, which most other servers speak.",
            instead: "`--provider`, `OUTRIGGER_PROVIDER`",
            example: "\"openai-chat\"",
        },
        Key {
            name: "name",
            kind: "string",
            default: nothing,
            about: "The model, as its provider names it.",
            instead: "`--model`, `OUTRIGGER_MODEL`",
            example: "\"qwen3-coder\"",
        },
        Key {
            name: "base_url",
            kind: "string",
            default: || "the provider's own address".to_owned(),
            about: "Where the provider is. The key is sent there, if there is one; an address of your own needs none unless `api_key_env` names its variable. The address is dropped where a stronger file or flag names another `provider`.",
            instead: "`--base-url`, `OUTRIGGER_BASE_URL`",
            example: "\"http://127.0.0.1:8000/v1\"",
        },
        Key {
            name: "api_key_env",
            kind: "string",
            default: || "`ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, by the provider".to_owned(),
            about: "The environment variable that holds the key. The key itself never stands in a file of ours.",
            instead: "",
            example: "\"MY_SERVER_KEY\"",
        },
        Key {
            name: "http_hosts",
            kind: "list of strings",
            default: || "`[]`".to_owned(),
            about: "Hosts to which the key is sent over plain http, where whoever stands between reads it. To this machine it always is; to any other host only over https.",
            instead: "",
            example: "[\"10.0.0.7\"]",
        },
        Key {
            name: "context_tokens",
            kind: "whole number, 1 to 1000000000",
            default: || value(limits::CONTEXT_TOKENS_DEFAULT),
            about: "Tokens that the model's context holds; the conversation is summarised before it is full.",
            instead: "",
            example: "",
        },
        Key {
            name: "output_tokens_max",
            kind: "whole number, 1 to 1000000000",
            default: || value(limits::OUTPUT_TOKENS_DEFAULT),
            about: "Tokens of output that one call may ask for.",
            instead: "",
            example: "",
        },
        Key {
            name: "attempts_max",
            kind: "whole number, 1 to 6",
            default: || value(ATTEMPTS_MAX),
            about: "Attempts of one model call, the first one included. The wait between them doubles from half a second to eight; a provider's Retry-After is honoured, and one above two minutes ends the call, to be resumed later.",
            instead: "",
            example: "",
        },
        Key {
            name: "script",
            kind: "path",
            default: nothing,
            about: "A file of turns to play instead of asking a model, whatever the other keys say.",
            instead: "`--script`",
            example: "\"turns.toml\"",
        },
    ],
};

pub(super) const LIMITS: Table = Table {
    name: "limits",
    header: "limits",
    about: "where a session stops, in a way that it can be resumed from",
    keys: &[
        Key {
            name: "steps_max",
            kind: "whole number, 1 to 1000000",
            default: || value(limits::STEPS_DEFAULT),
            about: "Model calls and tool calls of one turn.",
            instead: "`--max-steps`",
            example: "",
        },
        Key {
            name: "tokens_max",
            kind: "whole number, 1 to 1000000000",
            default: || value(limits::TOKENS_DEFAULT),
            about: "Tokens of a session, input and output together.",
            instead: "`--max-tokens`",
            example: "",
        },
        Key {
            name: "turn_seconds_max",
            kind: "whole number, 1 to 2592000",
            default: || value(limits::TURN_MS_DEFAULT / 1_000),
            about: "Seconds of one turn by the clock on the wall. Waiting for a person is none of it.",
            instead: "",
            example: "",
        },
        Key {
            name: "approval_hours_max",
            kind: "whole number, 1 to 8760",
            default: || "it waits for ever".to_owned(),
            about: "Hours after which what nobody approved is denied. It costs nothing meanwhile: the sandbox is cold, and no process runs.",
            instead: "",
            example: "72",
        },
        Key {
            name: "approval_escalate_hours",
            kind: "whole number, 1 to 8760",
            default: || "it never escalates".to_owned(),
            about: "Hours after which those whom `@escalates` of a rule names may approve what it asks about, too ([rules](how-to/write-policies.md)). Below `approval_hours_max`, if that is set.",
            instead: "",
            example: "24",
        },
        Key {
            name: "subagents_deep",
            kind: "whole number, 0 to 4",
            default: || value(limits::SUBAGENTS_DEEP_DEFAULT),
            about: "How many agents deep subagents may start others ([subagents](how-to/subagents.md)). With 0 there are none; with 1 those that the session starts start no others.",
            instead: "",
            example: "",
        },
    ],
};

pub(super) const POLICY: Table = Table {
    name: "policy",
    header: "policy",
    about: "the rules that every step is judged by; `docs/how-to/write-policies.md` shows how they are written",
    keys: &[
        Key {
            name: "defaults",
            kind: "boolean",
            default: || "`true`".to_owned(),
            about: "Whether the built-in rules hold beside those of the files. A stronger file can't change what a weaker one says.",
            instead: "",
            example: "",
        },
        Key {
            name: "files",
            kind: "list of paths",
            default: || "`[]`".to_owned(),
            about: "Files of rules, in Cedar. Those of all configuration files hold together.",
            instead: "",
            example: "[\"rules/hosts.cedar\"]",
        },
        Key {
            name: "ceiling",
            kind: "list of paths",
            default: || "`[]`".to_owned(),
            about: "Files of rules for the organisation: what they do not permit, nobody can be permitted. Without one the organisation is judged by the other rules. Only one configuration file may say it.",
            instead: "",
            example: "[\"rules/ceiling.cedar\"]",
        },
        Key {
            name: "people",
            kind: "path",
            default: || "nobody is in a group".to_owned(),
            about: "A file that says who is in which group. Only one configuration file may say it.",
            instead: "",
            example: "\"people.toml\"",
        },
    ],
};

pub(super) const BUDGET: Table = Table {
    name: "budget",
    header: "budget",
    about: "what may be spent; `docs/how-to/budgets.md` shows how it is used",
    keys: &[
        Key {
            name: "session",
            kind: LEVEL,
            default: || "`limits.tokens_max` tokens".to_owned(),
            about: "Of one session. `tokens` comes before `limits.tokens_max`.",
            instead: "`--max-tokens`, `--max-dollars`",
            example: "{ dollars = 2, soft_dollars = 1.5, cpu_seconds = 3600 }",
        },
        Key {
            name: "user",
            kind: ACCOUNT,
            default: || "no limit".to_owned(),
            about: "Of all sessions of one user, for whom nothing was set with `outrigger budget set`. A stronger file can't change what a weaker one says.",
            instead: "`outrigger budget set user:NAME`",
            example: "{ dollars = 100, soft_dollars = 80, per = \"month\" }",
        },
        Key {
            name: "organisation",
            kind: ACCOUNT,
            default: || "no limit".to_owned(),
            about: "Of all sessions, likewise.",
            instead: "`outrigger budget set org`",
            example: "{ dollars = 1000, tokens = 1000000000, per = \"month\" }",
        },
        Key {
            name: "prices",
            kind: "path",
            default: || "list prices of some providers".to_owned(),
            about: "A file that says what models cost. It comes before the built-in prices; a model at an address of your own has only prices from here.",
            instead: "",
            example: "\"prices.toml\"",
        },
    ],
};
