//! Stopping what commands left behind, and letting it go on.
//!
//! Owns those who wait until all of it stopped. Never waits itself: the kernel stops
//! one process after the other, and the serving loop asks again how far it is.

use std::io;
use std::time::{Duration, Instant};

use outrigger_sandbox::Error;
use outrigger_sandbox::wire::GuestReply;

use crate::connection::Connections;
use crate::exec::caller::Caller;
use crate::exec::process_group::Cgroups;
use crate::limits;

/// Who has everything stopped, and since when.
#[derive(Debug, Default)]
pub(crate) struct Freezer {
    waiting: Vec<Caller>,
    until: Option<Instant>,
}

fn failed(error: &io::Error) -> Error {
    Error::Backend(format!("what commands left behind can't be stopped or let go on: {error}"))
}

impl Freezer {
    /// Begins to stop everything. Nothing of a running command may be there.
    pub(crate) fn freeze(&mut self, cgroups: &mut Cgroups, caller: Caller, out: &mut Connections) {
        match cgroups.freeze() {
            Ok(true) => {
                self.waiting.push(caller);
                let limit = Duration::from_millis(limits::FREEZE_MS_MAX);
                self.until.get_or_insert_with(|| Instant::now() + limit);
                self.step(cgroups, out);
            }
            Ok(false) => {
                let (what, reason) = ("freezing".to_owned(), "it has no cgroup".to_owned());
                out.reply(caller, GuestReply::Frozen(Err(Error::Unsupported { what, reason })));
            }
            Err(error) => out.reply(caller, GuestReply::Frozen(Err(failed(&error)))),
        }
    }

    /// Lets everything go on, if it was stopped.
    pub(crate) fn thaw(
        &mut self,
        cgroups: &mut Cgroups,
        out: &mut Connections,
    ) -> Result<(), Error> {
        let reason = "it was let go on before all of it stopped".to_owned();
        self.answer(out, &Err(Error::Busy { reason }));
        cgroups.thaw().map_err(|error| failed(&error))
    }

    /// When to ask again.
    pub(crate) fn wake(&self) -> Option<Duration> {
        self.until.map(|_| Duration::from_millis(limits::FREEZE_POLL_MS))
    }

    /// Answers those who wait, if it is time.
    pub(crate) fn step(&mut self, cgroups: &mut Cgroups, out: &mut Connections) {
        let Some(until) = self.until else { return };
        match cgroups.is_frozen() {
            Ok(true) => self.answer(out, &Ok(())),
            Ok(false) if Instant::now() < until => {}
            slow => {
                let error = slow.err().unwrap_or_else(|| io::ErrorKind::TimedOut.into());
                let _ = cgroups.thaw();
                self.answer(out, &Err(failed(&error)));
            }
        }
    }

    fn answer(&mut self, out: &mut Connections, result: &Result<(), Error>) {
        self.until = None;
        for caller in self.waiting.drain(..) {
            out.reply(caller, GuestReply::Frozen(result.clone()));
        }
    }
}
