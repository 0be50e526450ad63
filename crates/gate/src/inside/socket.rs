//! A connection from inside, of either kind.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::sockopt::socket_domain;
use rustix::net::{AddressFamily, RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::activity::Activity;

/// A connection from inside.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Stream,
    activity: Arc<Activity>,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(super) fn new(fd: OwnedFd, activity: Arc<Activity>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        let stream = if socket_domain(&fd)? == AddressFamily::UNIX {
            Stream::Unix(UnixStream::from_std(fd.into())?)
        } else {
            let stream = TcpStream::from_std(fd.into())?;
            let _ = stream.set_nodelay(true);
            Stream::Tcp(stream)
        };
        Ok(Self { stream, activity })
    }
}

impl Socket {
    /// The first byte, which stays to be read, as soon as it is there. `None`: there is none.
    pub(super) async fn first(&self) -> io::Result<Option<u8>> {
        let mut first = [0];
        let length = match &self.stream {
            Stream::Tcp(stream) => stream.peek(&mut first).await?,
            Stream::Unix(stream) => {
                let peek = || Ok(recv(stream, &mut first, RecvFlags::PEEK)?.1);
                stream.async_io(Interest::READABLE, peek).await?
            }
        };
        Ok((length > 0).then_some(first[0]))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        let read = match &mut socket.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        ready!(read)?;
        socket.activity.moved();
        Poll::Ready(Ok(()))
    }
}

impl Socket {
    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.activity.moved();
        }
        written
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let written = match &mut socket.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        socket.wrote(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let written = match &mut socket.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        };
        socket.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
