//! The Docker backend with an owner and images of its own.
//!
//! Owns what it made in the engine and the end of that. It uses the engine that
//! `DOCKER_HOST` names, or the usual one, and touches nothing that is not its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use outrigger_sandbox::{Backend, Error};
use outrigger_sandbox_docker::{Config, Docker};

use crate::archive;
use crate::target::{Images, TEMPLATE, Target};

/// The usual programs of the root, in one.
const BUSYBOX: &str = "/bin/busybox";
/// The variable that names an engine; see docker(1).
const VARIABLE: &str = "DOCKER_HOST";

/// A Docker backend whose sandboxes and images go away at the end.
#[derive(Debug)]
pub struct DockerWorld {
    backend: Arc<Docker>,
    engine: Engine,
    image: String,
    program: PathBuf,
}

/// The engine, as its own client speaks to it.
#[derive(Debug, Clone)]
struct Engine {
    socket: PathBuf,
    owner: String,
}

impl Engine {
    async fn ask(&self, words: &[&str], input: Option<File>) -> Result<String, String> {
        let mut command = Command::new("docker");
        command
            .arg(format!("--host=unix://{}", self.socket.display()))
            .args(words)
            .stdin(input.map_or_else(Stdio::null, Stdio::from));
        let said = words.join(" ");
        let done = tokio::task::spawn_blocking(move || command.output()).await;
        let done = done.map_err(|error| error.to_string())?;
        let output = done.map_err(|error| {
            format!("cannot run docker ({error}): install the package docker.io or docker-ce")
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("docker {said}: {}", errors.trim()))
    }

    /// The image that stands for [`TEMPLATE`].
    fn hostile(&self) -> String {
        format!("outrigger-{}-hostile:1", self.owner)
    }
}

impl DockerWorld {
    /// Makes the image and opens the backend.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where no engine answers, [`Error::Backend`] where the
    /// image can't be made.
    pub async fn open(program: PathBuf) -> Result<Self, Error> {
        let named = std::env::var(VARIABLE).ok();
        let named = named.and_then(|host| Some(PathBuf::from(host.strip_prefix("unix://")?)));
        let socket = named.unwrap_or_else(|| PathBuf::from("/var/run/docker.sock"));
        let owner = format!("attack-{}", std::process::id());
        let engine = Engine { socket: socket.clone(), owner: owner.clone() };
        let image = format!("outrigger-{owner}:1");
        let config = Config {
            socket: Some(socket),
            owner,
            runtime: None,
            guest: outrigger_guest::PROGRAM,
            images: BTreeMap::from([(TEMPLATE.to_owned(), engine.hostile())]),
            default_image: Some(image.clone()),
        };
        let backend = Arc::new(Docker::open(config).await?);
        let failed = |error: String| Error::Backend(format!("no image to attack in: {error}"));
        let root = root().map_err(failed)?;
        engine.ask(&["import", "-", &image], Some(root)).await.map_err(failed)?;
        Ok(Self { backend, engine, image, program })
    }

    /// What of it is attacked.
    #[must_use]
    pub fn target(&self) -> Target {
        Target {
            backend: Arc::clone(&self.backend) as _,
            images: Arc::new(self.engine.clone()),
            networks: Arc::clone(&self.backend) as _,
            program: self.program.clone(),
        }
    }

    /// Removes every sandbox that is left, and the images.
    ///
    /// # Errors
    /// Those of the backend and the engine.
    pub async fn close(self) -> Result<(), Error> {
        for listed in self.backend.list().await? {
            self.backend.destroy(&listed.id).await?;
        }
        self.backend.sweep().await?;
        drop(self.backend);
        let filter = format!("label=outrigger.owner={}", self.engine.owner);
        let stays = |error| Error::Backend(format!("it stays in the engine: {error}"));
        // The guest program, which the backend keeps for the next sandbox.
        let volumes = self.engine.ask(&["volume", "ls", "-q", "--filter", &filter], None).await;
        for volume in volumes.map_err(stays)?.lines() {
            self.engine.ask(&["volume", "rm", volume], None).await.map_err(stays)?;
        }
        self.engine.forget().await.map_err(stays)?;
        self.engine.ask(&["rmi", "--force", &self.image], None).await.map_err(stays)?;
        Ok(())
    }
}

/// A root of nothing but busybox, as an archive.
fn root() -> Result<File, String> {
    let failed = |error: std::io::Error| format!("{BUSYBOX}: {error}: install busybox-static");
    let program = std::fs::read(BUSYBOX).map_err(failed)?;
    let names = Command::new(BUSYBOX).arg("--list").output().map_err(failed)?;
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    let mut layer = archive::Layer::default();
    layer.file("bin/busybox", 0o755, &program);
    layer.file("etc/passwd", 0o644, b"root:x:0:0::/:/bin/sh\n");
    for name in names.lines().filter(|name| *name != "busybox") {
        layer.link(&format!("bin/{name}"), "busybox");
    }
    archive::file(&layer.bytes())
}

#[async_trait]
impl Images for Engine {
    fn foreign_reader(&self) -> Option<&'static str> {
        Some("archives are read by the Docker engine, and never by this project")
    }

    async fn import(&self, archive: File) -> Result<(), String> {
        let said = self.ask(&["load", "--quiet"], Some(archive)).await?;
        let name = said.trim().rsplit(": ").next().unwrap_or_default().to_owned();
        // It has a name of its own; one more is what sandboxes are made of.
        let tagged = self.ask(&["tag", &name, &self.hostile()], None).await;
        let untagged = self.ask(&["rmi", "--no-prune", archive::TAG], None).await;
        tagged.and(untagged).map(drop).map_err(|error| format!("failed: {error}"))
    }

    async fn forget(&self) -> Result<(), String> {
        let image = self.hostile();
        match self.ask(&["images", "--quiet", &image], None).await?.trim() {
            "" => Ok(()),
            _ => self.ask(&["rmi", "--force", &image], None).await.map(drop),
        }
    }

    async fn left(&self) -> Result<Vec<String>, String> {
        let volumes = self.ask(&["volume", "ls", "--quiet"], None).await?;
        let images = self.ask(&["images", "--quiet", &self.hostile()], None).await?;
        // Such names the engine gives to volumes that nobody named: those of images.
        let unnamed = |name: &&str| name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
        let volumes = volumes.lines().filter(unnamed).map(|name| format!("volume {name}"));
        Ok(volumes.chain(images.lines().map(|name| format!("image {name}"))).collect())
    }
}
