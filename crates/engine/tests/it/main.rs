//! The engine and the sandboxes of its sessions, in memory and on a paused clock.

mod apart;
mod collect;
mod model;
mod replace;
mod shared;
mod spy;
mod suspend;
mod world;
