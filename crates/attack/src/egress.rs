//! Attacks 59 to 85: on the gate and its secrets, made from inside of sandboxes.
//!
//! Each function makes the attempts of one probe in sandboxes of its own, whose way out is a
//! real gate, against hosts that are this program. It must not know which backend it is on.

mod hosts;
mod http2;
pub(crate) mod lives;
pub(crate) mod places;
pub(crate) mod requests;
pub(crate) mod secrets;
pub(crate) mod streams;
mod wire;
mod world;
