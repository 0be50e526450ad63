//! Flags that several commands take.

use clap::{Args, ValueEnum, value_parser};
use outrigger_agent::Limit;
use std::path::PathBuf;

use crate::config::{Dollars, Provider, limit};
use crate::exit::{Failure, Kind, Outcome};
use crate::network::Words;

/// What a program can be told in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Json {
    /// One object at the end.
    Object,
    /// One event a line as it happens, then the object.
    Events,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON on standard output: one object at the end, or each event as well.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "object", value_name = "FORM", help_heading = "Output")]
    pub(crate) json: Option<Json>,
    /// Show neither steps nor progress, only the result.
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// What is written back without a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcceptPolicy {
    /// What programs run or obey by themselves is asked about on a terminal, and is
    /// refused elsewhere.
    Usual,
    /// Those are accepted. What git would take for a repository, and links that lead out, are
    /// refused all the same.
    All,
    /// Nothing is written back, whatever was said before.
    No,
}

#[derive(Debug, Default, Clone, Copy, Args)]
pub(crate) struct Apply {
    /// Write the changes back at the end, unless the files changed meanwhile. The session
    /// remembers it.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "usual", value_name = "WHICH")]
    pub(crate) apply: Option<AcceptPolicy>,
    /// Make what was committed in the sandbox the branch `outrigger/SESSION` of the directory's
    /// repository at the end; files, index and HEAD stay as they are. The session remembers it.
    #[arg(long, conflicts_with = "apply")]
    pub(crate) branch: bool,
}

#[derive(Debug, Default, Clone, Args)]
pub(crate) struct Pictures {
    /// Show the model this picture with it: a PNG, JPEG, GIF or WebP. May be given several
    /// times.
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Vec<PathBuf>,
}

#[derive(Debug, Default, Clone, Args)]
pub(crate) struct Net {
    /// Let commands in the sandbox reach `packages` (the registries of pip, npm, cargo, Go,
    /// Maven, RubyGems and apt, for reading), `git` (the remotes of the repository, for
    /// fetching), or a host: `example.com`, `example.com:8443`, `*.example.com`,
    /// `https://example.com/path*`; or `tcp:db.example.com:5432`, which is passed on unread.
    /// Several with commas, or given several times; `none` for nothing. A session that goes on
    /// keeps what it has beside it.
    #[arg(long, value_name = "WHAT", help_heading = "Network")]
    net: Vec<String>,
    /// Let commands use a secret of `outrigger secrets`, where it is for: they have a placeholder
    /// in the variable of its name. May be given several times.
    #[arg(long, value_name = "NAME", help_heading = "Network")]
    secret: Vec<String>,
}

impl Net {
    /// Words of it over those of the configuration: secrets are added to them.
    pub(crate) fn over(&self, configured: &Words, words: &Words) -> Words {
        if self.net.is_empty() { configured.with(words) } else { words.clone() }
    }

    /// What was said, if anything was.
    pub(crate) fn words(&self) -> Outcome<Option<Words>> {
        let secrets = self.secret.iter().map(|name| format!("secret:{name}"));
        let all: Vec<String> = self.net.iter().cloned().chain(secrets).collect();
        let words = (!all.is_empty()).then(|| Words::parse(&all)).transpose();
        words.map_err(|why| Failure::new(Kind::Usage, format!("--net or --secret: {why}")))
    }
}

#[derive(Debug, Default, Clone, Copy, Args)]
pub(crate) struct Limits {
    /// Stop the turn after so many model calls and tool calls.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_steps: Option<u64>,
    /// Stop before the session takes more tokens, input and output together.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_tokens: Option<u64>,
    /// Stop before the session costs more than so many US dollars.
    #[arg(long, value_name = "AMOUNT", value_parser = Dollars::parse, help_heading = "Limits")]
    pub(crate) max_dollars: Option<Dollars>,
    /// Stop before the session's model calls and tool calls take more seconds.
    #[arg(long, value_name = "S", value_parser = value_parser!(u64).range(1..=1 << 50), help_heading = "Limits")]
    pub(crate) max_seconds: Option<u64>,
    /// Stop before its commands take more seconds of processor time.
    #[arg(long, value_name = "S", value_parser = value_parser!(u64).range(1..=1 << 50), help_heading = "Limits")]
    pub(crate) max_cpu_seconds: Option<u64>,
    /// Stop before it sends more bytes to tools outside.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_egress_bytes: Option<u64>,
}

impl Limits {
    /// What they say of the session's budget; `max_steps` is of a turn.
    pub(crate) fn budget(self) -> Limit {
        let Self { max_tokens, max_seconds, max_cpu_seconds, max_egress_bytes, .. } = self;
        let amounts = [None, max_tokens, max_seconds, max_cpu_seconds, max_egress_bytes];
        limit(amounts, self.max_dollars)
    }
}

#[derive(Debug, Default, Clone, Args)]
pub(crate) struct Model {
    /// The model, as its provider names it.
    #[arg(
        long,
        value_name = "NAME",
        env = "OUTRIGGER_MODEL",
        hide_env_values = true,
        help_heading = "Model"
    )]
    pub(crate) model: Option<String>,
    /// Whose model it is; told by its name, or by the key that is set, if left out.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = Provider::parser(),
        env = "OUTRIGGER_PROVIDER",
        hide_env_values = true,
        help_heading = "Model"
    )]
    pub(crate) provider: Option<Provider>,
    /// Where the provider is, instead of its own address.
    #[arg(
        long,
        value_name = "URL",
        env = "OUTRIGGER_BASE_URL",
        hide_env_values = true,
        help_heading = "Model"
    )]
    pub(crate) base_url: Option<String>,
    /// A file of turns to play instead of asking a model, whatever else names one.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) script: Option<PathBuf>,
}

/// Another model for a session that has one. The environment says nothing of it: a session
/// keeps its model until somebody says otherwise.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct NewModel {
    /// Go on with this model from now on.
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// Whose model it is, if not the one's before.
    #[arg(long, value_name = "NAME", value_parser = Provider::parser(), help_heading = "Model")]
    pub(crate) provider: Option<Provider>,
    /// Where the provider is, instead of its own address.
    #[arg(long, value_name = "URL", help_heading = "Model")]
    pub(crate) base_url: Option<String>,
}

impl NewModel {
    /// Whether another model is meant at all.
    pub(crate) fn is_none(&self) -> bool {
        self.model.is_none() && self.provider.is_none() && self.base_url.is_none()
    }
}
