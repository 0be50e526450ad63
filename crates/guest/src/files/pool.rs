//! A few threads of the sandbox's user.
//!
//! Owns their queue and their number. Each gives up the guest's own user before it
//! takes its first operation, so that every path is opened with the rights that a
//! command would have.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use outrigger_sandbox::{Error, ExecId, FileOp, FileReply};
use rustix::event::{EventfdFlags, eventfd};

use super::perform::perform;
use crate::exec::caller::Caller;
use crate::{limits, sys};

/// Whom a finished operation concerns.
#[derive(Debug)]
pub(super) enum Ticket {
    /// One that only read: its caller.
    Caller(Caller),
    /// One that changed something: its id, under which its callers stand.
    Id(ExecId),
}

type Answer = (Ticket, Result<FileReply, Error>);

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<(FileOp, Ticket)>,
    idle: usize,
    threads: usize,
}

#[derive(Debug)]
struct PoolState {
    queue: Mutex<Queue>,
    ready: Condvar,
    wake: OwnedFd,
    /// Whether threads have descriptors of their own. What they open may be answered for by
    /// this program: with its devices they would keep its end from being seen.
    apart: bool,
}

/// The threads, and what is to be done.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<PoolState>,
    answers: Receiver<Answer>,
    answer: Sender<Answer>,
    due: usize,
}

impl Pool {
    /// A pool without threads yet, and the descriptor that tells of answers.
    pub(super) fn new(apart: bool) -> io::Result<(Self, OwnedFd)> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let tells = wake.try_clone()?;
        let shared = PoolState { queue: Mutex::default(), ready: Condvar::new(), wake, apart };
        let (answer, answers) = channel();
        Ok((Self { shared: Arc::new(shared), answers, answer, due: 0 }, tells))
    }

    /// Queues an operation and sees to it that a thread takes it.
    pub(super) fn submit(&mut self, op: FileOp, ticket: Ticket) -> Result<(), Error> {
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.jobs.len() >= limits::FILE_QUEUE_MAX {
            return Err(Error::Backend("too many file operations wait already".to_owned()));
        }
        let starved = queue.idle <= queue.jobs.len() && queue.threads < limits::FILE_THREADS_MAX;
        if starved {
            let (shared, answer) = (Arc::clone(&self.shared), self.answer.clone());
            let started = std::thread::Builder::new()
                .stack_size(limits::FILE_STACK_BYTES)
                .spawn(move || work(&shared, &answer));
            match started {
                Ok(_) => queue.threads += 1,
                Err(error) if queue.threads == 0 => {
                    let why = format!(
                        "no thread for file operations: {error}; the process limit may be reached"
                    );
                    return Err(Error::Backend(why));
                }
                Err(_) => {}
            }
        }
        queue.jobs.push_back((op, ticket));
        drop(queue);
        self.due += 1;
        self.shared.ready.notify_one();
        Ok(())
    }

    /// The next answer, if there is one.
    pub(super) fn finished(&mut self) -> Option<Answer> {
        let answer = self.answers.try_recv().ok()?;
        self.due -= 1;
        Some(answer)
    }

    /// Operations whose answer was not taken yet.
    pub(super) fn due(&self) -> usize {
        self.due
    }
}

fn work(shared: &PoolState, answer: &Sender<Answer>) {
    // Without the switch nothing may be touched: each operation is answered with that.
    let apart = if shared.apart { sys::keep_apart(shared.wake.as_fd()) } else { Ok(()) };
    let rights = apart.and_then(|()| sys::become_user(sys::agent_id()));
    loop {
        let mut queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let (op, ticket) = loop {
            if let Some(job) = queue.jobs.pop_front() {
                break job;
            }
            queue.idle += 1;
            queue = shared.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        };
        drop(queue);
        let result = match &rights {
            Ok(()) => perform(op),
            Err(error) => Err(Error::Backend(format!("cannot become the sandbox's user: {error}"))),
        };
        if answer.send((ticket, result)).is_err() {
            return;
        }
        let _ = rustix::io::write(&shared.wake, &1_u64.to_ne_bytes());
    }
}
