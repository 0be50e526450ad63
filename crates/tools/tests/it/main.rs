//! The tools as a model meets them, on the fake sandbox.

mod approved;
mod malformed;
mod namespace;
mod performed;
mod recovery;
mod schemas;
mod world;
