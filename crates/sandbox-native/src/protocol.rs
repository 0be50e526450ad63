//! What an engine asks of the spawner, and how it stands on the socket.
//!
//! Owns the messages and their framing: version and length of four bytes each,
//! little-endian, then one postcard value. A descriptor may come with the first byte. One request per
//! connection, so that there is nothing to match.

use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use outrigger_sandbox::{
    CreateOutcome, CreateSpec, Error, Generation, Isolation, ListedSandbox, SandboxId, Snapshot,
    SnapshotId,
};
use rustix::net::{RecvFlags, SendFlags};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::image::request::{ImageAnswer, ImageRequest};
use crate::{limits, passing};

/// Version of the messages. A spawner outlives the engine that started it, and may
/// so be older than one that finds it.
const VERSION: u32 = 6;
/// Bytes of version and length.
const HEADER_BYTES: usize = 8;

/// A request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Create or attach.
    Create {
        id: SandboxId,
        spec: CreateSpec,
        /// Host paths beside the built-in ones, bound read-only.
        read_only: Vec<PathBuf>,
    },
    /// Attach if it lives.
    Find(SandboxId),
    /// All sandboxes.
    List,
    /// End and delete.
    Destroy(SandboxId),
    /// Have nothing of it run, its life kept.
    Suspend(SandboxId),
    /// Keep its disk under a name.
    Snapshot { id: SandboxId, name: SnapshotId },
    /// All snapshots.
    Snapshots,
    /// Forget a snapshot.
    Forget(SnapshotId),
    /// About templates and their layers; a layer comes as a descriptor.
    Image(ImageRequest),
}

impl Request {
    /// Whether all that can be answered fits into one message of the socket.
    pub(crate) fn has_small_answer(&self) -> bool {
        match self {
            Self::Create { .. }
            | Self::Find(_)
            | Self::Destroy(_)
            | Self::Suspend(_)
            | Self::Snapshot { .. }
            | Self::Forget(_) => true,
            Self::List | Self::Snapshots | Self::Image(_) => false,
        }
    }
}

/// An answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// To `Create` and `Find`, with a connection to its guest.
    Attached { generation: Generation, isolation: Isolation, outcome: CreateOutcome, frozen: bool },
    /// To `Find`: it does not live.
    Absent { cold: bool },
    /// To `List`.
    List(Vec<ListedSandbox>),
    /// To `Destroy`, `Suspend` and `Forget`.
    Done,
    /// To `Snapshot`.
    Snapshot(Snapshot),
    /// To `Snapshots`.
    Snapshots(Vec<Snapshot>),
    /// To `Image`.
    Image(ImageAnswer),
    /// To anything.
    Failed(Error),
}

/// Writes a message, with a descriptor or not.
pub(crate) fn send<T: Serialize>(
    stream: &UnixStream,
    message: &T,
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let body = postcard::to_allocvec(message).map_err(io::Error::other)?;
    if body.len() > limits::SPAWNER_MESSAGE_BYTES_MAX {
        return Err(io::Error::other("the message is too long"));
    }
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let frame = [&VERSION.to_le_bytes()[..], &length.to_le_bytes(), &body].concat();
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    let sent = passing::send(stream, &frame, &fds, SendFlags::empty())?;
    (&*stream).write_all(&frame[sent..])
}

/// Reads a message and the descriptor that came with it.
pub(crate) fn receive<T: DeserializeOwned>(
    stream: &UnixStream,
) -> io::Result<(T, Option<OwnedFd>)> {
    let mut header = [0; HEADER_BYTES];
    let (got, fds) = passing::receive(stream, &mut header, RecvFlags::empty())?;
    if got == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    (&*stream).read_exact(&mut header[got..])?;
    let [v0, v1, v2, v3, l0, l1, l2, l3] = header;
    if u32::from_le_bytes([v0, v1, v2, v3]) != VERSION {
        let reason = "a spawner of another version serves this state directory; \
                      destroy its sandboxes with that version, and it ends within a minute";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if length > limits::SPAWNER_MESSAGE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    let mut body = vec![0; length];
    (&*stream).read_exact(&mut body)?;
    let message = postcard::from_bytes(&body)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok((message, fds.into_iter().next()))
}

/// Takes bytes as either side would, as they are and as the body of a frame. For
/// fuzzing: it must refuse or understand, and what it understands it can send again.
#[cfg(fuzzing)]
pub fn fuzz(bytes: &[u8]) {
    fn arrives<T: Serialize + DeserializeOwned>(stream: &[u8]) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        (&ours).write_all(stream).expect("the input is shorter than a socket's buffer");
        drop(ours);
        let Ok((message, _)) = receive::<T>(&theirs) else { return };
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        send(&ours, &message, None).expect("it fits as it came");
        receive::<T>(&theirs).expect("what we send is a message");
    }
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let framed = [&VERSION.to_le_bytes()[..], &length.to_le_bytes(), bytes].concat();
    for stream in [bytes, &framed] {
        arrives::<Request>(stream);
        arrives::<Answer>(stream);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_descriptor_comes_with_its_message() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let id = SandboxId::new("a").unwrap();
        send(&ours, &Request::Find(id.clone()), Some(ours.as_fd())).unwrap();
        let (message, fd) = receive::<Request>(&theirs).unwrap();
        assert!(matches!(message, Request::Find(found) if found == id));
        assert!(fd.is_some());
    }

    #[test]
    fn a_signal_cuts_no_message_short() {
        extern "C" fn nothing(_: libc::c_int) {}
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGUSR1, nothing as *const () as libc::sighandler_t) };
        let (told, heard) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            // SAFETY: no memory is passed.
            told.send(unsafe { libc::pthread_self() }).unwrap();
            receive::<Request>(&theirs).map(|(message, _)| message)
        });
        let thread = heard.recv().unwrap();
        for _ in 0..100 {
            if reader.is_finished() {
                break;
            }
            // SAFETY: the thread was not joined, so this is its own handle.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            std::thread::sleep(std::time::Duration::from_millis(1)); // poll: between signals it waits again
        }
        send(&ours, &Request::List, None).unwrap();
        assert!(matches!(reader.join().unwrap(), Ok(Request::List)));
    }

    #[test]
    fn a_length_above_the_limit_is_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&ours).write_all(&VERSION.to_le_bytes()).unwrap();
        (&ours).write_all(&u32::MAX.to_le_bytes()).unwrap();
        let error = receive::<Request>(&theirs).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn another_version_is_told_apart() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&ours).write_all(&[9, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        let error = receive::<Request>(&theirs).unwrap_err();
        assert!(error.to_string().contains("another version"), "{error}");
    }
}
