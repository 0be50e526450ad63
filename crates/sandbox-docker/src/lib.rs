//! Sandboxes that are containers of a Docker daemon, or of what speaks its API.
//!
//! Owns what is asked of the daemon: hardened containers, the volumes that are their
//! disks, and one attached stream each, over which the guest inside is spoken to. A
//! sandbox is a container of one name; everything that two processes could do at
//! once is settled by the daemon's own names, so there is no daemon and no state of
//! ours. Must never pull an image, and never touch what does not carry the label of
//! its owner.
//!
//! Read first: [`Config`], [`Docker`].

#![forbid(unsafe_code)]

mod archive;
mod attach;
mod backend;
mod clock;
mod collect;
mod config;
mod container;
mod context;
mod copy;
mod disk;
mod due;
mod engine;
mod explain;
mod guest;
mod held;
mod keeper;
mod lifecycle;
mod limits;
mod list;
mod live;
mod maker;
mod names;
mod networks;
mod probe;
mod runc;
mod sandbox;
mod snapshots;
mod store;
mod stream;
mod turns;
mod used;
mod user;

pub use backend::Docker;
pub use config::Config;
