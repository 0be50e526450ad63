//! The socket by which the gate is asked.
//!
//! Owns who may ask, how long a request may take, and when the gate is not needed any more.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::registry::{CallerLease, Registry};
use crate::protocol::{self, Answer, Request};
use crate::{limits, passing, task};

/// Serves until nobody asked and nothing was connected for a while, a longer one where a
/// sandbox is open.
pub(super) async fn serve(socket: UnixListener, registry: Arc<Registry>) -> io::Result<()> {
    let socket = tokio::net::UnixListener::from_std(socket)?;
    let room = Arc::new(Semaphore::new(limits::REQUESTS_AT_ONCE_MAX));
    let look = Duration::from_millis(limits::UNUSED_MS_MAX);
    let mut used = Instant::now();
    loop {
        let accepted = tokio::time::timeout(look, socket.accept()).await;
        let stream = match accepted {
            Ok(Ok((stream, _))) => stream,
            Ok(Err(_)) => {
                tokio::time::sleep(Duration::from_millis(limits::ACCEPT_PAUSE_MS)).await;
                continue;
            }
            Err(_) => {
                let asked = room.available_permits() < limits::REQUESTS_AT_ONCE_MAX;
                let unused = match registry.is_empty() {
                    true => limits::UNUSED_MS_MAX,
                    false => limits::UNUSED_OPEN_MS_MAX,
                };
                if asked || registry.is_used() {
                    used = Instant::now();
                } else if used.elapsed() >= Duration::from_millis(unused) {
                    return Ok(());
                }
                continue;
            }
        };
        used = Instant::now();
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return Ok(()) };
        let registry = Arc::clone(&registry);
        task::start(async move {
            let limit = Duration::from_millis(limits::REQUEST_MS_MAX);
            // Whoever hung up or said nothing gets no answer.
            let answered = tokio::time::timeout(limit, answer(stream, &registry)).await;
            drop(permit);
            if let Ok(Ok(Some((mut stream, lease)))) = answered {
                // Nothing more is said on it: it ends when whoever asked lets go of it.
                let _ = stream.read(&mut [0]).await;
                if let Some(lease) = lease {
                    registry.leave(&lease);
                }
            }
        });
    }
}

/// Answers a request. A connection that stays is given back: by its end whoever looked knows
/// that the gate ended, and the gate that a caller did, which has a lease.
async fn answer(
    mut stream: UnixStream,
    registry: &Registry,
) -> io::Result<Option<(UnixStream, Option<CallerLease>)>> {
    let peer = rustix::net::sockopt::socket_peercred(&stream)?;
    if peer.uid != rustix::process::geteuid() {
        return Ok(None);
    }
    let (request, fds) = receive(&mut stream).await?;
    let mut lease = None;
    let stays = matches!(request, Request::Look { .. } | Request::Call { .. });
    let answer = match request {
        Request::Open { sandbox, network, secrets, declined } => {
            registry.open(&sandbox, &network, &secrets, declined, fds)
        }
        Request::Call { caller, network, secrets } => {
            let (answer, opened) = registry.call(&caller, &network, &secrets);
            lease = opened;
            answer
        }
        Request::Seal { id, terms, value } => registry.seal(id, terms, &value),
        Request::Verify { secret, message, signature } => {
            registry.verify(&secret, &message, &signature)
        }
        Request::Revoke { secret } => registry.revoke(&secret),
        Request::Connection { sandbox, captured } => registry.connection(&sandbox, captured, fds),
        Request::Look { sandbox } => registry.look(&sandbox),
        Request::Questions { sandbox } => registry.questions(&sandbox),
        Request::Flows { sandbox } => registry.flows(&sandbox),
        Request::Close { sandbox } => registry.close(&sandbox),
    };
    let bytes = match protocol::encode(&answer, limits::ANSWER_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) => protocol::encode(
            &Answer::Refused(format!("the answer can't be given: {error}")),
            limits::ANSWER_BYTES_MAX,
        )?,
    };
    let written = stream.write_all(&bytes).await;
    match (written, lease) {
        (Ok(()), lease) => Ok(stays.then_some((stream, lease))),
        (Err(error), Some(lease)) => {
            registry.leave(&lease);
            Err(error)
        }
        (Err(error), None) => Err(error),
    }
}

async fn receive(stream: &mut UnixStream) -> io::Result<(Request, Vec<OwnedFd>)> {
    let mut prefix = [0; protocol::LENGTH_BYTES];
    let (got, fds) =
        stream.async_io(Interest::READABLE, || passing::receive(&*stream, &mut prefix)).await?;
    if got == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    stream.read_exact(&mut prefix[got..]).await?;
    let mut bytes = Zeroizing::new(vec![0; protocol::length(prefix, limits::REQUEST_BYTES_MAX)?]);
    stream.read_exact(&mut bytes).await?;
    Ok((protocol::decode(&bytes)?, fds))
}
