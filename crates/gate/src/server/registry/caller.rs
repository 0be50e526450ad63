//! Callers: processes of the installation itself, which ask in their own name.
//!
//! Owns the socket of each, which lies in the gate's directory under its name, and that a
//! caller and what is under way for it end with the connection that opened it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::super::directory::{listen, remove_socket};
use super::{Entry, Registry, accept};
use crate::limits;
use crate::network::Network;
use crate::protocol::{Answer, CALLER, OpenedNetwork};
use crate::sandbox::Sandbox;
use crate::secret::SealedSecret;

/// What a caller has until it ends.
#[derive(Debug)]
pub(crate) struct CallerLease {
    name: String,
    sandbox: Arc<Sandbox>,
}

impl Registry {
    pub(crate) fn call(
        &self,
        name: &str,
        network: &Network,
        secrets: &[SealedSecret],
    ) -> (Answer, Option<CallerLease>) {
        match self.try_call(name, network, secrets) {
            Ok((opened, lease)) => (Answer::Opened(opened), Some(lease)),
            Err(sentence) => (Answer::Refused(sentence), None),
        }
    }

    fn try_call(
        &self,
        name: &str,
        network: &Network,
        secrets: &[SealedSecret],
    ) -> Result<(OpenedNetwork, CallerLease), String> {
        if !name.starts_with(CALLER) {
            return Err("the caller has a name that the gate does not take".to_owned());
        }
        let rules = self.rules(name, network, secrets)?;
        let (authority, placeholders) = (String::new(), rules.secrets.shown());
        let mut sandboxes = self.lock();
        if sandboxes.len() >= limits::SANDBOXES_MAX {
            return Err(format!("there are {} sandboxes already", limits::SANDBOXES_MAX));
        }
        let listener = listen(&self.dir, name);
        let listener = listener.map_err(|error| format!("the caller gets no socket: {error}"))?;
        let sandbox = Arc::new(Sandbox::new(rules, None, Arc::clone(&self.outside)));
        let is_stale = Arc::default();
        let listeners = vec![accept(OwnedFd::from(listener), &sandbox, &is_stale)];
        let entry = Entry { sandbox: Arc::clone(&sandbox), listeners, is_stale };
        if let Some(before) = sandboxes.insert(name.to_owned(), entry) {
            before.sandbox.end();
        }
        let lease = CallerLease { name: name.to_owned(), sandbox };
        Ok((OpenedNetwork { authority, placeholders }, lease))
    }

    /// Forgets a caller, unless another one has its name by now.
    pub(crate) fn leave(&self, lease: &CallerLease) {
        let mut sandboxes = self.lock();
        let same = |entry: &Entry| Arc::ptr_eq(&entry.sandbox, &lease.sandbox);
        if sandboxes.get(&lease.name).is_some_and(same) {
            sandboxes.remove(&lease.name);
            remove_socket(&self.dir, &lease.name);
        }
        lease.sandbox.end();
    }
}
