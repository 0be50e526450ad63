//! Waiting for the next question of a program that asks one after the other.

use std::io;

use outrigger_sandbox::SpinWait;

use crate::sys;

/// When the loop of the guest sleeps.
#[derive(Debug, Default)]
pub(crate) struct Sleep {
    /// Something was asked in this turn.
    pub(crate) asked: bool,
    spin: SpinWait,
}

impl Sleep {
    /// Waits as poll(2) does, perhaps without sleeping at first.
    pub(crate) fn poll(&mut self, fds: &mut [libc::pollfd], timeout: i32) -> io::Result<()> {
        if std::mem::take(&mut self.asked) && timeout != 0 {
            let found = self.spin.look(|| match sys::poll(fds, 0) {
                Ok(()) => fds.iter().any(|fd| fd.revents != 0).then_some(Ok(())),
                Err(error) => Some(Err(error)),
            });
            if let Some(found) = found {
                return found;
            }
        }
        sys::poll(fds, timeout)
    }
}
