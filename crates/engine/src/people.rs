//! What people do to sessions: each a fenced append, and a poke by who called.

mod answer;
pub(crate) mod command;
mod fork;
mod pictures;

pub use answer::AnswerRequest;
pub use command::ResumeChange;
pub use fork::SessionCheckpoint;
pub use pictures::ensure_shown;
