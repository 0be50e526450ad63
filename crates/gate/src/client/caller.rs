//! A caller's own way to the outside.
//!
//! Owns the connection that keeps a caller open in the gate, and that a gate which ended is
//! asked for the same again before the next request.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{RecvFlags, recv};
use tokio::sync::Mutex;

use super::{NetworkClient, Place, failure};
use crate::error::Error;
use crate::network::Network;
use crate::protocol::{Answer, CALLER, Request};
use crate::secret::SealedSecret;

/// A socket on which the gate takes requests of this process, in plain HTTP/1.1:
/// `POST /path`, and in `Host` a host that was granted, with its port. TLS begins behind it,
/// and placeholders are swapped as for sandboxes. It ends when this is dropped.
#[derive(Debug)]
pub struct CallerSocket {
    client: NetworkClient,
    name: String,
    network: Network,
    secrets: Vec<SealedSecret>,
    /// The gate's directory: paths of sockets are short, and this one need not be.
    dir: OwnedFd,
    /// `None`, or hung up: the gate has ended, or was never asked.
    lease: Mutex<Option<UnixStream>>,
}

impl NetworkClient {
    /// Opens a caller, for which this is granted. Gives what it has instead of secrets, by
    /// their names, as long as it lives.
    ///
    /// # Errors
    /// As [`NetworkClient::open`].
    pub async fn call(
        &self,
        network: Network,
        secrets: Vec<SealedSecret>,
    ) -> Result<(CallerSocket, BTreeMap<String, String>), Error> {
        let name = format!("{CALLER}{:032x}", fastrand::u128(..));
        let (lease, placeholders) = self.hold_caller(&name, &network, &secrets).await?;
        let dir = self.place.open_dir().map_err(Error::io("open the gate's directory"))?;
        let (client, lease) = (self.clone(), Mutex::new(Some(lease)));
        Ok((CallerSocket { client, name, network, secrets, dir, lease }, placeholders))
    }

    async fn hold_caller(
        &self,
        caller: &str,
        network: &Network,
        secrets: &[SealedSecret],
    ) -> Result<(UnixStream, BTreeMap<String, String>), Error> {
        let (network, secrets) = (network.clone(), secrets.to_vec());
        let request = Request::Call { caller: caller.to_owned(), network, secrets };
        match self.with(move |place: &Place| place.hold(&request, &[])).await? {
            (Answer::Opened(opened), lease) => Ok((lease, opened.placeholders)),
            (other, _) => Err(failure(other)),
        }
    }
}

impl CallerSocket {
    /// Where requests go. The path is this process's alone.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}/{}", self.dir.as_raw_fd(), self.name).into()
    }

    /// Sees to it that a gate takes requests, before one is sent. Costs a system call as long
    /// as the gate that was asked last is there.
    ///
    /// # Errors
    /// As [`NetworkClient::open`].
    pub async fn ready(&self) -> Result<(), Error> {
        let mut lease = self.lease.lock().await;
        if !lease.as_ref().is_some_and(is_held) {
            let again = self.client.hold_caller(&self.name, &self.network, &self.secrets);
            *lease = Some(again.await?.0);
        }
        Ok(())
    }
}

/// Whether the gate still has a connection, on which it says nothing more.
fn is_held(lease: &UnixStream) -> bool {
    let looked = recv(lease, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    looked.is_err_and(|error| error == rustix::io::Errno::AGAIN)
}
