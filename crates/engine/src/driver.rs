//! A session in the hands of its driver: it decides, appends, performs and waits.

pub(crate) mod flush;
pub(crate) mod grants;
mod host;
pub(crate) mod journal;
pub(crate) mod retry;
pub(crate) mod session;
mod step;
pub(crate) mod tasks;
pub(crate) mod wait;

pub use host::{EmbeddedHost, Host};
pub use step::drive;
pub use tasks::{TaskKind, Tasks};
