//! The tools as data: names, words, arguments, and what each does to the world.
//!
//! Names and arguments are the ones that models know from training: `execute` and
//! the file tools of deepagents, with the argument names and the milliseconds of
//! Claude Code.

use outrigger_agent::{Concurrency, Deadline, Raw, Recovery, ServedPaths, ToolKind, ToolSpec};
use outrigger_sandbox::CreateSpec;

use crate::arguments::{self, Arguments, Field, Kind, Need};
use crate::limits;
use crate::namespace::MOUNTS;

/// Which tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolName {
    Execute,
    Ls,
    ReadFile,
    WriteFile,
    EditFile,
    Glob,
    Grep,
}

impl ToolName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::Ls => "ls",
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::Glob => "glob",
            Self::Grep => "grep",
        }
    }
}

/// A tool: its name, what the model is told, and its arguments.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: ToolName,
    description: &'static str,
    kind: ToolKind,
    fields: &'static [Field],
}

impl Tool {
    /// The tool that a model calls by that name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        TOOLS.iter().find(|tool| tool.name.as_str() == name)
    }

    /// The tool as a model is offered it for a further sandbox, with a name and words of its own.
    pub(crate) fn spec_of_further(&self, sandbox: &str) -> ToolSpec {
        let built_in = self.name.as_str();
        ToolSpec {
            name: format!("{built_in}_{sandbox}"),
            description: format!(
                "In the sandbox `{sandbox}`, whose disk is its own and whose tools all end in \
                 `_{sandbox}`: {}",
                self.description
            ),
            built_in: Some(built_in.to_owned()),
            ..self.spec(sandbox)
        }
    }

    /// The paths that it reaches without a sandbox where trees are served; none for a command.
    pub(crate) fn served(&self) -> Option<ServedPaths> {
        let arguments: &[&str] = match self.name {
            ToolName::Execute => return None,
            ToolName::ReadFile | ToolName::WriteFile | ToolName::EditFile => &["file_path"],
            ToolName::Ls | ToolName::Grep => &["path"],
            // An absolute pattern says where to look, whatever the path is.
            ToolName::Glob => &["pattern", "path"],
        };
        let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        Some(ServedPaths { arguments: owned(arguments), mounts: owned(&MOUNTS) })
    }

    /// The arguments of a call that begins in `directory`, or what the model is told of their faults.
    pub(crate) fn check(&self, text: &str, directory: Option<&str>) -> Result<Arguments, String> {
        arguments::check(self.name.as_str(), self.fields, text, directory)
    }

    /// What the turn machine and the model are told of it.
    pub(crate) fn spec(&self, sandbox: &str) -> ToolSpec {
        let (concurrency, recovery) = match self.kind {
            ToolKind::ReadFiles => (Concurrency::Shared, Recovery::Repeat),
            ToolKind::Execute | ToolKind::WriteFiles | ToolKind::Outside | ToolKind::Subagent => {
                (Concurrency::Exclusive, Recovery::Reattach)
            }
        };
        let schema = arguments::schema(self.fields).to_string();
        ToolSpec {
            name: self.name.as_str().to_owned(),
            description: self.description.to_owned(),
            schema: Raw::new(schema).expect("a JSON value is written as JSON"),
            kind: self.kind,
            concurrency,
            recovery,
            sandbox: Some(sandbox.to_owned()),
            served: None,
            built_in: None,
            directory: None,
            deadline: (self.kind == ToolKind::Execute).then(|| Deadline {
                argument: "timeout".to_owned(),
                usual_ms: limits::TIMEOUT_MS_DEFAULT,
                most_ms: limits::TIMEOUT_MS_MAX,
                cpu_millis: CreateSpec::default().cpu_millis_max,
            }),
            outside: None,
        }
    }
}

/// What a model is told that called a tool that there is not.
pub(crate) fn unknown(name: &str) -> String {
    let all: Vec<_> = TOOLS.iter().map(|tool| tool.name.as_str()).collect();
    let name: String = name.chars().take(80).collect();
    format!("There is no tool `{name}`. The tools are: {}.", all.join(", "))
}

const TEXT: Kind = Kind::Text { empty: false };
const ANY_TEXT: Kind = Kind::Text { empty: true };

const FILE_PATH: Field = Field {
    name: "file_path",
    kind: Kind::Path,
    need: Need::Required,
    doc: "The file: absolute, or relative to /workspace.",
};
const WHERE: Field = Field {
    name: "path",
    kind: Kind::Path,
    need: Need::Optional,
    doc: "The directory to look in: absolute, or relative to /workspace. Default: /workspace.",
};

/// Every tool, in the order in which models are told of them.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        name: ToolName::Execute,
        description: "Runs a command line with bash (sh where there is none) in the sandbox and \
                      gives its output, stdout and stderr together, and its exit code. It starts \
                      in /workspace, as a user that is not root, without network access; each call \
                      is a new shell, so `cd` and variables do not stay. At the timeout the \
                      command is killed with all its processes. Long output is cut in the middle; \
                      the cut names a file in the sandbox that has all of it. To read, write, edit \
                      or search files, prefer the other tools.",
        kind: ToolKind::Execute,
        fields: &[
            Field {
                name: "command",
                kind: TEXT,
                need: Need::Required,
                doc: "The command line to run.",
            },
            Field {
                name: "timeout",
                kind: Kind::Integer { min: 1, max: limits::TIMEOUT_MS_MAX },
                need: Need::Optional,
                doc: "Milliseconds after which it is killed. Default: 120000; at most 600000.",
            },
            Field {
                name: "description",
                kind: ANY_TEXT,
                need: Need::Optional,
                doc: "What the command does, in five to ten words, for the people who watch.",
            },
        ],
    },
    Tool {
        name: ToolName::Ls,
        description: "Lists a directory, hidden names included. Directories end in `/`, links in \
                      `@`, executable files in `*`; files have their size in bytes.",
        kind: ToolKind::ReadFiles,
        fields: &[WHERE],
    },
    Tool {
        name: ToolName::ReadFile,
        description: "Reads a text file. Each line comes with its number and a tab before it, \
                      which are no part of the file. Gives up to 2000 lines from `offset` on, and \
                      says how to read on when there are more. Lines longer than 2000 characters \
                      are cut.",
        kind: ToolKind::ReadFiles,
        fields: &[
            FILE_PATH,
            Field {
                name: "offset",
                kind: Kind::Integer { min: 0, max: u64::MAX },
                need: Need::Optional,
                doc: "Number of the first line, from 1. Default: 1.",
            },
            Field {
                name: "limit",
                kind: Kind::Integer { min: 1, max: limits::READ_LINES_MAX },
                need: Need::Optional,
                doc: "How many lines at most. Default: 2000.",
            },
        ],
    },
    Tool {
        name: ToolName::WriteFile,
        description: "Writes a file whole: makes it, with its missing parent directories, or \
                      replaces all that was in it. To change a part of a file, use edit_file.",
        kind: ToolKind::WriteFiles,
        fields: &[
            FILE_PATH,
            Field {
                name: "content",
                kind: ANY_TEXT,
                need: Need::Required,
                doc: "All that the file shall hold.",
            },
        ],
    },
    Tool {
        name: ToolName::EditFile,
        description: "Replaces text in a file. `old_string` must be in the file exactly as given, \
                      white space included and without the line numbers of read_file, and only \
                      once, unless `replace_all` is set: add lines around it until it is unique.",
        kind: ToolKind::WriteFiles,
        fields: &[
            FILE_PATH,
            Field {
                name: "old_string",
                kind: TEXT,
                need: Need::Required,
                doc: "The text to replace.",
            },
            Field {
                name: "new_string",
                kind: ANY_TEXT,
                need: Need::Required,
                doc: "What takes its place.",
            },
            Field {
                name: "replace_all",
                kind: Kind::Flag,
                need: Need::Optional,
                doc: "Replaces every place where it is. Default: false.",
            },
        ],
    },
    Tool {
        name: ToolName::Glob,
        description: "Finds files by name: `*` and `?` within one name, `**` over any number of \
                      directories, `[..]`, `{a,b}`. A pattern without `/` matches at any depth. \
                      Hidden files are found too; .git, node_modules, .venv and __pycache__ are left \
                      out unless they are named.",
        kind: ToolKind::ReadFiles,
        fields: &[
            Field {
                name: "pattern",
                kind: TEXT,
                need: Need::Required,
                doc: "The pattern, for example `**/*.py` or `src/**/test_*.rs`.",
            },
            WHERE,
        ],
    },
    Tool {
        name: ToolName::Grep,
        description: "Searches the contents of files line by line and gives matches as \
                      `path:line:text`. The pattern is a regular expression without look-around \
                      and back-references, unless `literal` is set. Binary files are passed over; \
                      .git, node_modules, .venv and __pycache__ are left out unless they are \
                      named.",
        kind: ToolKind::ReadFiles,
        fields: &[
            Field { name: "pattern", kind: TEXT, need: Need::Required, doc: "What to look for." },
            Field {
                name: "path",
                kind: Kind::Path,
                need: Need::Optional,
                doc: "The directory or file to search. Default: /workspace.",
            },
            Field {
                name: "glob",
                kind: TEXT,
                need: Need::Optional,
                doc: "Only files that match this pattern, for example `*.py`.",
            },
            Field {
                name: "case_insensitive",
                kind: Kind::Flag,
                need: Need::Optional,
                doc: "Upper and lower case are the same. Default: false.",
            },
            Field {
                name: "literal",
                kind: Kind::Flag,
                need: Need::Optional,
                doc: "The pattern is plain text. Default: false.",
            },
        ],
    },
];
