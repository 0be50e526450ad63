//! What is being answered: one future for each request that has to wait.
//!
//! Owns them and when each goes on. No runtime and no thread: the serving loop has those
//! polled that were woken, and nothing else ever waits.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Tasks that were woken.
#[derive(Debug, Default)]
struct WakeQueue(Mutex<Vec<u64>>);

struct TaskWaker {
    number: u64,
    ready: Arc<WakeQueue>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}

struct Task {
    work: Work,
    waker: Waker,
}

/// Tasks, each for one request.
#[derive(Default)]
pub(super) struct Tasks {
    waiting: RefCell<BTreeMap<u64, Task>>,
    /// Not polled yet.
    begun: RefCell<Vec<(u64, Work)>>,
    ready: Arc<WakeQueue>,
    next: Cell<u64>,
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tasks").finish_non_exhaustive()
    }
}

impl Tasks {
    /// Takes work; it begins at the next [`Tasks::run`]. Gives its number.
    pub(super) fn begin(&self, work: impl Future<Output = ()> + 'static) -> u64 {
        self.next.set(self.next.get() + 1);
        self.begun.borrow_mut().push((self.next.get(), Box::pin(work)));
        self.next.get()
    }

    /// Moves everything on that can go on.
    pub(super) fn run(&self) {
        loop {
            let begun = std::mem::take(&mut *self.begun.borrow_mut());
            let woken = {
                let mut ready = self.ready.0.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *ready)
            };
            if begun.is_empty() && woken.is_empty() {
                return;
            }
            for (number, work) in begun {
                let waker =
                    Waker::from(Arc::new(TaskWaker { number, ready: Arc::clone(&self.ready) }));
                self.poll(number, Task { work, waker });
            }
            for number in woken {
                // One that was woken twice may have ended.
                let task = self.waiting.borrow_mut().remove(&number);
                if let Some(task) = task {
                    self.poll(number, task);
                }
            }
        }
    }

    fn poll(&self, number: u64, mut task: Task) {
        let mut context = Context::from_waker(&task.waker);
        if task.work.as_mut().poll(&mut context).is_pending() {
            self.waiting.borrow_mut().insert(number, task);
        }
    }

    /// Ends one that waits. `false`: it ended by itself.
    pub(super) fn end(&self, number: u64) -> bool {
        let task = self.waiting.borrow_mut().remove(&number);
        task.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::task::Poll;

    use super::*;

    #[test]
    fn what_was_woken_goes_on_and_what_was_ended_does_not() {
        let tasks = Rc::new(Tasks::default());
        let said: Rc<RefCell<Vec<&str>>> = Rc::default();
        let sleeper: Rc<RefCell<Option<Waker>>> = Rc::default();
        let wait = |name: &'static str| {
            let (said, sleeper) = (Rc::clone(&said), Rc::clone(&sleeper));
            let mut first = true;
            async move {
                poll_fn(|context| {
                    *sleeper.borrow_mut() = Some(context.waker().clone());
                    if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }
                })
                .await;
                said.borrow_mut().push(name);
            }
        };
        tasks.begin(wait("one"));
        tasks.run();
        assert!(said.borrow().is_empty());
        sleeper.borrow_mut().take().unwrap().wake();
        tasks.run();
        let two = tasks.begin(wait("two"));
        tasks.run();
        assert!(tasks.end(two));
        assert!(!tasks.end(two));
        sleeper.borrow_mut().take().unwrap().wake();
        tasks.run();
        assert_eq!(*said.borrow(), ["one"]);
    }
}
