//! The sandboxes of a gate.
//!
//! Owns which there are, their listeners, and where their authorities are kept.

mod caller;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::net::Shutdown;
use tokio::sync::oneshot;

use super::listener;
use super::vault::Vault;
use crate::flow::Refusal;
use crate::network::{Destination, Network};
use crate::outside::Outside;
use crate::protocol::{Answer, OpenedNetwork};
use crate::rules::Rules;
use crate::sandbox::{Arrival, Authority, Outcome, Sandbox};
use crate::secret::{SealedSecret, SecretTerms, SecretValue};
use crate::{inside, limits, task};

pub(super) use caller::CallerLease;

/// The sandboxes of a gate.
#[derive(Debug)]
pub(super) struct Registry {
    /// The gate's own directory, and what is in it.
    dir: OwnedFd,
    authorities: OwnedFd,
    outside: Arc<Outside>,
    vault: Vault,
    sandboxes: Mutex<HashMap<String, Entry>>,
}

#[derive(Debug)]
struct Entry {
    sandbox: Arc<Sandbox>,
    listeners: Vec<AcceptingListener>,
    /// A secret was taken from it since it was opened, or a listener broke. Whoever looks opens
    /// it anew.
    is_stale: Arc<AtomicBool>,
}

#[derive(Debug)]
struct AcceptingListener {
    socket: Arc<OwnedFd>,
    /// Ends the task that accepts, when it is dropped.
    _accepting: oneshot::Sender<()>,
}

impl Registry {
    pub(super) fn new(dir: &OwnedFd, outside: Arc<Outside>, vault: Vault) -> io::Result<Self> {
        let name = "authorities";
        match rustix::fs::mkdirat(dir, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let authorities = rustix::fs::openat(dir, name, flags, Mode::empty())?;
        let dir = dir.try_clone()?;
        Ok(Self { dir, authorities, outside, vault, sandboxes: Mutex::default() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether anything is connected to any of them.
    pub(super) fn is_used(&self) -> bool {
        self.lock().values().any(|entry| entry.sandbox.is_used())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<Arc<Sandbox>> {
        self.lock().get(name).map(|entry| Arc::clone(&entry.sandbox))
    }

    pub(super) fn open(
        &self,
        name: &str,
        network: &Network,
        secrets: &[SealedSecret],
        declined: Option<Vec<Destination>>,
        fds: Vec<OwnedFd>,
    ) -> Answer {
        let rules = self.rules(name, network, secrets).and_then(|rules| rules.asking(declined));
        match rules.and_then(|rules| self.try_open(name, rules, fds)) {
            Ok(opened) => Answer::Opened(opened),
            Err(sentence) => Answer::Refused(sentence),
        }
    }

    pub(super) fn seal(
        &self,
        id: Option<String>,
        terms: SecretTerms,
        value: &SecretValue,
    ) -> Answer {
        match self.vault.seal(id, terms, value) {
            Ok(sealed) => Answer::Sealed(sealed),
            Err(sentence) => Answer::Refused(sentence),
        }
    }

    pub(super) fn verify(&self, secret: &SealedSecret, message: &str, signature: &str) -> Answer {
        match self.vault.verify(secret, message, signature) {
            Ok(verified) => Answer::Verified(verified),
            Err(sentence) => Answer::Refused(sentence),
        }
    }

    pub(super) fn revoke(&self, secret: &str) -> Answer {
        for entry in self.lock().values_mut() {
            let rules = entry.sandbox.rules();
            if let Some(rest) = rules.and_then(|rules| rules.without(secret)) {
                entry.sandbox.change(rest);
                entry.is_stale.store(true, Relaxed);
            }
        }
        Answer::Taken
    }

    /// What a name is to have.
    fn rules(
        &self,
        name: &str,
        network: &Network,
        secrets: &[SealedSecret],
    ) -> Result<Rules, String> {
        if !is_name(name) {
            return Err("the sandbox has a name that the gate does not take".to_owned());
        }
        let held = secrets.iter().map(|secret| self.vault.hold(secret, name));
        Rules::new(network, held.collect::<Result<_, _>>()?)
    }

    fn try_open(
        &self,
        name: &str,
        rules: Rules,
        fds: Vec<OwnedFd>,
    ) -> Result<OpenedNetwork, String> {
        let (placeholders, sent_bytes_max) = (rules.secrets.shown(), rules.sent_bytes_max);
        for fd in &fds {
            listener::check(fd).map_err(|error| format!("the listener is of no use: {error}"))?;
        }
        let mut sandboxes = self.lock();
        let full = sandboxes.len() >= limits::SANDBOXES_MAX;
        let entry = match sandboxes.entry(name.to_owned()) {
            std::collections::hash_map::Entry::Occupied(entry) => {
                // What its programs were answered with they still have.
                let before = entry.get().sandbox.rules();
                let minted = before.map(|before| before.secrets.minted_of(&rules.secrets));
                entry.get().sandbox.change(rules.with(minted.unwrap_or_default())?);
                entry.into_mut()
            }
            std::collections::hash_map::Entry::Vacant(_) if full => {
                return Err(format!("there are {} sandboxes already", limits::SANDBOXES_MAX));
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                let provider = self.outside.provider();
                let authority = Authority::open(self.authorities.as_fd(), name, provider)
                    .map_err(|error| format!("the sandbox gets no authority: {error}"))?;
                let outside = Arc::clone(&self.outside);
                let sandbox = Arc::new(Sandbox::new(rules, Some(authority), outside));
                entry.insert(Entry { sandbox, listeners: Vec::new(), is_stale: Arc::default() })
            }
        };
        entry.sandbox.table.allow(sent_bytes_max);
        // Another one, so that the listeners before this say nothing of it.
        entry.is_stale = Arc::default();
        if !fds.is_empty() {
            let listeners = fds.into_iter().map(|fd| accept(fd, &entry.sandbox, &entry.is_stale));
            entry.listeners = listeners.collect();
        }
        let authority = entry.sandbox.authority.as_ref();
        let authority = authority.ok_or("a caller has that name")?.pem().to_owned();
        Ok(OpenedNetwork { authority, placeholders })
    }

    pub(super) fn connection(
        &self,
        name: &str,
        captured: Option<u16>,
        fds: Vec<OwnedFd>,
    ) -> Answer {
        let Some(sandbox) = self.find(name) else { return Answer::Unknown };
        let Some(fd) = fds.into_iter().next() else {
            return Answer::Refused("no connection came with the request".to_owned());
        };
        if let Err(error) = listener::check_stream(&fd) {
            return Answer::Refused(format!("the connection is of no use: {error}"));
        }
        let Some(room) = sandbox.room_now() else {
            sandbox.table.count("", 0, Outcome::Refused(Refusal::Limit), None);
            return Answer::Refused(format!(
                "the sandbox has {} connections already",
                limits::CONNECTIONS_MAX
            ));
        };
        serve(&sandbox, Arrival { fd, captured, room });
        Answer::Taken
    }

    pub(super) fn flows(&self, name: &str) -> Answer {
        match self.find(name) {
            Some(sandbox) => Answer::Flows(sandbox.table.take()),
            None => Answer::Unknown,
        }
    }

    pub(super) fn questions(&self, name: &str) -> Answer {
        match self.find(name) {
            Some(sandbox) => Answer::Questions(sandbox.questions()),
            None => Answer::Unknown,
        }
    }

    pub(super) fn look(&self, name: &str) -> Answer {
        match self.lock().get(name) {
            Some(entry) if !entry.is_stale.load(Relaxed) => Answer::Taken,
            Some(_) | None => Answer::Unknown,
        }
    }

    pub(super) fn close(&self, name: &str) -> Answer {
        let Some(entry) = self.lock().remove(name) else {
            // What an earlier gate kept for it goes as well.
            if is_name(name) {
                Authority::remove(self.authorities.as_fd(), name);
            }
            return Answer::Unknown;
        };
        // The guest keeps what it handed out, for a gate that comes after one that died: programs
        // that still connect hear that nobody listens, rather than nothing.
        for listener in entry.listeners {
            let _ = rustix::net::shutdown(&listener.socket, Shutdown::Both);
        }
        entry.sandbox.end();
        Authority::remove(self.authorities.as_fd(), name);
        Answer::Flows(entry.sandbox.table.take())
    }
}

/// Starts to accept. It ends when what is given back is dropped.
fn accept(fd: OwnedFd, sandbox: &Arc<Sandbox>, is_stale: &Arc<AtomicBool>) -> AcceptingListener {
    let (keep, gone) = oneshot::channel::<()>();
    let (sandbox, is_stale) = (Arc::clone(sandbox), Arc::clone(is_stale));
    let socket = Arc::new(fd);
    let listener = Arc::clone(&socket);
    task::start(async move {
        let serve = |arrival| serve(&sandbox, arrival);
        tokio::select! {
            // A listener that broke is the guest's own loss; it can be opened again.
            _ = listener::accept(listener, Arc::clone(&sandbox), serve) => is_stale.store(true, Relaxed),
            _ = gone => {}
        }
    });
    AcceptingListener { socket, _accepting: keep }
}

fn serve(sandbox: &Arc<Sandbox>, arrival: Arrival) {
    let sandbox = Arc::clone(sandbox);
    task::start(inside::serve(arrival, sandbox));
}

/// What can be the name of a file, and nothing else.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=limits::SANDBOX_NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(plain)
}
