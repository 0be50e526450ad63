//! The backend itself.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use outrigger_sandbox::{
    Backend, Capabilities, CreateOutcome, CreateSpec, DiskOrigin, Error, Generation, ListedSandbox,
    Sandbox, SandboxId, Snapshots, Suspend, Trees,
};
use outrigger_sandbox_client::{Link, RemoteSandbox, TreeServer};
use tokio::net::UnixStream;

use super::connect::{SpawnerClient, SpawnerLauncher};
use crate::image::request::{ImageAnswer, ImageRequest};
use crate::limits;
use crate::protocol::{Answer, Request};

/// What a native backend is opened with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where disks, the socket and the lock are; absolute. Made with mode 0700 if it
    /// is not there. Every process that opens the same one sees the same sandboxes.
    pub state_dir: PathBuf,
    /// Where an image's files without a name are made that are read twice: a directory, on a
    /// disk with room for the image.
    pub scratch: PathBuf,
    /// Who starts a spawner, and looks at what this host can give.
    pub launcher: Arc<dyn SpawnerLauncher>,
    /// The guest program: a static executable.
    pub guest: &'static [u8],
    /// Paths of the host that are seen inside at the same place, read-only, beside
    /// the host's programs and libraries. Absolute; absent ones are passed over.
    pub read_only: Vec<PathBuf>,
    /// Who answers for trees that are served into sandboxes, for as long as somebody here
    /// has a handle of one. `None`: nobody does, here.
    pub trees: Option<Arc<dyn Trees>>,
}

/// The native backend on one state directory.
#[derive(Debug)]
pub struct Native {
    spawner: Arc<SpawnerClient>,
    scratch: PathBuf,
    read_only: Vec<PathBuf>,
    trees: Option<Arc<dyn Trees>>,
    capabilities: Capabilities,
    /// Links in use, so that all who use a sandbox share one.
    links: Mutex<HashMap<SandboxId, (Generation, Weak<Link>)>>,
}

impl Native {
    /// Opens a state directory and probes the host. Starts nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where no sandbox can be made, with what would fix it;
    /// [`Error::Backend`] if the state directory can't be used.
    pub async fn open(config: Config) -> Result<Self, Error> {
        let prepare = move || {
            let capabilities = config.launcher.prepare(&config.state_dir)?;
            Ok((config, capabilities))
        };
        let (config, capabilities) = blocking(prepare).await?;
        let Config { state_dir: state, scratch, launcher, guest, read_only, trees } = config;
        let spawner = Arc::new(SpawnerClient { state, launcher, guest });
        Ok(Self { spawner, scratch, read_only, trees, capabilities, links: Mutex::default() })
    }

    pub(super) async fn ask(&self, request: Request) -> Result<(Answer, Option<OwnedFd>), Error> {
        if request.has_small_answer()
            && let Some(answer) = self.spawner.ask_soon(&request).await
        {
            return answer;
        }
        let spawner = Arc::clone(&self.spawner);
        blocking(move || spawner.ask(&request)).await
    }

    /// Refuses what needs one tree over another where this host has no such thing.
    fn stands_on_others(&self) -> Result<(), Error> {
        if self.capabilities.snapshots {
            return Ok(());
        }
        let overlay = self.capabilities.layers.iter().find(|layer| layer.name == "overlay");
        let reason = overlay.map(|layer| layer.detail.clone()).unwrap_or_default();
        Err(Error::Unsupported { what: "a snapshot".to_owned(), reason })
    }

    /// Where files without a name are made.
    pub(crate) fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Asks about templates and layers, which may take long.
    pub(crate) async fn ask_image(
        &self,
        request: ImageRequest,
        file: Option<OwnedFd>,
    ) -> Result<ImageAnswer, Error> {
        let spawner = Arc::clone(&self.spawner);
        let request = Request::Image(request);
        match blocking(move || spawner.ask_with(&request, file.as_ref())).await? {
            (Answer::Image(answer), _) => Ok(answer),
            _ => Err(astray()),
        }
    }

    /// Asks for something that has no answer but that it is done.
    pub(super) async fn ask_done(&self, request: Request) -> Result<(), Error> {
        match self.ask(request).await? {
            (Answer::Done, _) => Ok(()),
            _ => Err(astray()),
        }
    }

    async fn ask_if_there(
        &self,
        request: Request,
    ) -> Result<Option<(Answer, Option<OwnedFd>)>, Error> {
        let spawner = Arc::clone(&self.spawner);
        blocking(move || spawner.ask_if_there(&request)).await
    }

    async fn try_create(
        &self,
        id: &SandboxId,
        spec: &CreateSpec,
    ) -> Result<Arc<dyn Sandbox>, Error> {
        let read_only = self.read_only.clone();
        let request = Request::Create { id: id.clone(), spec: spec.clone(), read_only };
        let (answer, socket) = self.ask(request).await?;
        let FindResult::Living { sandbox, frozen } = self.attach(id, answer, socket).await? else {
            return Err(astray());
        };
        if frozen {
            sandbox.thaw().await?;
        }
        Ok(sandbox)
    }

    async fn try_find(&self, id: &SandboxId) -> Result<FindResult, Error> {
        match self.ask_if_there(Request::Find(id.clone())).await? {
            Some((answer, socket)) => self.attach(id, answer, socket).await,
            // Sandboxes end with their spawner.
            None => Ok(FindResult::Nothing),
        }
    }

    /// The sandbox behind a link that is in use, which needs nobody else to be asked.
    fn linked(&self, id: &SandboxId) -> Option<RemoteSandbox> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let link = links.get(id)?.1.upgrade().filter(|link| link.is_open())?;
        Some(RemoteSandbox::new(id.clone(), CreateOutcome::Attached, link))
    }

    /// Lets the processes of a frozen sandbox go on before its next command does.
    ///
    /// # Errors
    /// [`Error::Absent`] if it does not live.
    pub async fn thaw(&self, id: &SandboxId) -> Result<(), Error> {
        if let Some(sandbox) = self.linked(id) {
            match sandbox.thaw().await {
                Err(Error::Lost { .. }) => {}
                done => return done,
            }
        }
        let absent = Error::Absent { what: "living sandbox".to_owned(), name: id.to_string() };
        let (answer, socket) = self.ask(Request::Find(id.clone())).await?;
        match self.attach(id, answer, socket).await? {
            FindResult::Living { sandbox, .. } => sandbox.thaw().await,
            FindResult::Nothing => Err(absent),
        }
    }

    async fn try_freeze(&self, id: &SandboxId) -> Result<(), Error> {
        if !self.capabilities.suspend.contains(&Suspend::Frozen) {
            return Err(Error::Unsupported {
                what: "frozen suspension".to_owned(),
                reason: "this user may write no cgroup to stop a sandbox by".to_owned(),
            });
        }
        if let Some(sandbox) = self.linked(id) {
            match sandbox.freeze().await {
                Err(Error::Lost { .. }) => {}
                done => return done,
            }
        }
        let absent = Error::Absent { what: "living sandbox".to_owned(), name: id.to_string() };
        match self.ask(Request::Find(id.clone())).await? {
            (Answer::Absent { cold: true }, _) => Ok(()),
            (Answer::Absent { cold: false }, _) => Err(absent),
            (answer, socket) => match self.attach(id, answer, socket).await? {
                FindResult::Living { frozen: true, .. } => Ok(()),
                FindResult::Living { sandbox, .. } => sandbox.freeze().await,
                FindResult::Nothing => Err(absent),
            },
        }
    }

    /// Makes a sandbox of an answer: over the link that is in use, or a new one.
    async fn attach(
        &self,
        id: &SandboxId,
        answer: Answer,
        socket: Option<OwnedFd>,
    ) -> Result<FindResult, Error> {
        let (generation, outcome, frozen) = match answer {
            Answer::Attached { generation, outcome, frozen, .. } => (generation, outcome, frozen),
            Answer::Absent { .. } => return Ok(FindResult::Nothing),
            Answer::List(_)
            | Answer::Done
            | Answer::Snapshot(_)
            | Answer::Snapshots(_)
            | Answer::Image(_)
            | Answer::Failed(_) => return Err(astray()),
        };
        let used = {
            let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            links
                .get(id)
                .filter(|(used, _)| *used == generation)
                .and_then(|(_, link)| link.upgrade())
        };
        // A life that was suspended has the same name, and another guest.
        let goes_on = outcome == CreateOutcome::Attached;
        let link = match used.filter(|link| goes_on && link.is_open()) {
            Some(link) => link,
            None => {
                let trees = self.trees.as_ref().map(|trees| (id, trees));
                let link = Arc::new(open(socket.ok_or_else(astray)?, trees).await?);
                if *link.generation() != generation {
                    return Err(Error::Lost { reason: "its guest is another life".to_owned() });
                }
                let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
                links.retain(|_, (_, link)| link.strong_count() > 0);
                links.insert(id.clone(), (generation.clone(), Arc::downgrade(&link)));
                link
            }
        };
        Ok(FindResult::Living {
            sandbox: Arc::new(RemoteSandbox::new(id.clone(), outcome, link)),
            frozen,
        })
    }
}

/// What an answer of the spawner leads to.
#[derive(Debug)]
enum FindResult {
    Living { sandbox: Arc<RemoteSandbox>, frozen: bool },
    Nothing,
}

async fn open(
    socket: OwnedFd,
    trees: Option<(&SandboxId, &Arc<dyn Trees>)>,
) -> Result<Link, Error> {
    let failed =
        |error: std::io::Error| Error::Backend(format!("cannot use the connection: {error}"));
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true).map_err(failed)?;
    let server = match trees {
        Some((sandbox, trees)) => {
            let server = TreeServer::new(sandbox.clone(), Arc::clone(trees));
            Some(server.with_socket(socket.try_clone().map_err(failed)?))
        }
        None => None,
    };
    let (reads, writes) = UnixStream::from_std(socket).map_err(failed)?.into_split();
    Link::open_serving(reads, writes, server).await
}

/// A spawner that answers another question than was asked is broken.
pub(crate) fn astray() -> Error {
    Error::Backend("the spawner's answer is not one to this request".to_owned())
}

/// A dying guest closes its connections before the spawner can see that it is dead.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(limits::ATTACH_PAUSE_MS)).await;
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::Backend(format!("a thread of the backend failed: {error}")))?
}

#[async_trait]
impl Backend for Native {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn create(&self, id: &SandboxId, spec: &CreateSpec) -> Result<Arc<dyn Sandbox>, Error> {
        if matches!(spec.origin, DiskOrigin::Snapshot(_)) {
            self.stands_on_others()?;
        }
        for _ in 1..limits::ATTACH_ATTEMPTS_MAX {
            match self.try_create(id, spec).await {
                Err(Error::Lost { .. }) => pause().await,
                done => return done,
            }
        }
        self.try_create(id, spec).await
    }

    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        let mut found = self.try_find(id).await;
        for _ in 1..limits::ATTACH_ATTEMPTS_MAX {
            if !matches!(found, Err(Error::Lost { .. })) {
                break;
            }
            pause().await;
            found = self.try_find(id).await;
        }
        match found? {
            FindResult::Living { sandbox, .. } => Ok(Some(sandbox)),
            FindResult::Nothing => Ok(None),
        }
    }

    async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error> {
        match how {
            Suspend::Frozen => self.try_freeze(id).await,
            Suspend::Cold => self.ask_done(Request::Suspend(id.clone())).await,
        }
    }

    fn snapshots(&self) -> Result<&dyn Snapshots, Error> {
        self.stands_on_others()?;
        Ok(self)
    }

    async fn list(&self) -> Result<Vec<ListedSandbox>, Error> {
        match self.ask(Request::List).await? {
            (Answer::List(all), _) => Ok(all),
            _ => Err(astray()),
        }
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), Error> {
        self.ask_done(Request::Destroy(id.clone())).await
    }

    async fn sweep(&self) -> Result<usize, Error> {
        self.remove_old_projects().await
    }
}
