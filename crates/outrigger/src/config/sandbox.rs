//! The sandboxes of a session: what the layers of the configuration say of each, put
//! together.

use outrigger_agent::{SandboxScope, SandboxSpec};
use outrigger_engine::{NO_NETWORK, RetentionPolicy, SnapshotPolicy};
use outrigger_sandbox::{CreateSpec, DiskOrigin, Isolation, Suspend};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::directory::HostDirectory;
use super::range::{Cores, Whole};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::network::Words;

/// `[sandbox]`, or any number of `[[sandbox]]`.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged))]
pub(crate) enum SandboxFiles {
    One(Box<SandboxFile>),
    Several(Vec<SandboxFile>),
}

impl SandboxFiles {
    /// Says where what they name stands in their file.
    pub(crate) fn place(&mut self, text: &str, path: &Path) {
        let files = match self {
            Self::One(file) => std::slice::from_mut(file.as_mut()),
            Self::Several(files) => files.as_mut_slice(),
        };
        let directories = files.iter_mut().flat_map(|file| file.read_only.iter_mut().flatten());
        directories.for_each(|directory| directory.place(text, path));
    }
}

impl Default for SandboxFiles {
    fn default() -> Self {
        Self::One(Box::default())
    }
}

impl<'de> Deserialize<'de> for SandboxFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tables;
        impl<'de> Visitor<'de> for Tables {
            type Value = SandboxFiles;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a table, or several")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SandboxFiles, A::Error> {
                SandboxFile::deserialize(MapAccessDeserializer::new(map))
                    .map(|one| SandboxFiles::One(Box::new(one)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<SandboxFiles, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(SandboxFiles::Several)
            }
        }
        deserializer.deserialize_any(Tables)
    }
}

/// The sandboxes of a session: what they may take and see, and how they are looked after.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SandboxFile {
    /// The sandbox's name in the session. The tools of every sandbox but the first end in it, for
    /// example `execute_fetch`.
    #[cfg_attr(test, schemars(extend("default" = limits::SANDBOX_NAME_DEFAULT)))]
    pub(crate) name: Option<Name>,
    /// Where the sandbox is made. A session stays in the backend that it was begun in.
    #[cfg_attr(test, schemars(extend("default" = Sandbox::default().backend.as_str())))]
    pub(crate) backend: Option<BackendName>,
    /// The root filesystem that the sandbox begins with, by a name that its backend knows.
    /// `host-tools` is this machine's own programs, read-only. The native backend knows the images
    /// that `outrigger sandbox import` and `pull` made templates of; for the Docker backend it is
    /// an image of the engine's, and `host-tools` is the one of `[docker]`. For the first sandbox
    /// it may also be what `outrigger run --image` takes.
    #[cfg_attr(test, schemars(extend("default" = Sandbox::default().template())))]
    pub(crate) template: Option<String>,
    /// MiB of memory, of all processes of the sandbox together. Not enforced where no cgroup can be
    /// written; `outrigger doctor` says so.
    #[cfg_attr(test, schemars(extend("default" = CreateSpec::default().memory_bytes_max >> 20)))]
    pub(crate) memory_mib_max: Option<Whole<16, 16_777_216>>,
    /// Processes and threads at once.
    #[cfg_attr(test, schemars(extend("default" = CreateSpec::default().pids_max)))]
    pub(crate) pids_max: Option<Whole<8, 4_194_304>>,
    /// Cores. Not enforced where no cgroup can be written.
    #[cfg_attr(test, schemars(extend("default" = f64::from(CreateSpec::default().cpu_millis_max) / 1e3)))]
    pub(crate) cpus_max: Option<Cores>,
    /// MiB that the sandbox may write to its disk.
    #[cfg_attr(test, schemars(extend("default" = CreateSpec::default().disk_bytes_max >> 20)))]
    pub(crate) disk_mib_max: Option<Whole<1, 1_073_741_824>>,
    /// Files, directories and links on the sandbox's disk.
    #[cfg_attr(test, schemars(extend("default" = CreateSpec::default().disk_inodes_max)))]
    pub(crate) files_max: Option<Whole<64, 4_294_967_295>>,
    /// Further directories of this machine that sandboxes see, read-only, such as a toolchain outside
    /// `/usr`. The model can read whatever is in them, in every sandbox of the native backend.
    #[cfg_attr(test, schemars(with = "Option<Vec<std::path::PathBuf>>", example = ["/opt/toolchain"], extend("default" = [])))]
    pub(crate) read_only: Option<Vec<HostDirectory>>,
    /// Whether the tools of this machine that the project is worked on with are found by
    /// themselves and shown, read-only: Python by pyenv or uv, Node by nvm or volta, Rust by
    /// rustup, Go, a JDK, what asdf, mise and Homebrew installed, and whatever else is in the
    /// PATH. In the template `host-tools` of the native backend.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub(crate) toolchains: Option<bool>,
    /// Variables of all commands of the sandbox. None of them may be a secret: the model reads
    /// them. In the native backend.
    #[cfg_attr(test, schemars(extend("default" = {}, "examples" = [{"RUST_BACKTRACE": "1"}])))]
    pub(crate) env: Option<BTreeMap<String, String>>,
    /// Directories in which programs are looked for before all others. In the native backend.
    #[cfg_attr(test, schemars(example = ["/opt/toolchain/bin"], extend("default" = [])))]
    pub(crate) path: Option<Vec<PathBuf>>,
    /// Commands that prepare the project, where commands begin, before its first session. What
    /// they make is kept, and later sessions begin with it, until a lock file, a manifest, the
    /// tools, the image or these commands change. For the first sandbox, in the native backend.
    #[cfg_attr(test, schemars(example = ["make deps"], extend("default" = [])))]
    pub(crate) setup: Option<Vec<String>>,
    /// The least isolation that is accepted; with less, nothing runs. A session keeps to what it
    /// was begun with. `outrigger doctor` says what this machine offers.
    #[cfg_attr(test, schemars(extend("default" = CreateSpec::default().isolation_min.to_string())))]
    pub(crate) isolation_min: Option<Least>,
    /// What the sandbox's commands may reach: `none`, or some of `packages` (the registries of pip,
    /// npm, cargo, Go, Maven, RubyGems and apt, for reading), `git` (the remotes of the repository,
    /// for fetching), a host (`example.com`, `example.com:8443`, `*.example.com`), the beginning of a
    /// URL (`https://example.com/path*`) and a host and port that are passed on unread
    /// (`tcp:db.example.com:5432`); as `outrigger run --net`. `secret:NAME` lets it use a secret where
    /// that is for. If absent, nothing is reached but what a person allows who is at the
    /// terminal when a command asks for it. A session keeps what it was begun with.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>", example = ["packages", "git"], extend("default" = [])))]
    pub(crate) network: Option<Words>,
    /// Whether the directory is copied into the sandbox; if absent, it is into the first and not
    /// into the others. Changes are taken out of the first sandbox only.
    #[cfg_attr(test, schemars(example = true))]
    pub(crate) workspace: Option<bool>,
    /// Whose the sandbox is: the session's own, destroyed with it, or shared by all sessions of an
    /// assistant, as the first of them filled it.
    #[cfg_attr(test, schemars(example = &"assistant", extend("default" = "thread")))]
    pub(crate) scope: Option<ScopeName>,
    /// The assistant whose sessions share the sandbox, if they do.
    #[cfg_attr(test, schemars(extend("default" = limits::ASSISTANT_DEFAULT)))]
    pub(crate) assistant: Option<Name>,
    /// What becomes of the sandbox while the session waits for a person: nothing of it runs, its
    /// processes stop, or it goes on. Less deeply where its backend can't. `off` never freezes it.
    #[cfg_attr(test, schemars(extend("default" = "cold")))]
    pub(crate) suspend: Option<SuspendName>,
    /// Milliseconds that the model thinks before the sandbox's processes are stopped. The next
    /// command finds them where they were.
    #[cfg_attr(test, schemars(extend("default" = Sandbox::default().freeze_after_ms)))]
    pub(crate) freeze_after_ms: Option<Whole<1, 86_400_000>>,
    /// When the sandbox's disk is kept, to begin from if it is lost: when it was filled and after
    /// each turn that may have changed it, or never.
    #[cfg_attr(test, schemars(extend("default" = "turn")))]
    pub(crate) snapshots: Option<KeepName>,
    /// Snapshots that are kept at once; the oldest goes first.
    #[cfg_attr(test, schemars(extend("default" = Sandbox::default().snapshots_kept)))]
    pub(crate) snapshots_kept: Option<Whole<1, 256>>,
    /// Seconds without a request or a running command until the sandbox goes cold by itself, also
    /// when nobody is there.
    #[cfg_attr(test, schemars(extend("default" = limits::SANDBOX_IDLE_MS_DEFAULT / 1_000)))]
    pub(crate) idle_seconds_max: Option<Whole<1, 31_536_000>>,
    /// Hours after which a sandbox that is shared is destroyed, whatever runs in it.
    #[cfg_attr(test, schemars(example = 720))]
    pub(crate) age_hours_max: Option<Whole<1, 87_600>>,
    /// Hours for which sandboxes and snapshots are kept that nobody uses: those of sessions that
    /// answered, and those that no session names. The largest number of all tables holds.
    #[cfg_attr(test, schemars(extend("default" = limits::RETENTION_MS_DEFAULT / 3_600_000)))]
    pub(crate) retention_hours: Option<Whole<1, 87_600>>,
}

/// A name of a sandbox or an assistant, which becomes part of ids and names of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("pattern" =
    format!("^[a-z0-9_]{{1,{}}}$", limits::SANDBOX_NAME_CHARS_MAX))))]
pub(crate) struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let max = limits::SANDBOX_NAME_CHARS_MAX;
        if name.is_empty() || name.len() > max || !name.bytes().all(plain) {
            let said = format!("invalid name, expected 1 to {max} characters of a-z 0-9 _");
            return Err(D::Error::custom(said));
        }
        Ok(Self(name))
    }
}

/// Backends that are built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackendName {
    Native,
    Docker,
}

impl BackendName {
    /// As it calls itself in its capabilities.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Docker => "docker",
        }
    }
}

/// The least isolation that is accepted. None at all can't be asked for.
#[derive(Debug, Clone, Copy, Deserialize, clap::ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum Least {
    RootlessSingle,
    Container,
    RootlessRange,
    RootRange,
    Gvisor,
}

impl From<Least> for Isolation {
    fn from(least: Least) -> Self {
        match least {
            Least::RootlessSingle => Self::RootlessSingle,
            Least::Container => Self::Container,
            Least::RootlessRange => Self::RootlessRange,
            Least::RootRange => Self::RootRange,
            Least::Gvisor => Self::Gvisor,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeName {
    Thread,
    Assistant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum SuspendName {
    Cold,
    Frozen,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeepName {
    Turn,
    Off,
}

/// A sandbox as all layers together say.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    pub(crate) name: String,
    pub(crate) backend: BackendName,
    pub(crate) spec: CreateSpec,
    pub(crate) read_only: Vec<HostDirectory>,
    pub(crate) retention_ms: u64,
    pub(crate) toolchains: bool,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) path: Vec<PathBuf>,
    pub(crate) setup: Vec<String>,
    pub(crate) network: Words,
    workspace: Option<bool>,
    scope: ScopeName,
    assistant: String,
    suspend: SuspendName,
    freeze_after_ms: u64,
    snapshots: KeepName,
    snapshots_kept: usize,
}

impl Default for Sandbox {
    fn default() -> Self {
        let mut spec = CreateSpec::default();
        spec.lifetime.idle_ms_max = Some(limits::SANDBOX_IDLE_MS_DEFAULT);
        Self {
            name: limits::SANDBOX_NAME_DEFAULT.to_owned(),
            backend: BackendName::Native,
            spec,
            read_only: Vec::new(),
            retention_ms: limits::RETENTION_MS_DEFAULT,
            toolchains: true,
            env: BTreeMap::new(),
            path: Vec::new(),
            setup: Vec::new(),
            network: Words::default(),
            workspace: None,
            scope: ScopeName::Thread,
            assistant: limits::ASSISTANT_DEFAULT.to_owned(),
            suspend: SuspendName::Cold,
            freeze_after_ms: outrigger_engine::limits::FREEZE_AFTER_MS_DEFAULT,
            snapshots: KeepName::Turn,
            snapshots_kept: outrigger_engine::limits::SNAPSHOTS_DEFAULT,
        }
    }
}

impl Sandbox {
    /// The root filesystem that it begins with.
    pub(crate) fn template(&self) -> Option<&str> {
        match &self.spec.origin {
            DiskOrigin::Template(name) => Some(name),
            DiskOrigin::Snapshot(_) => None,
        }
    }

    /// Lets it begin with another root filesystem.
    pub(crate) fn stand_on(&mut self, template: String) {
        self.spec.origin = DiskOrigin::Template(template);
    }

    /// One like this for a server of the repository, with a copy of the work.
    pub(crate) fn for_server(&self, name: String) -> Self {
        let (workspace, scope) = (Some(true), ScopeName::Thread);
        let (snapshots, network) = (KeepName::Off, Words::default());
        let mut sandbox = Self { name, workspace, scope, snapshots, network, ..self.clone() };
        sandbox.spec.lifetime.age_ms_max = None;
        sandbox
    }

    fn overlay(&mut self, file: SandboxFile) {
        let whole =
            |own: u64, new: Option<u64>, unit: u64| new.map_or(own, |new| new.saturating_mul(unit));
        if let Some(network) = file.network {
            self.network = network;
        }
        if let Some(Name(name)) = file.name {
            self.name = name;
        }
        if let Some(Name(assistant)) = file.assistant {
            self.assistant = assistant;
        }
        self.backend = file.backend.unwrap_or(self.backend);
        let spec = &mut self.spec;
        if let Some(template) = file.template {
            spec.origin = DiskOrigin::Template(template);
        }
        spec.memory_bytes_max =
            whole(spec.memory_bytes_max, file.memory_mib_max.map(Whole::get), 1 << 20);
        spec.disk_bytes_max =
            whole(spec.disk_bytes_max, file.disk_mib_max.map(Whole::get), 1 << 20);
        spec.disk_inodes_max = whole(spec.disk_inodes_max, file.files_max.map(Whole::get), 1);
        if let Some(pids) = file.pids_max {
            spec.pids_max = u32::try_from(pids.get()).expect("its range is within 32 bits");
        }
        spec.cpu_millis_max = file.cpus_max.map_or(spec.cpu_millis_max, Cores::millis);
        spec.isolation_min = file.isolation_min.map_or(spec.isolation_min, Isolation::from);
        let ms = |seconds: u64| seconds.saturating_mul(1_000);
        let lifetime = &mut spec.lifetime;
        lifetime.idle_ms_max =
            file.idle_seconds_max.map(|it| ms(it.get())).or(lifetime.idle_ms_max);
        lifetime.age_ms_max =
            file.age_hours_max.map(|it| ms(it.get() * 3_600)).or(lifetime.age_ms_max);
        self.retention_ms =
            whole(self.retention_ms, file.retention_hours.map(Whole::get), 3_600_000);
        self.read_only = file.read_only.unwrap_or_else(|| std::mem::take(&mut self.read_only));
        self.toolchains = file.toolchains.unwrap_or(self.toolchains);
        self.env.extend(file.env.unwrap_or_default());
        self.path = file.path.unwrap_or_else(|| std::mem::take(&mut self.path));
        self.setup = file.setup.unwrap_or_else(|| std::mem::take(&mut self.setup));
        self.workspace = file.workspace.or(self.workspace);
        self.scope = file.scope.unwrap_or(self.scope);
        self.suspend = file.suspend.unwrap_or(self.suspend);
        self.freeze_after_ms = whole(self.freeze_after_ms, file.freeze_after_ms.map(Whole::get), 1);
        self.snapshots = file.snapshots.unwrap_or(self.snapshots);
        if let Some(kept) = file.snapshots_kept {
            self.snapshots_kept = usize::try_from(kept.get()).expect("its range is small");
        }
    }

    /// What is kept of it.
    pub(crate) fn retention(&self) -> RetentionPolicy {
        let suspend = match self.suspend {
            SuspendName::Cold => Some(Suspend::Cold),
            SuspendName::Frozen => Some(Suspend::Frozen),
            SuspendName::Off => None,
        };
        let snapshots = match self.snapshots {
            KeepName::Turn => SnapshotPolicy::Turn { kept_max: self.snapshots_kept },
            KeepName::Off => SnapshotPolicy::Off,
        };
        let freeze_after_ms = suspend.map(|_| self.freeze_after_ms);
        RetentionPolicy { suspend, freeze_after_ms, snapshots }
    }

    /// What it may reach, as a session records it.
    pub(crate) fn reaches(&self, dir: &Path) -> Outcome<Vec<String>> {
        let reaches = self.network.settle(dir)?;
        let some = !reaches.is_empty() && reaches != [NO_NETWORK];
        if some && matches!(self.scope, ScopeName::Assistant) {
            let text = format!(
                "the sandbox `{}` is shared by sessions, and what they may reach differs: it can have no network",
                self.name
            );
            return Err(Failure::new(Kind::Usage, text)
                .hint("Set its scope to \"thread\", or its network to `none`."));
        }
        Ok(reaches)
    }

    /// What a session records of it. The first one has the workspace unless it is said
    /// otherwise, and the others have not.
    pub(crate) fn record(&self, first: bool) -> SandboxSpec {
        SandboxSpec {
            template: None,
            network: Vec::new(),
            name: self.name.clone(),
            backend: self.backend.as_str().to_owned(),
            isolation_min: self.spec.isolation_min.to_string(),
            workspace: self.workspace.unwrap_or(first),
            scope: match self.scope {
                ScopeName::Thread => SandboxScope::Thread,
                ScopeName::Assistant => SandboxScope::Assistant(self.assistant.clone()),
            },
        }
    }
}

/// Lays a stronger file over what the weaker ones said. `[sandbox]` speaks of the one
/// of its name, else of the first; `[[sandbox]]` says which ones there are, and what
/// is not said of one is as it was said of the one of that name before.
pub(crate) fn absorb(all: &mut Vec<Sandbox>, files: SandboxFiles) -> Outcome {
    match files {
        SandboxFiles::One(file) => {
            let named = |known: &Sandbox| file.name.as_ref().is_some_and(|it| it.0 == known.name);
            let index = all.iter().position(named).unwrap_or(0);
            if let Some(known) = all.get_mut(index) {
                known.overlay(*file);
            }
        }
        SandboxFiles::Several(files) => {
            let before = std::mem::take(all);
            for file in files {
                let Some(Name(name)) = file.name.clone() else {
                    return Err(wrong("a [[sandbox]] has no `name`".to_owned()));
                };
                if all.iter().any(|known| known.name == name) {
                    return Err(wrong(format!("two sandboxes are called `{name}`")));
                }
                let known = before.iter().find(|known| known.name == name).cloned();
                let mut sandbox = known.unwrap_or_default();
                sandbox.overlay(file);
                all.push(sandbox);
            }
        }
    }
    check(all)
}

fn check(all: &[Sandbox]) -> Outcome {
    if all.is_empty() || all.len() > limits::SANDBOXES_MAX {
        let max = limits::SANDBOXES_MAX;
        return Err(wrong(format!("{} sandboxes are configured, expected 1 to {max}", all.len())));
    }
    let aging =
        |it: &&Sandbox| it.scope == ScopeName::Thread && it.spec.lifetime.age_ms_max.is_some();
    match all.iter().find(aging) {
        None => Ok(()),
        Some(Sandbox { name, .. }) => Err(wrong(format!(
            "the sandbox `{name}` has an `age_hours_max` and is a session's own, which would lose its work"
        ))
        .hint("Set `scope = \"assistant\"`, or leave the age out: a session's own sandboxes go with it.")),
    }
}

fn wrong(text: String) -> Failure {
    Failure::new(Kind::Usage, text)
        .hint("docs/configuration.md lists every key with its type and default.")
}
