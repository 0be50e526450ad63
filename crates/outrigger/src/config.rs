//! The configuration: files, then environment, then flags; the later wins.
//!
//! A repository's own files are never read as configuration: whoever wrote the
//! repository could otherwise send a key to an address of theirs.

use clap::ValueEnum;
use outrigger_sandbox::Isolation;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

use crate::exit::{Failure, Kind, Outcome};
use crate::{cli, limits};

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Openai,
    /// OpenAI Chat Completions, spoken by most other servers.
    OpenaiChat,
}

/// A configuration file. Every key may be absent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    pub(crate) model: ModelFile,
    pub(crate) limits: LimitsFile,
    pub(crate) sandbox: SandboxFile,
    pub(crate) workspace: WorkspaceFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelFile {
    /// `anthropic`, `openai` or `openai-chat`.
    pub(crate) provider: Option<Provider>,
    /// The model, as its provider names it.
    pub(crate) name: Option<String>,
    /// Where the provider is, instead of its own address.
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key.
    pub(crate) api_key_env: Option<String>,
    /// Tokens that the model's context holds.
    pub(crate) context_tokens: Option<u64>,
    /// Tokens of output that one call may ask for.
    pub(crate) output_tokens_max: Option<u64>,
    /// A file of turns to play instead of asking a model.
    pub(crate) script: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsFile {
    /// Model calls and tool calls of one turn.
    pub(crate) steps_max: Option<u64>,
    /// Tokens of a session.
    pub(crate) tokens_max: Option<u64>,
    /// Wall time of one turn.
    pub(crate) turn_seconds_max: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SandboxFile {
    /// Memory of a sandbox, in MiB.
    pub(crate) memory_mib_max: Option<u64>,
    /// Processes of a sandbox.
    pub(crate) pids_max: Option<u32>,
    /// Cores of a sandbox.
    pub(crate) cpus_max: Option<f64>,
    /// Directories of this machine that sandboxes see, read-only.
    pub(crate) read_only: Option<Vec<PathBuf>>,
    /// The least isolation that is accepted.
    pub(crate) isolation_min: Option<Isolation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WorkspaceFile {
    /// Largest directory that is copied, in MiB.
    pub(crate) mib_max: Option<u64>,
    /// Files of a directory that is copied.
    pub(crate) files_max: Option<u64>,
}

/// The configuration in force.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) model: ModelChoice,
    pub(crate) steps_max: u64,
    pub(crate) tokens_max: u64,
    pub(crate) turn_ms_max: u64,
    pub(crate) sandbox: outrigger_sandbox::Spec,
    pub(crate) read_only: Vec<PathBuf>,
    pub(crate) workspace_bytes_max: u64,
    pub(crate) workspace_files_max: u64,
}

/// Which model is asked.
#[derive(Debug, Clone)]
pub(crate) enum ModelChoice {
    /// None was chosen.
    Unset,
    /// A file of turns.
    Script(PathBuf),
    /// A script that is built in.
    Bundled(&'static str),
    /// A provider's model.
    Provider {
        provider: Provider,
        name: String,
        base_url: Option<String>,
        api_key_env: Option<String>,
        context_tokens: Option<u64>,
        output_tokens_max: Option<u64>,
    },
}

/// Reads a configuration file. Its errors name the file, the line and the allowed keys.
pub(crate) fn read(path: &Path) -> Outcome<File> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Kind::Usage, format!("{}: {error}", path.display()))
    };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        Failure::new(Kind::Usage, format!("{}, line {line}: {error}", path.display()))
            .hint("docs/configuration.md lists every key with its default.")
    })
}

impl Config {
    /// Files, the weaker first, then flags and environment.
    pub(crate) fn load(files: &[PathBuf]) -> Outcome<Self> {
        let mut config = Self::default();
        for path in files {
            config.absorb(read(path)?)?;
        }
        Ok(config)
    }

    fn absorb(&mut self, file: File) -> Outcome {
        let File { model, limits, sandbox, workspace } = file;
        self.choose(model)?;
        self.steps_max = limits.steps_max.unwrap_or(self.steps_max);
        self.tokens_max = limits.tokens_max.unwrap_or(self.tokens_max);
        self.turn_ms_max =
            limits.turn_seconds_max.map_or(self.turn_ms_max, |seconds| seconds.saturating_mul(1_000));
        let spec = &mut self.sandbox;
        spec.memory_bytes_max =
            sandbox.memory_mib_max.map_or(spec.memory_bytes_max, |mib| mib.saturating_mul(1 << 20));
        spec.pids_max = sandbox.pids_max.unwrap_or(spec.pids_max);
        if let Some(cpus) = sandbox.cpus_max {
            if !(0.01..=1_024.0).contains(&cpus) {
                let text = format!("sandbox.cpus_max is {cpus}; it must be from 0.01 to 1024");
                return Err(Failure::new(Kind::Usage, text));
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: 10 to 1,024,000")]
            let millis = (cpus * 1_000.0) as u32;
            spec.cpu_millis_max = millis;
        }
        spec.isolation_min = sandbox.isolation_min.unwrap_or(spec.isolation_min);
        self.read_only = sandbox.read_only.unwrap_or_else(|| std::mem::take(&mut self.read_only));
        self.workspace_bytes_max =
            workspace.mib_max.map_or(self.workspace_bytes_max, |mib| mib.saturating_mul(1 << 20));
        self.workspace_files_max = workspace.files_max.unwrap_or(self.workspace_files_max);
        Ok(())
    }

    fn choose(&mut self, file: ModelFile) -> Outcome {
        if let Some(script) = file.script {
            self.model = ModelChoice::Script(script);
            return Ok(());
        }
        let Some(name) = file.name else { return Ok(()) };
        let provider = match file.provider {
            Some(provider) => provider,
            None => guess(&name)?,
        };
        self.model = ModelChoice::Provider {
            provider,
            name,
            base_url: file.base_url,
            api_key_env: file.api_key_env,
            context_tokens: file.context_tokens,
            output_tokens_max: file.output_tokens_max,
        };
        Ok(())
    }

    /// Takes in what the command line or the environment say of the model.
    pub(crate) fn flags(&mut self, model: &cli::Model, limits: cli::Limits) -> Outcome {
        self.steps_max = limits.max_steps.unwrap_or(self.steps_max);
        self.tokens_max = limits.max_tokens.unwrap_or(self.tokens_max);
        if let Some(script) = &model.script {
            self.model = ModelChoice::Script(script.clone());
        }
        if let Some(name) = &model.model {
            let file = ModelFile {
                name: Some(name.clone()),
                provider: model.provider,
                base_url: model.base_url.clone(),
                ..ModelFile::default()
            };
            return self.choose(file);
        }
        if let ModelChoice::Provider { provider, base_url, .. } = &mut self.model {
            *provider = model.provider.unwrap_or(*provider);
            *base_url = model.base_url.clone().or_else(|| base_url.take());
        }
        Ok(())
    }
}

/// The provider, where the model's name says it.
fn guess(name: &str) -> Outcome<Provider> {
    if name.starts_with("claude") {
        return Ok(Provider::Anthropic);
    }
    if name.starts_with("gpt") || name.starts_with('o') && name[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(Provider::Openai);
    }
    Err(Failure::new(Kind::Usage, format!("the provider of the model `{name}` is not known"))
        .hint("Say it with --provider anthropic, openai or openai-chat, and --base-url."))
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: ModelChoice::Unset,
            steps_max: limits::STEPS_DEFAULT,
            tokens_max: limits::TOKENS_DEFAULT,
            turn_ms_max: limits::TURN_MS_DEFAULT,
            sandbox: outrigger_sandbox::Spec::default(),
            read_only: Vec::new(),
            workspace_bytes_max: limits::WORKSPACE_BYTES_DEFAULT,
            workspace_files_max: limits::WORKSPACE_FILES_DEFAULT,
        }
    }
}

impl Provider {
    /// Its name in the configuration and in sessions.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::OpenaiChat => "openai-chat",
        }
    }

    /// The provider of a name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Anthropic, Self::Openai, Self::OpenaiChat].into_iter().find(|it| it.as_str() == name)
    }
}
