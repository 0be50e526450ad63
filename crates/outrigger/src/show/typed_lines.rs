//! The lines that whoever sits at the terminal types.

use tokio::task::JoinHandle;

use crate::exit::{Failure, Kind, Outcome};

/// Lines of standard input, read on another thread, so that Ctrl-C is heard meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// A line that is waited for. One that nobody waits for any more is taken by the next who
    /// does: whatever is typed reaches somebody.
    reading: Option<JoinHandle<std::io::Result<Option<String>>>>,
}

impl Lines {
    /// The next line, nothing at the end of the input. Dropping it loses nothing.
    pub(crate) async fn next(&mut self) -> Outcome<Option<String>> {
        let reading = self.reading.get_or_insert_with(|| {
            tokio::task::spawn_blocking(|| {
                let mut line = String::new();
                let bytes = std::io::stdin().read_line(&mut line)?;
                Ok((bytes > 0).then_some(line))
            })
        });
        let read = reading.await;
        self.reading = None;
        let read = read.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic))?;
        read.map_err(|error| Failure::from_error(Kind::Usage, &error))
    }

    /// Gives up what was typed before there was a question: it can't be an answer to it.
    pub(crate) fn forget(&mut self) {
        if self.reading.as_ref().is_some_and(JoinHandle::is_finished) {
            self.reading = None;
        }
        // One that is no terminal has nothing to forget.
        let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    }
}
