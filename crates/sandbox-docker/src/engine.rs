//! The daemon, as the few requests that are made of it.
//!
//! Owns the connection and the meaning of answers: what is not there is `None`, a
//! name that is taken is said so, and what is to be gone and is gone already is
//! fine. Every list is narrowed to what carries the owner's label and a name that the owner
//! gives. Decides nothing.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use bollard::Docker as Client;
use bollard::errors::Error as Failure;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerSummary, SystemInfo, Volume,
    VolumeCreateRequest,
};
use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, ListContainersOptions, ListVolumesOptions,
    RemoveContainerOptions, RemoveVolumeOptions, StartContainerOptions, UploadToContainerOptions,
};
use outrigger_sandbox::Error;

use crate::explain::{self, CONFLICT, FAILED, NOT_FOUND};
use crate::names::Store;
use crate::user::{self, Users};
use crate::{limits, names};

/// Labels, or filters by label.
pub(crate) type Labels = HashMap<String, String>;

/// What came of asking for a container.
#[derive(Debug)]
pub(crate) enum ContainerCreation {
    /// It is there, by this id of the daemon's.
    Made(String),
    /// Another one has the name.
    Taken,
}

/// The connection to one daemon, for what belongs to one owner.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    client: Client,
    socket: String,
    pub(crate) owner: String,
    /// What it says of the programs that it is made of, by name.
    parts: HashMap<String, String>,
    users: Users,
}

fn seconds(ms: u64) -> u64 {
    ms.div_ceil(1000)
}

impl Engine {
    /// Connects, agrees with the daemon on a version of its API, and asks what it is.
    pub(crate) async fn connect(socket: &Path, owner: &str) -> Result<(Self, SystemInfo), Error> {
        let socket = socket.display().to_string();
        let timeout = seconds(limits::ANSWER_MS_MAX);
        let connected = Client::connect_with_unix(&socket, timeout, bollard::API_DEFAULT_VERSION);
        let failed = |failure: &Failure| explain::failed(&socket, "connecting", failure);
        let client = connected.map_err(|failure| failed(&failure))?;
        let client = client.negotiate_version().await.map_err(|failure| failed(&failure))?;
        let version = client.client_version();
        if (version.major_version, version.minor_version) < limits::API_MIN {
            let (major, minor) = limits::API_MIN;
            return Err(Error::Unavailable {
                reason: format!("the Docker daemon at {socket} speaks API {version}"),
                advice: format!("upgrade it to one that speaks at least {major}.{minor} (20.10)"),
            });
        }
        let said = client.version().await.map_err(|failure| failed(&failure))?;
        let parts = said.components.into_iter().flatten().map(|part| (part.name, part.version));
        let parts = parts.collect();
        let info = client.info().await.map_err(|failure| failed(&failure))?;
        let users = Users::of(&info);
        Ok((Self { client, socket, owner: owner.to_owned(), parts, users }, info))
    }

    /// Who owns the files of a store, and runs what runs in it.
    pub(crate) fn user(&self, store: &Store) -> u32 {
        match store {
            Store::Disk(sandbox) => self.users.user(&self.owner, sandbox),
            Store::Snapshot(_) | Store::Guest(_) => user::KEPT,
        }
    }

    /// The version of the API that is spoken.
    pub(crate) fn version(&self) -> String {
        self.client.client_version().to_string()
    }

    /// For requests with bodies, whose streams are others' business.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// A client for requests that may take as long as the copy of a whole disk.
    pub(crate) fn patient(&self) -> Client {
        let policy = Duration::from_millis(limits::COPY_MS_MAX);
        self.client.clone().with_timeout(policy)
    }

    /// What was being done when the daemon refused.
    pub(crate) fn failed(&self, doing: &str, failure: &Failure) -> Error {
        explain::failed(&self.socket, doing, failure)
    }

    /// The version of the runtime `runc`, where it has that.
    pub(crate) fn runc(&self) -> Option<&str> {
        self.parts.get("runc")?.lines().next()
    }

    /// Whether there is an image of that name.
    pub(crate) async fn has_image(&self, image: &str) -> Result<(), Error> {
        match self.client.inspect_image(image).await {
            Ok(_) => Ok(()),
            Err(failure) => match explain::status(&failure) {
                Some(NOT_FOUND) => Err(explain::no_image(image)),
                Some(_) | None => Err(self.failed("looking for an image", &failure)),
            },
        }
    }

    /// Makes a container and does not start it.
    pub(crate) async fn make(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<ContainerCreation, Error> {
        let image = body.image.clone().unwrap_or_default();
        let options = CreateContainerOptions { name: Some(name.to_owned()), ..Default::default() };
        match self.client.create_container(Some(options), body).await {
            Ok(made) => Ok(ContainerCreation::Made(made.id)),
            Err(failure) => match explain::status(&failure) {
                Some(CONFLICT) => Ok(ContainerCreation::Taken),
                Some(NOT_FOUND) => Err(explain::no_image(&image)),
                Some(_) | None => Err(self.failed("making a container", &failure)),
            },
        }
    }

    /// Starts a container; one that runs is fine. Whether it is there.
    pub(crate) async fn start(&self, container: &str) -> Result<bool, Error> {
        let started = self.client.start_container(container, None::<StartContainerOptions>).await;
        self.there(started, "starting a container")
    }

    /// Stops all its processes where they are; those of a paused one are. Whether it is there.
    pub(crate) async fn pause(&self, container: &str) -> Result<bool, Error> {
        let mut attempts = 1;
        loop {
            let done = self.client.pause_container(container).await;
            match done.as_ref().err().and_then(explain::status) {
                // With control groups of version 1 it succeeds by chance, and whoever asks is to
                // try again (opencontainers/runc#2791, #4388). And the daemon notes a pause once
                // more when it hears of it: until it has heard of the end too, it may have a
                // container for paused that runs.
                Some(FAILED | CONFLICT)
                    if attempts < limits::PAUSE_ATTEMPTS_MAX && !says(&done, "not running") =>
                {
                    tokio::time::sleep(Duration::from_millis(limits::PAUSE_PAUSE_MS)).await;
                    attempts += 1;
                }
                // It is paused already, or it is not running, which the next look shows.
                Some(CONFLICT) => return Ok(true),
                Some(_) | None => return self.there(done, "pausing a container"),
            }
        }
    }

    /// Lets them go on. Whether it is there.
    pub(crate) async fn unpause(&self, container: &str) -> Result<bool, Error> {
        let done = self.client.unpause_container(container).await;
        match done.as_ref().err().and_then(explain::status) {
            // It runs: the daemon knows, or its runtime does.
            Some(CONFLICT | FAILED)
                if says(&done, "not paused") || says(&done, "cannot resume a running process") =>
            {
                Ok(true)
            }
            Some(_) | None => self.there(done, "unpausing a container"),
        }
    }

    fn there(&self, done: Result<(), Failure>, doing: &str) -> Result<bool, Error> {
        match done {
            Ok(()) => Ok(true),
            Err(failure) if explain::status(&failure) == Some(NOT_FOUND) => Ok(false),
            Err(failure) => Err(self.failed(doing, &failure)),
        }
    }

    /// A container, by its name or id.
    pub(crate) async fn container(
        &self,
        name: &str,
    ) -> Result<Option<ContainerInspectResponse>, Error> {
        match self.client.inspect_container(name, None::<InspectContainerOptions>).await {
            Ok(found) => Ok(Some(found)),
            Err(failure) if explain::status(&failure) == Some(NOT_FOUND) => Ok(None),
            Err(failure) => Err(self.failed("looking at a container", &failure)),
        }
    }

    /// Kills and removes a container, and of its volumes those without a name: the
    /// daemon made them because the image asked for them.
    pub(crate) async fn remove(&self, container: &str) -> Result<(), Error> {
        let options = RemoveContainerOptions { force: true, v: true, ..Default::default() };
        match self.client.remove_container(container, Some(options)).await {
            Ok(()) => Ok(()),
            Err(failure) => match explain::status(&failure) {
                // Another removal of it is on its way, or done.
                Some(NOT_FOUND) => Ok(()),
                Some(CONFLICT) if format!("{failure}").contains("in progress") => Ok(()),
                Some(_) | None => Err(self.failed("removing a container", &failure)),
            },
        }
    }

    fn filters(&self, labels: &[(&str, &str)]) -> HashMap<String, Vec<String>> {
        let owner = format!("{}={}", names::OWNER, self.owner);
        let labels = labels.iter().map(|(name, value)| format!("{name}={value}"));
        HashMap::from([("label".to_owned(), std::iter::once(owner).chain(labels).collect())])
    }

    /// All containers of the owner with these labels, running or not.
    pub(crate) async fn containers(
        &self,
        labels: &[(&str, &str)],
    ) -> Result<Vec<ContainerSummary>, Error> {
        let filters = Some(self.filters(labels));
        let options = ListContainersOptions { all: true, filters, ..Default::default() };
        let listed = self.client.list_containers(Some(options)).await;
        let mut listed = listed.map_err(|failure| self.failed("listing containers", &failure))?;
        listed.retain(|container| {
            let (named, labelled) = (container.names.as_deref(), container.labels.as_ref());
            let ours =
                |labelled| names::is_container(&self.owner, named.unwrap_or_default(), labelled);
            labelled.is_some_and(ours)
        });
        Ok(listed)
    }

    /// All volumes of the owner with these labels.
    pub(crate) async fn volumes(&self, labels: &[(&str, &str)]) -> Result<Vec<Volume>, Error> {
        let options = ListVolumesOptions { filters: Some(self.filters(labels)) };
        let listed = self.client.list_volumes(Some(options)).await;
        let listed = listed.map_err(|failure| self.failed("listing volumes", &failure))?;
        let mut listed = listed.volumes.unwrap_or_default();
        listed.retain(|volume| names::is_volume(&self.owner, &volume.name));
        Ok(listed)
    }

    /// The volume of this name: a new one with these labels, or the one that is
    /// there, with its own. Which of several callers made it the labels say.
    pub(crate) async fn volume(&self, name: &str, labels: Labels) -> Result<Volume, Error> {
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..Default::default()
        };
        let made = self.client.create_volume(request).await;
        made.map_err(|failure| self.failed("making a volume", &failure))
    }

    /// A volume by its name.
    pub(crate) async fn find_volume(&self, name: &str) -> Result<Option<Volume>, Error> {
        match self.client.inspect_volume(name).await {
            Ok(volume) => Ok(Some(volume)),
            Err(failure) if explain::status(&failure) == Some(NOT_FOUND) => Ok(None),
            Err(failure) => Err(self.failed("looking at a volume", &failure)),
        }
    }

    /// Removes a volume. Whether it is gone: one that a container uses stays.
    pub(crate) async fn remove_volume(&self, name: &str) -> Result<bool, Error> {
        match self.client.remove_volume(name, None::<RemoveVolumeOptions>).await {
            Ok(()) => Ok(true),
            Err(failure) => match explain::status(&failure) {
                Some(NOT_FOUND) => Ok(true),
                Some(CONFLICT) => Ok(false),
                Some(_) | None => Err(self.failed("removing a volume", &failure)),
            },
        }
    }

    /// Unpacks a small archive into a directory of a container.
    pub(crate) async fn put(
        &self,
        container: &str,
        path: &str,
        archive: Vec<u8>,
    ) -> Result<(), Error> {
        let options = UploadToContainerOptions { path: path.to_owned(), ..Default::default() };
        let body = bollard::body_full(archive.into());
        let put = self.client.upload_to_container(container, Some(options), body).await;
        put.map_err(|failure| self.failed("filling a volume", &failure))
    }
}

/// Whether a failure has these words of the daemon's.
fn says(done: &Result<(), Failure>, words: &str) -> bool {
    done.as_ref().is_err_and(|failure| failure.to_string().contains(words))
}
