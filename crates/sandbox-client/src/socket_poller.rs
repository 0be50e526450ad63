//! Reads of a socket without asking the runtime, which would wake others of its threads for
//! each question.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use outrigger_sandbox::SpinWait;

use crate::limits::SPINS_IN_A_ROW_MAX;

/// A socket that is looked at for a while before its runtime is asked.
#[derive(Debug)]
pub(crate) struct SocketPoller {
    socket: Arc<UnixStream>,
    spin: SpinWait,
    in_a_row: u32,
}

impl SocketPoller {
    pub(crate) fn new(socket: Arc<UnixStream>) -> Self {
        Self { socket, spin: SpinWait::default(), in_a_row: 0 }
    }

    /// Reads what comes soon.
    pub(crate) async fn read(&mut self, piece: &mut [u8]) -> Option<io::Result<usize>> {
        self.in_a_row += 1;
        if self.in_a_row >= SPINS_IN_A_ROW_MAX {
            self.in_a_row = 0;
            tokio::task::yield_now().await;
        }
        let mut socket = &*self.socket;
        let found = self.spin.look(|| match socket.read(piece) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            read => Some(read),
        });
        if found.is_none() {
            self.in_a_row = 0;
        }
        found
    }
}
