//! What went wrong beside the work. Never the end of a turn: it is told, and tried again.

use outrigger_sandbox::Error;

/// What went wrong beside the work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The disk of a sandbox could not be kept. What was kept before is still there.
    #[error("the disk of the sandbox `{sandbox}` could not be kept")]
    NotKept {
        /// Its name in its session.
        sandbox: String,
        /// Why.
        #[source]
        source: Error,
    },
    /// A sandbox was begun over what the template of its project was made over: what the project
    /// depends on, its tools and its history are not in it.
    #[error("the sandbox `{sandbox}` has nothing of what was made for its project")]
    WithoutProject {
        /// Its name in its session.
        sandbox: String,
        /// Why: the template is not here.
        #[source]
        source: Error,
    },
    /// A sandbox could not be suspended. It goes on running.
    #[error("the sandbox `{sandbox}` could not be suspended")]
    NotSuspended {
        /// Its name in its session.
        sandbox: String,
        /// Why.
        #[source]
        source: Error,
    },
    /// What a session changed of memory or skills could not be looked up for its journal.
    /// The versions are in the store, and are noted the next time.
    #[error("what the session changed of memory and skills could not be noted: {reason}")]
    NotNoted {
        /// Why.
        reason: String,
    },
    /// The store is busy or full. What is known is held, and written when it is back.
    #[error("the store can't be reached now: {reason}. Nothing is lost while this process waits")]
    StoreAway {
        /// What it said.
        reason: String,
    },
    /// A sandbox or snapshot that nobody needs any more could not be removed.
    #[error("`{name}` could not be removed")]
    NotRemoved {
        /// Its name at its backend.
        name: String,
        /// Why.
        #[source]
        source: Error,
    },
}
