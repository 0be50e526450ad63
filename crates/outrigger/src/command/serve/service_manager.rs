//! Tells the service manager that the server serves, and that it ends: see sd_notify(3).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Whoever started the server and wants to know how it stands, as systemd does with `Type=notify`.
#[derive(Debug, Default)]
pub(super) struct ServiceManager(Option<UnixDatagram>);

impl ServiceManager {
    /// The one that the environment names, if it does. To be called before the process is confined.
    pub(super) fn of_environment() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return Self(None) };
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(&name),
        };
        let socket = UnixDatagram::unbound().and_then(|socket| {
            socket.connect_addr(&address?)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        Self(socket.ok())
    }

    /// The server answers from now on.
    pub(super) fn ready(&self) {
        self.tell(b"READY=1");
    }

    /// The server is about to end.
    pub(super) fn stopping(&self) {
        self.tell(b"STOPPING=1");
    }

    fn tell(&self, state: &[u8]) {
        // Who does not listen any more has no use for it.
        drop(self.0.as_ref().map(|socket| socket.send(state)));
    }
}
