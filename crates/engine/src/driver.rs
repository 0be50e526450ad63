//! A session in the hands of its driver: it decides, appends, performs and waits.

pub(crate) mod grants;
mod host;
pub(crate) mod retry;
pub(crate) mod session;
mod step;
pub(crate) mod tasks;
pub(crate) mod wait;

pub use host::{EmbeddedHost, Host};
pub use tasks::{TaskKind, Tasks};
