//! Sandboxes: those that live, and the disks of all.
//!
//! Owns the state directory's contents and the map of guests. Answers a request with
//! what an engine can act on.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use outrigger_sandbox::{Error, Generation, Isolation, Listed, Origin, SandboxId, Spec, State};
use rustix::fs::{Gid, Uid};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use rustix::process::{Signal, pidfd_send_signal};

use super::birth::{Born, give_birth};
use super::ids::Lease;
use super::root::{DISK, OUTPUT, Plan};
use super::{remove, sys};
use crate::cgroup::{Group, Groups};
use crate::limits;

/// A sandbox whose guest runs.
#[derive(Debug)]
pub(super) struct Living {
    born: Born,
    generation: Generation,
    group: Group,
    /// Held for as long as the guest lives.
    _lease: Lease,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sandboxes {
    state: PathBuf,
    program: OwnedFd,
    pub(super) isolation: Isolation,
    groups: Groups,
    pub(super) living: BTreeMap<SandboxId, Living>,
}

/// An open way to a guest.
pub(super) type Attached = (Generation, OwnedFd);

fn backend(what: &str, error: &io::Error) -> Error {
    Error::Backend(format!("{what}: {error}"))
}

impl Living {
    /// Readable when the guest ended.
    pub(super) fn ended(&self) -> &OwnedFd {
        &self.born.pidfd
    }

    /// Passes the guest one end of a new socket and gives the other.
    fn connect(&self) -> io::Result<Attached> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = [theirs.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        // A guest that takes no connections must not hold the spawner.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.born.control, &[io::IoSlice::new(b"c")], &mut ancillary, flags)?;
        Ok((self.generation.clone(), ours))
    }

    /// Ends it, if it has not ended, and clears what the host had of it.
    pub(super) fn bury(self) {
        let _ = pidfd_send_signal(&self.born.pidfd, Signal::KILL);
        sys::wait(self.born.pid);
        self.group.remove();
    }

    /// Ends every process of it.
    pub(super) fn kill(&self) {
        let _ = pidfd_send_signal(&self.born.pidfd, Signal::KILL);
    }
}

impl Sandboxes {
    pub(super) fn new(
        state: PathBuf,
        program: OwnedFd,
        isolation: Isolation,
        groups: Groups,
    ) -> Self {
        Self { state, program, isolation, groups, living: BTreeMap::new() }
    }

    fn disk(&self, id: &SandboxId) -> PathBuf {
        self.state.join("sandboxes").join(id.as_str())
    }

    /// Create or attach.
    pub(super) fn create(
        &mut self,
        id: &SandboxId,
        spec: &Spec,
        read_only: &[PathBuf],
    ) -> Result<Attached, Error> {
        check(spec, read_only)?;
        if self.isolation < spec.isolation_min {
            return Err(Error::Unavailable {
                reason: format!(
                    "{:?} isolation was asked for and this host gives {:?}",
                    spec.isolation_min, self.isolation
                ),
                advice: "run as root, or lower isolation_min".to_owned(),
            });
        }
        if let Some(attached) = self.find(id)? {
            return Ok(attached);
        }
        if self.living.len() >= limits::SANDBOXES_MAX {
            return Err(Error::Backend(format!(
                "{} sandboxes live already",
                limits::SANDBOXES_MAX
            )));
        }
        let disk = self.disk(id);
        let lease =
            self.prepare(&disk).map_err(|error| backend("cannot prepare the disk", &error))?;
        let group = self
            .groups
            .make(id, spec, lease.guest())
            .map_err(|error| backend("cannot make the cgroups", &error))?;
        let generation = generation().map_err(|error| backend("no randomness", &error))?;
        let staging = self.state.join("mnt");
        let upper = disk.join("upper");
        let tty_group = matches!(lease, Lease::Range { .. }).then(|| lease.guest() + 5);
        let plan =
            Plan { staging: &staging, upper: &upper, read_only, owner: lease.guest(), tty_group };
        match give_birth(&self.program, plan, &lease, &group, &generation, spec.pids_max) {
            Ok(born) => {
                let living = Living { born, generation, group, _lease: lease };
                let attached = living.connect();
                self.living.insert(id.clone(), living);
                attached.map_err(|error| backend("the guest takes no connection", &error))
            }
            Err(error) => {
                group.remove();
                Err(Error::Backend(format!("the sandbox could not be started: {error}")))
            }
        }
    }

    /// Makes the directories of a disk where they are missing, with their owners.
    fn prepare(&self, disk: &Path) -> io::Result<Lease> {
        let private = |path: &Path| fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        private(disk)?;
        let lease = match self.isolation {
            Isolation::RootRange => Lease::take(&disk.join("range"))?,
            Isolation::Fake
            | Isolation::Reduced
            | Isolation::RootlessSingle
            | Isolation::RootlessRange => Lease::Single,
        };
        let upper = disk.join("upper");
        private(&upper)?;
        let parts = DISK.iter().map(|&(part, _, mode)| (part, mode, lease.agent()));
        for (part, mode, owner) in parts.chain([(OUTPUT, 0o755, lease.guest())]) {
            let path = upper.join(part);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result?,
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            rustix::fs::chown(&path, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?;
        }
        Ok(lease)
    }

    /// A way to the guest of that name, if it lives.
    pub(super) fn find(&mut self, id: &SandboxId) -> Result<Option<Attached>, Error> {
        self.bury_dead();
        match self.living.get(id) {
            Some(living) => living
                .connect()
                .map(Some)
                .map_err(|error| backend("the guest takes no connection", &error)),
            None => Ok(None),
        }
    }

    /// Names of all disks.
    pub(super) fn list(&self) -> Result<Vec<Listed>, Error> {
        let entries = match fs::read_dir(self.state.join("sandboxes")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(backend("cannot read the state directory", &error)),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<SandboxId> =
            names.filter_map(|name| SandboxId::new(name).ok()).collect();
        names.sort();
        Ok(names.into_iter().map(|id| self.listed(id)).collect())
    }

    fn listed(&self, id: SandboxId) -> Listed {
        let generation = self.living.get(&id).map(|living| living.generation.clone());
        let state = if generation.is_some() { State::Running } else { State::Dead };
        let origin = Origin::default();
        Listed { id, state, generation, origin, made_at_ms: 0, used_at_ms: 0 }
    }

    /// Buries every guest that ended.
    pub(super) fn bury_dead(&mut self) {
        let mut fds: Vec<libc::pollfd> =
            self.living.values().map(|living| sys::pollfd(living.ended())).collect();
        if sys::poll(&mut fds, 0).is_err() {
            return;
        }
        let dead: Vec<SandboxId> = self
            .living
            .keys()
            .zip(&fds)
            .filter(|(_, fd)| fd.revents != 0)
            .map(|(id, _)| id.clone())
            .collect();
        for living in dead.iter().filter_map(|id| self.living.remove(id)).collect::<Vec<_>>() {
            living.bury();
        }
    }

    /// Takes a disk out of sight, at once, so that its name is free. Gives where it is now.
    pub(super) fn discard(&self, id: &SandboxId) -> io::Result<Option<String>> {
        let name = format!("{id}.{}", generation()?);
        let trash = self.state.join("trash");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&trash)?;
        match fs::rename(self.disk(id), trash.join(&name)) {
            Ok(()) => Ok(Some(name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes everything in the trash, as far as that goes; the first error is the
    /// answer. For a [`Deleter`](super::deleter::Deleter).
    pub(super) fn empty_trash(&self) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt;
        let trash = self.state.join("trash");
        let Ok(entries) = fs::read_dir(&trash) else { return Ok(()) };
        let dir = fs::File::open(&trash)?;
        let mut done = Ok(());
        for entry in entries {
            let name = CString::new(entry?.file_name().as_bytes()).map_err(io::Error::other)?;
            done = done.and(remove::remove(dir.as_fd(), &name));
        }
        done
    }

    /// Deletes one disk that was discarded. For a [`Deleter`](super::deleter::Deleter).
    pub(super) fn delete_from_trash(&self, name: &str) -> io::Result<()> {
        let dir = fs::File::open(self.state.join("trash"))?;
        remove::remove(dir.as_fd(), &CString::new(name).map_err(io::Error::other)?)
    }

    /// Ends every guest and leaves nothing on the host but the disks.
    pub(super) fn close(&mut self) {
        for living in std::mem::take(&mut self.living).into_values() {
            living.bury();
        }
        self.groups.close();
    }

    /// Whether the state directory is still there; without it nothing can be found again.
    pub(super) fn has_state(&self) -> bool {
        self.state.join("spawner.sock").exists()
    }

    /// Where everything is.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    /// Where the socket is.
    pub(super) fn socket(&self) -> PathBuf {
        self.state.join("spawner.sock")
    }
}

/// Refuses what can't be made before anything is.
fn check(spec: &Spec, read_only: &[PathBuf]) -> Result<(), Error> {
    if spec.origin != Origin::default() {
        return Err(Error::Unsupported {
            what: format!("{:?}", spec.origin),
            reason: "this backend has only the template `host-tools`".to_owned(),
        });
    }
    if spec.memory_bytes_max < (1 << 20) || spec.pids_max == 0 || spec.cpu_millis_max == 0 {
        return Err(Error::Invalid(
            "a limit of the sandbox is too small to run anything".to_owned(),
        ));
    }
    let plain = |path: &PathBuf| {
        path.is_absolute()
            && path.components().skip(1).all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    match read_only.iter().find(|path| !plain(path)) {
        Some(path) => {
            Err(Error::Invalid(format!("`{}` is not a plain absolute path", path.display())))
        }
        None => Ok(()),
    }
}

/// A random name, never used before.
fn generation() -> io::Result<Generation> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Generation::new(name).map_err(io::Error::other)
}
