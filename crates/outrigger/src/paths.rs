//! Where things are kept: the XDG base directories, resolved once.

use outrigger_agent::Digest;
use outrigger_store::{DatabaseAddress, PostgresAddress};
use std::env;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::exit::{Failure, Kind, Outcome};
use crate::supervisor::Supervisor;

/// What an older version had in the data directory itself.
const DATABASE: &str = "journal.db";

/// Digits of the digest of a server's address that name its folder.
const SERVER_CHARS: usize = 16;

/// The places of this installation.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    data: PathBuf,
    harness: PathBuf,
    configs: Vec<PathBuf>,
    config_places: Vec<PathBuf>,
    database: DatabaseAddress,
    /// Whether the one place was named.
    is_named: bool,
    /// Who starts programs, for a process that is confined.
    supervisor: Option<Supervisor>,
}

impl Paths {
    /// From the environment, unless the command line says otherwise.
    pub(crate) fn resolve(data: Option<PathBuf>, config: Option<PathBuf>) -> Outcome<Self> {
        let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let xdg = |name: &str, beneath_home: &str| {
            let set = env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
            set.or_else(|| Some(home.as_ref()?.join(beneath_home)))
        };
        let nowhere = || {
            Failure::new(Kind::Usage, "neither HOME nor XDG_DATA_HOME names a directory")
                .hint("Set HOME, or say where sessions are kept with --data-dir.")
        };
        let data = match data {
            Some(data) => std::path::absolute(&data)
                .map_err(|error| Failure::from_error(Kind::Usage, &error))?,
            None => xdg("XDG_DATA_HOME", ".local/share").ok_or_else(nowhere)?.join("outrigger"),
        };
        let named = config.is_some();
        let config_places: Vec<PathBuf> = match config {
            // Also where the verb needs nothing of it: what is named is meant.
            Some(file) => match file.metadata() {
                Ok(_) => vec![file],
                Err(error) => {
                    let text =
                        format!("the configuration {} can't be read: {error}", file.display());
                    return Err(Failure::new(Kind::Usage, text));
                }
            },
            None => [Some(PathBuf::from("/etc")), xdg("XDG_CONFIG_HOME", ".config")]
                .into_iter()
                .flatten()
                .map(|dir| dir.join("outrigger/config.toml"))
                .collect(),
        };
        let there = config_places.iter().filter(|file| named || file.exists());
        let harness = data.join("harness");
        Ok(Self {
            data,
            harness,
            configs: there.cloned().collect(),
            config_places,
            database: DatabaseAddress::Sqlite,
            is_named: named,
            supervisor: None,
        })
    }

    /// These places with the store in a database elsewhere, if one was named.
    pub(crate) fn with_database(self, address: Option<&str>) -> Outcome<Self> {
        let Some(address) = address.filter(|text| !text.is_empty()) else { return Ok(self) };
        // Not shown: somebody may have put a password there.
        let address = address.parse::<PostgresAddress>().map_err(|error| {
            Failure::new(Kind::Usage, format!("--database (OUTRIGGER_DATABASE): {error}"))
        })?;
        Ok(Self { database: DatabaseAddress::Postgres(address), ..self })
    }

    /// Where the database of the store is.
    pub(crate) fn database(&self) -> &DatabaseAddress {
        &self.database
    }

    /// These places for a process that has others started.
    pub(crate) fn supervised(self, supervisor: Supervisor) -> Self {
        Self { supervisor: Some(supervisor), ..self }
    }

    /// Who starts programs for this process, which itself may not.
    pub(crate) fn supervisor(&self) -> Option<&Supervisor> {
        self.supervisor.as_ref()
    }

    /// Who starts a program that this process waits for.
    pub(crate) fn starter(&self) -> io::Result<&Supervisor> {
        self.supervisor().ok_or_else(|| io::Error::other("this command starts no programs"))
    }

    /// These places for what is kept of sessions of a server: their names are that server's to
    /// choose, and none of them may be taken for one of this machine.
    pub(crate) fn of_server(&self, address: &str) -> Self {
        let digest = Digest::of(address.as_bytes());
        let name: String = digest.as_str().chars().take(SERVER_CHARS).collect();
        Self { harness: self.harness.join("servers").join(name), ..self.clone() }
    }

    /// Which directory of this machine a session of a server began with.
    pub(crate) fn sent(&self, session: &str) -> PathBuf {
        self.harness.join("sent").join(session)
    }

    /// Another process of this program with these places.
    pub(crate) fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"));
        let mut command = Command::new(program);
        command.arg("--data-dir").arg(&self.data);
        if let Some(config) = self.named_config() {
            command.arg("--config").arg(config);
        }
        if let DatabaseAddress::Postgres(address) = &self.database {
            command.arg("--database").arg(address.as_str());
        }
        command.args(args);
        command
    }

    /// Makes the root of what is kept, for its owner only: journals and patches hold
    /// what a repository holds. One that is somebody else's, or that others could put
    /// another in the place of, is refused.
    pub(crate) fn prepare(&self) -> Outcome {
        let failed = |error: io::Error| {
            Failure::new(Kind::Storage, format!("{}: {error}", self.data.display()))
                .hint("Say where sessions are kept with --data-dir.")
        };
        let there = self.data.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        let real = std::fs::canonicalize(there).map_err(failed)?;
        // Also where a link to it lies, if it is one.
        let above = real.ancestors().skip(1).chain(there.ancestors().skip(1));
        let above = above.map(|dir| (dir, Part::Above));
        let first = if there == self.data { Part::Data } else { Part::Above };
        for (dir, part) in std::iter::once((real.as_path(), first)).chain(above) {
            judge(dir, part, &std::fs::metadata(dir).map_err(failed)?)?;
        }
        if self.data.join(DATABASE).exists() && !self.harness.exists() {
            let text = format!("{} is laid out as an older version has it", self.data.display());
            let place = word(&self.data);
            return Err(Failure::new(Kind::Storage, text).hint(format!("While nothing of it runs: `cd {place} && mkdir -m 700 harness && find . -mindepth 1 -maxdepth 1 ! -name harness ! -name gate ! -name native -exec mv {{}} harness \\;`")));
        }
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.harness);
        made.map_err(failed)
    }

    /// Configuration files, the weaker first.
    pub(crate) fn configs(&self) -> &[PathBuf] {
        &self.configs
    }

    /// Where configuration files are looked for, the weaker first, whether there are any.
    pub(crate) fn config_places(&self) -> &[PathBuf] {
        &self.config_places
    }

    /// The configuration that was named instead of the usual ones.
    pub(crate) fn named_config(&self) -> Option<&Path> {
        self.config_places.first().filter(|_| self.is_named).map(PathBuf::as_path)
    }

    /// The root of everything that is kept. Three processes have a folder of their own in it:
    /// the harness, the gate and the spawner of native sandboxes.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// What the harness keeps: sessions, memory, patches.
    pub(crate) fn harness(&self) -> &Path {
        &self.harness
    }

    /// Where archives are built, in files without a name.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.harness.join("scratch")
    }

    /// Directories that were sent to the server, with which no session began yet.
    pub(crate) fn uploads(&self) -> PathBuf {
        self.harness.join("uploads")
    }

    /// Which layer was made of which folder that a directory depends on.
    pub(crate) fn dependencies(&self) -> PathBuf {
        self.harness.join("dependencies")
    }

    /// Writes a file of that folder, whole or not at all.
    pub(crate) fn note(&self, path: &Path, text: &[u8]) -> std::io::Result<()> {
        std::fs::create_dir_all(self.dependencies())?;
        let temporary = path.with_extension("tmp");
        std::fs::write(&temporary, text)?;
        std::fs::rename(&temporary, path)
    }

    /// What a sandbox made by hand may reach.
    pub(crate) fn sandbox_network(&self, sandbox: &str) -> PathBuf {
        self.harness.join("networks").join(format!("{sandbox}.words"))
    }

    pub(crate) fn gate(&self) -> PathBuf {
        self.data.join("gate")
    }

    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.data.join("native")
    }

    pub(crate) fn patches(&self) -> PathBuf {
        self.harness.join("patches")
    }

    pub(crate) fn patch(&self, session: &str) -> PathBuf {
        self.patches().join(format!("{session}.patch"))
    }

    /// Why the changes of a session could not be taken out when it was last tried.
    pub(crate) fn untaken(&self, session: &str) -> PathBuf {
        self.patches().join(format!("{session}.untaken"))
    }

    /// What of a session's changes was written back.
    pub(crate) fn written(&self, session: &str) -> PathBuf {
        self.patches().join(format!("{session}.written"))
    }

    /// What a person said of writing a session's changes back.
    pub(crate) fn apply(&self, session: &str) -> PathBuf {
        self.harness.join("apply").join(session)
    }

    /// What a process without a terminal says while it drives a session.
    pub(crate) fn log(&self, session: &str) -> PathBuf {
        self.harness.join("logs").join(format!("{session}.log"))
    }
}

/// Which directory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// That of what is kept.
    Data,
    /// One above it.
    Above,
}

/// Refuses a directory in which somebody else decides what is there.
fn judge(dir: &Path, part: Part, meta: &std::fs::Metadata) -> Outcome {
    let refused = |why: String, hint: String| {
        Err(Failure::new(Kind::Storage, format!("sessions are not kept there: {why}")).hint(hint))
    };
    let (own, place) = (rustix::process::geteuid().as_raw(), dir.display());
    // The owner of what a user namespace has no number for is most often root outside.
    let trusted = meta.uid() == own || part == Part::Above && [0, unmapped()].contains(&meta.uid());
    if !trusted {
        let owner = meta.uid();
        return refused(
            format!("{place} belongs to the user {owner}, and this is the user {own}"),
            "Run it as that user, or name a directory of your own with --data-dir.".to_owned(),
        );
    }
    let mode = meta.mode();
    // Most often a group that nobody else is in.
    let group =
        mode & 0o020 != 0 && ![0, rustix::process::getegid().as_raw()].contains(&meta.gid());
    // In a directory like /tmp nobody removes what another one made.
    let is_sticky = part == Part::Above && mode & 0o1000 != 0;
    if (group || mode & 0o002 != 0) && !is_sticky {
        return refused(
            format!("others may write in {place}, whose mode is {:o}", mode & 0o7777),
            format!("`chmod go-w {}`, or name another directory with --data-dir.", word(dir)),
        );
    }
    Ok(())
}

/// What the kernel says of an owner that a user namespace has no number for.
fn unmapped() -> u32 {
    let told = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    told.and_then(|told| told.trim().parse().ok()).unwrap_or(65_534)
}

fn word(dir: &Path) -> String {
    crate::show::word(&dir.display().to_string())
}
