//! The configuration: files, then environment, then flags; the later wins.
//!
//! A repository's own files are never read as configuration: whoever wrote the
//! repository could otherwise send a key to an address of theirs.

mod agents;
mod budget;
mod directory;
pub(crate) mod mcp_json;
mod memory;
mod model;
mod oidc;
mod policy;
mod provider;
mod range;
mod retention;
mod sandbox;
mod schedule;
mod skills;
mod telemetry;
mod tools;

use outrigger_agent::{Approvals, Limit, WhenBusy};
use outrigger_engine::AccountDefaults;
use outrigger_store::entries::Quotas;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use self::agents::Agents;
use self::directory::line_of;
use self::memory::MemoryFile;
use self::model::Tokens;
use self::oidc::OidcFile;
use self::range::Whole;
use self::sandbox::SandboxFiles;
use self::telemetry::TelemetryFile;
use self::tools::{ServerFile, ServerName};
use crate::exit::{Failure, Kind, Outcome};
use crate::network::Words;
use crate::{flags, limits};

pub(crate) use self::agents::{AgentFile, AgentName};
pub(crate) use self::budget::{Budget, BudgetFile, Dollars, NANOS, limit};
pub(crate) use self::mcp_json::NamedServers;
pub(crate) use self::model::{ModelChoice, ModelFile, ProviderModel, SEALED_KEYS};
pub(crate) use self::oidc::Oidc;
pub(crate) use self::policy::{Policy, PolicyFile};
pub(crate) use self::provider::Provider;
pub(crate) use self::retention::{Retention, RetentionFile};
pub(crate) use self::sandbox::{BackendName, Least, Sandbox};
pub(crate) use self::skills::Skills;
pub(crate) use self::telemetry::Collector;
pub(crate) use self::tools::{Server, Way};

/// A configuration file of Outrigger. Every key may be absent.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "Outrigger"))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    pub(crate) model: ModelFile,
    pub(crate) limits: LimitsFile,
    pub(crate) sandbox: SandboxFiles,
    pub(crate) docker: DockerFile,
    pub(crate) gate: GateFile,
    pub(crate) notify: Notify,
    pub(crate) workspace: WorkspaceFile,
    pub(crate) policy: PolicyFile,
    pub(crate) oidc: OidcFile,
    pub(crate) telemetry: TelemetryFile,
    pub(crate) budget: BudgetFile,
    pub(crate) memory: MemoryFile,
    pub(crate) skills: Skills,
    pub(crate) retention: RetentionFile,
    /// Servers outside whose tools sessions have, by their names.
    #[cfg_attr(test, schemars(extend("propertyNames" =
        {"maxLength": limits::SERVER_NAME_CHARS_MAX, "examples": ["github"]})))]
    pub(crate) tools: BTreeMap<ServerName, ServerFile>,
    /// Agents that a session may start as subagents, by their names.
    #[cfg_attr(test, schemars(extend("propertyNames" =
        {"maxLength": limits::AGENT_NAME_CHARS_MAX, "examples": ["reviewer"]})))]
    pub(crate) agents: BTreeMap<AgentName, AgentFile>,
}

/// The engine of sandboxes whose `backend` is `docker`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DockerFile {
    /// The engine's socket; if absent, that of `DOCKER_HOST`, else `/var/run/docker.sock`. No
    /// sandbox ever sees it.
    #[cfg_attr(test, schemars(example = &"/var/run/docker.sock"))]
    pub(crate) socket: Option<PathBuf>,
    /// The runtime of all sandboxes; if absent, the engine's own. `runsc` gives the isolation
    /// `gvisor`, where the engine has it and it is new enough (`docs/how-to/use-docker.md`).
    #[cfg_attr(test, schemars(example = &"runc"))]
    pub(crate) runtime: Option<String>,
    /// The image of sandboxes that name no other template. It must be there: images are never
    /// pulled by themselves.
    #[cfg_attr(test, schemars(example = &"debian:12"))]
    pub(crate) image: Option<String>,
}

/// The process that has the secrets (`docs/how-to/secrets.md`).
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GateFile {
    /// A program and its arguments that print the master key, 32 bytes in base64, such as one that
    /// asks a keyring; run each time that the gate starts. If absent, the key is made and kept in
    /// `gate/master.key` of the data directory. Instead: `OUTRIGGER_MASTER_KEY`.
    #[cfg_attr(test, schemars(example = ["secret-tool", "lookup", "outrigger", "master"]))]
    pub(crate) master_key_command: Vec<String>,
}

/// Where a session stops, in a way that it can be resumed from.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsFile {
    /// Model calls and tool calls of one turn. Instead: `--max-steps`.
    #[cfg_attr(test, schemars(extend("default" = limits::STEPS_DEFAULT)))]
    pub(crate) steps_max: Option<Whole<1, 1_000_000>>,
    /// Tokens of a session, input and output together. Instead: `--max-tokens`.
    #[cfg_attr(test, schemars(extend("default" = limits::TOKENS_DEFAULT)))]
    pub(crate) tokens_max: Option<Tokens>,
    /// Seconds of one turn by the clock on the wall. Waiting for a person is none of it.
    #[cfg_attr(test, schemars(extend("default" = limits::TURN_MS_DEFAULT / 1_000)))]
    pub(crate) turn_seconds_max: Option<Whole<1, 2_592_000>>,
    /// Hours after which what nobody approved is denied; if absent, it waits for ever. It costs
    /// nothing meanwhile: the sandbox is cold, and no process runs.
    #[cfg_attr(test, schemars(example = 72))]
    pub(crate) approval_hours_max: Option<Whole<1, 8_760>>,
    /// Hours after which those whom `@escalates` of a rule names may approve what it asks about,
    /// too (`docs/how-to/write-policies.md`); if absent, it never escalates. Below
    /// `approval_hours_max`, if that is set.
    #[cfg_attr(test, schemars(example = 24))]
    pub(crate) approval_escalate_hours: Option<Whole<1, 8_760>>,
    /// How many agents deep subagents may start others (`docs/how-to/subagents.md`). With 0 there
    /// are none; with 1 those that the session starts start no others.
    #[cfg_attr(test, schemars(extend("default" = limits::SUBAGENTS_DEEP_DEFAULT)))]
    pub(crate) subagents_deep: Option<Whole<0, 4>>,
}

/// Who is told that something waits for a person.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Notify {
    /// A program and its arguments, run when a session stops because something waits, with what
    /// `outrigger inbox --json` prints for it on standard input, and without the environment
    /// variables that hold keys. Beside that `text` says it in words, and what waits on a server
    /// has the `url` where it is answered. It has 10 s. It may be told again of what still waits.
    #[cfg_attr(test, schemars(example = ["notify-me", "--urgent"]))]
    pub(crate) command: Vec<String>,
    /// An address to which the JSON that `command` is given is sent by a POST; a chat service that
    /// takes an object with a `text`, as incoming webhooks of Slack and Mattermost do, shows that.
    /// Redirections are not followed; an answer other than 2xx is warned of.
    #[cfg_attr(test, schemars(example = &"https://hooks.example/outrigger"))]
    pub(crate) webhook: Option<String>,
    /// The variables that hold keys, which are nobody's whom we start.
    #[serde(skip)]
    pub(crate) keys: BTreeSet<String>,
}

/// What of a directory comes into a sandbox.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WorkspaceFile {
    /// MiB of the directory's files together.
    #[cfg_attr(test, schemars(extend("default" = limits::WORKSPACE_BYTES_DEFAULT >> 20)))]
    pub(crate) mib_max: Option<Whole<1, 16_777_216>>,
    /// How many files the directory may have.
    #[cfg_attr(test, schemars(extend("default" = limits::WORKSPACE_FILES_DEFAULT)))]
    pub(crate) files_max: Option<Whole<1, 100_000_000>>,
    /// Whether folders of what a project depends on (`node_modules`, `.venv`, `target` and their
    /// like, beside the file that says so) come along by themselves. They are not copied each
    /// time, and what changes in them is not written back. With the native backend.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub(crate) dependencies: Option<bool>,
    /// Further folders that come along so, by their paths in the directory; one that is not
    /// there is passed over. Instead: `--include`.
    #[cfg_attr(test, schemars(example = ["testdata"], extend("default" = [])))]
    pub(crate) include: Option<Vec<PathBuf>>,
    /// MiB of one such folder; a larger one is left out, and that is said.
    #[cfg_attr(test, schemars(extend("default" = limits::DEPENDENCY_BYTES_DEFAULT >> 20)))]
    pub(crate) dependency_mib_max: Option<Whole<1, 16_777_216>>,
}

/// The configuration in force.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Decided only where a model is needed: a session is ended, or a demo shown,
    /// also where none can be chosen.
    pub(crate) model: ModelFile,
    pub(crate) steps_max: u64,
    pub(crate) tokens_max: u64,
    pub(crate) turn_ms_max: u64,
    pub(crate) approvals: Approvals,
    /// What becomes of what is said while a turn of a session runs.
    pub(crate) when_busy: WhenBusy,
    /// The sandboxes of a session. The first one is where its tools act; there is
    /// always one.
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) docker: DockerFile,
    pub(crate) gate: GateFile,
    pub(crate) notify: Notify,
    pub(crate) workspace_bytes_max: u64,
    pub(crate) workspace_files_max: u64,
    pub(crate) dependencies: bool,
    pub(crate) include: Vec<PathBuf>,
    pub(crate) dependency_bytes_max: u64,
    pub(crate) policy: Policy,
    /// Where people have accounts, if anywhere.
    pub(crate) oidc: Option<Oidc>,
    /// Where traces go.
    pub(crate) telemetry: TelemetryFile,
    pub(crate) budget: Budget,
    /// How much memory and skills may take.
    pub(crate) quotas: Quotas,
    pub(crate) skills: Skills,
    pub(crate) retention: Retention,
    /// Servers outside whose tools sessions have, by name.
    pub(crate) tools: BTreeMap<String, Server>,
    /// The agents that a session may start.
    pub(crate) agents: Agents,
    /// How many deep; with 0 none.
    pub(crate) subagents_deep: u64,
}

/// Reads a configuration file. Its errors name the file, the line and the allowed keys.
pub(crate) fn read(path: &Path) -> Outcome<File> {
    let unreadable = |error: std::io::Error| {
        let text = format!("the configuration {} can't be read: {error}", path.display());
        Failure::new(Kind::Usage, text)
    };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let hint = "docs/configuration.md lists every key with its type and default.";
    let mut file: File = parse(&text, path, hint)?;
    file.sandbox.place(&text, path);
    Ok(file)
}

/// Reads a text of TOML; the hint says where its keys are explained.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, path: &Path, hint: &str) -> Outcome<T> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let number = line_of(text, start);
        let line = text.lines().nth(number - 1).unwrap_or_default().trim();
        let line: String = line.chars().take(limits::CONFIG_LINE_CHARS_MAX).collect();
        let said = error.message().trim().replace('\n', ", ");
        Failure::new(Kind::Usage, format!("{}, line {number}, `{line}`: {said}", path.display()))
            .hint(hint)
    })
}

impl Config {
    /// Files alone, the weaker first.
    pub(crate) fn of_files(files: &[PathBuf]) -> Outcome<Self> {
        Self::load(files, &flags::Model::default(), flags::Limits::default())
    }

    /// Lets the first sandbox reach what was said, if anything was, and gives it.
    pub(crate) fn reach(&mut self, net: &flags::Net) -> Outcome<Option<Words>> {
        let words = net.words()?;
        if let (Some(words), Some(first)) = (&words, self.sandboxes.first_mut()) {
            first.network = net.over(&first.network, words);
        }
        Ok(words)
    }

    /// Files, the weaker first, then environment and flags.
    pub(crate) fn load(
        files: &[PathBuf],
        flags: &flags::Model,
        more: flags::Limits,
    ) -> Outcome<Self> {
        let mut config = Self::default();
        let mut defaults = None;
        for path in files {
            let mut file = read(path)?;
            config.policy.absorb(std::mem::take(&mut file.policy), path, &mut defaults)?;
            config.budget.absorb(std::mem::take(&mut file.budget), path)?;
            config.model.overlay(file.model.clone());
            config.absorb(file)?;
        }
        self::tools::check(&config.tools, &config.sandboxes)?;
        config.escalates_in_time()?;
        config.model.overlay(ModelFile::flags(flags));
        config.notify.keys = config.key_variables();
        config.steps_max = more.max_steps.unwrap_or(config.steps_max);
        config.tokens_max =
            more.max_tokens.or(config.budget.limit.tokens).unwrap_or(config.tokens_max);
        config.budget.limit = more.budget().or(config.budget.limit);
        Ok(config)
    }

    fn absorb(&mut self, file: File) -> Outcome {
        let File {
            model: _,
            limits,
            sandbox,
            docker,
            gate,
            workspace,
            notify,
            policy: _,
            oidc,
            telemetry,
            memory,
            skills,
            retention,
            tools,
            agents,
            budget: _,
        } = file;
        self.oidc = Oidc::of(oidc)?.or(self.oidc.take());
        self.telemetry.absorb(telemetry);
        self.skills.absorb(skills);
        memory.absorb_into(&mut self.quotas);
        self.retention.absorb(&retention);
        let set = |own: &mut u64, new: Option<u64>, unit: u64| {
            *own = new.map_or(*own, |new| new.saturating_mul(unit));
        };
        set(&mut self.steps_max, limits.steps_max.map(Whole::get), 1);
        set(&mut self.tokens_max, limits.tokens_max.map(Whole::get), 1);
        set(&mut self.turn_ms_max, limits.turn_seconds_max.map(Whole::get), 1_000);
        set(&mut self.subagents_deep, limits.subagents_deep.map(Whole::get), 1);
        self.agents.absorb(agents);
        let ms = |hours: Option<Whole<1, 8_760>>| hours.map(|hours| hours.get() * 3_600_000);
        let asking = &mut self.approvals;
        asking.expire_ms = ms(limits.approval_hours_max).or(asking.expire_ms);
        asking.escalate_ms = ms(limits.approval_escalate_hours).or(asking.escalate_ms);
        set(&mut self.workspace_bytes_max, workspace.mib_max.map(Whole::get), 1 << 20);
        set(&mut self.workspace_files_max, workspace.files_max.map(Whole::get), 1);
        set(&mut self.dependency_bytes_max, workspace.dependency_mib_max.map(Whole::get), 1 << 20);
        self.dependencies = workspace.dependencies.unwrap_or(self.dependencies);
        self.include = workspace.include.unwrap_or_else(|| std::mem::take(&mut self.include));
        if !gate.master_key_command.is_empty() {
            self.gate = gate;
        }
        if !notify.command.is_empty() {
            self.notify.command = notify.command;
        }
        self.notify.webhook = notify.webhook.or(self.notify.webhook.take());
        let own = &mut self.docker;
        own.socket = docker.socket.or(own.socket.take());
        own.runtime = docker.runtime.or(own.runtime.take());
        own.image = docker.image.or(own.image.take());
        self::tools::absorb(&mut self.tools, tools)?;
        self::sandbox::absorb(&mut self.sandboxes, sandbox)
    }

    /// What expires first never escalates.
    fn escalates_in_time(&self) -> Outcome {
        match (self.approvals.escalate_ms, self.approvals.expire_ms) {
            (Some(escalate), Some(expire)) if escalate >= expire => {
                let (escalate, expire) = (escalate / 3_600_000, expire / 3_600_000);
                Err(Failure::new(Kind::Usage, format!(
                    "limits.approval_escalate_hours is {escalate}, and must be below limits.approval_hours_max, which is {expire}"
                ))
                .hint("What nobody answered until the latter is denied, and asks nobody further."))
            }
            _ => Ok(()),
        }
    }

    /// Has the first sandbox stand on this, as `run --image` takes it.
    pub(crate) fn stand_on(&mut self, image: &str) {
        self.sandboxes.iter_mut().take(1).for_each(|first| first.stand_on(image.to_owned()));
    }

    /// Lets a session spend no more than this, of what is limited here.
    pub(crate) fn narrow(&mut self, limit: Limit) {
        self.tokens_max = limit.tokens.map_or(self.tokens_max, |it| it.min(self.tokens_max));
        self.budget.limit = self.budget.limit.and(limit);
    }

    /// Whether what sandboxes are shown of this machine is there.
    pub(crate) fn read_only_is_there(&self) -> Outcome {
        let native = self.sandboxes.iter().filter(|it| it.backend == BackendName::Native);
        native.flat_map(|sandbox| &sandbox.read_only).try_for_each(|directory| directory.check())
    }

    /// The variables in which keys are looked for.
    fn key_variables(&self) -> BTreeSet<String> {
        let usual = Provider::all().into_iter().filter_map(|it| it.key_env.map(str::to_owned));
        let of_server = |server: &Server| {
            server.token_env.iter().chain(server.headers_env.values()).cloned().collect()
        };
        let of_servers = self.tools.values().flat_map::<Vec<_>, _>(of_server);
        let own = self.oidc.iter().filter_map(|oidc| oidc.secret_env.clone());
        let own = own.chain(self.telemetry.headers_env.values().cloned());
        let sealed = own.chain([SEALED_KEYS.to_owned()]);
        usual.chain(self.model.api_key_env.clone()).chain(of_servers).chain(sealed).collect()
    }

    /// What holds for accounts of which nothing was set.
    pub(crate) fn usual(&self) -> AccountDefaults {
        let (organisation, user) = (self.budget.organisation.clone(), self.budget.user.clone());
        AccountDefaults { organisation, user }
    }

    /// The sandboxes in which the session's own tools act: in the others a server runs.
    pub(crate) fn working(&self) -> impl Iterator<Item = &Sandbox> {
        let taken = |name: &str| self.tools.values().any(|server| server.sandbox() == Some(name));
        self.sandboxes.iter().filter(move |sandbox| !taken(&sandbox.name))
    }

    /// How long what no session names is kept.
    pub(crate) fn retention_ms(&self) -> u64 {
        let all = self.sandboxes.iter().map(|sandbox| sandbox.retention_ms);
        all.max().unwrap_or(limits::RETENTION_MS_DEFAULT)
    }
}

impl Default for Config {
    fn default() -> Self {
        let mut config = Self {
            model: ModelFile::default(),
            steps_max: limits::STEPS_DEFAULT,
            tokens_max: limits::TOKENS_DEFAULT,
            turn_ms_max: limits::TURN_MS_DEFAULT,
            approvals: Approvals::default(),
            when_busy: WhenBusy::default(),
            sandboxes: vec![Sandbox::default()],
            docker: DockerFile::default(),
            gate: GateFile::default(),
            notify: Notify::default(),
            workspace_bytes_max: limits::WORKSPACE_BYTES_DEFAULT,
            workspace_files_max: limits::WORKSPACE_FILES_DEFAULT,
            dependencies: true,
            include: Vec::new(),
            dependency_bytes_max: limits::DEPENDENCY_BYTES_DEFAULT,
            policy: Policy::default(),
            oidc: None,
            telemetry: TelemetryFile::default(),
            budget: Budget::default(),
            quotas: self::memory::DEFAULT,
            skills: Skills::default(),
            retention: Retention::default(),
            tools: BTreeMap::new(),
            agents: Agents::default(),
            subagents_deep: limits::SUBAGENTS_DEEP_DEFAULT,
        };
        config.notify.keys = config.key_variables();
        config
    }
}
