//! The devices of served trees, where a container's engine starts the guest: they come
//! over a socket before anything is served.
//!
//! Owns that wait. No command runs while it lasts, so whoever connects is from outside.
//! First comes one message with the devices and the paths where they are going to be
//! mounted, one after the other with zero bytes between; `k` is the answer; `m` says that
//! all are mounted. A guest that is not given them ends, because it must not run commands
//! that find its folders without what is served there.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, send};

use crate::{control, limits, listen, sys};

/// The answer to the devices.
const KEPT: &[u8] = b"k";
/// What comes once they are mounted.
const MOUNTED: &[u8] = b"m";

/// Waits for them at a path.
pub(crate) fn receive(path: &Path) -> io::Result<Vec<(OwnedFd, String)>> {
    let until = Instant::now() + Duration::from_millis(limits::DEVICES_MS_MAX);
    let listener = listen::listen(path)?;
    let devices = loop {
        wait(&listener, until)?;
        // Who went away again had nothing to give.
        let Ok(socket) = accept_with(&listener, SocketFlags::CLOEXEC) else { continue };
        if let Some(devices) = take(&socket, until)? {
            break devices;
        }
    };
    std::fs::remove_file(path)?;
    Ok(devices)
}

fn wait(socket: &OwnedFd, until: Instant) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [sys::pollfd(socket, libc::POLLIN)];
        match sys::poll(&mut fds, i32::try_from(left.as_millis()).unwrap_or(i32::MAX)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            Ok(()) | Err(_) if fds[0].revents != 0 => return Ok(()),
            Ok(()) | Err(_) if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
            Ok(()) | Err(_) => {}
        }
    }
}

/// What one who connected gives. `None`: nothing.
fn take(socket: &OwnedFd, until: Instant) -> io::Result<Option<Vec<(OwnedFd, String)>>> {
    let mut bytes = vec![0; limits::REST_BYTES_MAX];
    wait(socket, until)?;
    let (length, fds) = control::take(socket, &mut bytes, RecvFlags::empty())?;
    if length == 0 {
        return Ok(None);
    }
    let paths = std::str::from_utf8(&bytes[..length]).map_err(io::Error::other)?;
    let paths: Vec<String> = paths.split('\0').map(str::to_owned).collect();
    if paths.len() != fds.len() {
        return Err(io::Error::other("there is not one device for each path"));
    }
    send(socket, KEPT, SendFlags::NOSIGNAL)?;
    let mut byte = [0; 1];
    wait(socket, until)?;
    let (length, _) = control::take(socket, &mut byte, RecvFlags::empty())?;
    if &byte[..length] != MOUNTED {
        return Err(io::Error::other("they were not mounted"));
    }
    Ok(Some(fds.into_iter().zip(paths).collect()))
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read, Write};
    use std::mem::MaybeUninit;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// What is taken of one who sends this with so many descriptors, and then that.
    fn taken(text: &str, fds: usize, then: &[u8]) -> io::Result<Option<Vec<(OwnedFd, String)>>> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let passed = vec![null.as_fd(); fds];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if fds > 0 {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&passed)));
        }
        if !text.is_empty() {
            let text = [IoSlice::new(text.as_bytes())];
            sendmsg(&theirs, &text, &mut ancillary, SendFlags::empty()).unwrap();
        }
        let then = then.to_owned();
        let answers = std::thread::spawn(move || {
            let mut theirs = theirs;
            let mut answer = [0; 1];
            if theirs.read_exact(&mut answer).is_ok() {
                let _ = theirs.write_all(&then);
            }
        });
        // One that has nothing to say goes away at once.
        if text.is_empty() {
            rustix::net::shutdown(&ours, rustix::net::Shutdown::Both).unwrap();
        }
        let taken = take(&OwnedFd::from(ours), soon());
        answers.join().unwrap();
        taken
    }

    #[test]
    fn devices_are_taken_with_their_paths_once_they_are_mounted() {
        let two = taken("/memory\0/skills", 2, b"m").unwrap().expect("they came");
        let paths: Vec<&str> = two.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(paths, ["/memory", "/skills"]);
        assert!(taken("", 0, b"").unwrap().is_none());
        for (text, fds, then) in
            [("/memory", 1, &b""[..]), ("/memory", 1, b"x"), ("/memory", 2, b"m"), ("/a", 0, b"m")]
        {
            assert!(taken(text, fds, then).is_err(), "{text} {fds} {then:?}");
        }
    }

    #[test]
    fn nobody_is_waited_for_for_ever() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let waited = wait(&OwnedFd::from(ours), Instant::now());
        assert_eq!(waited.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
