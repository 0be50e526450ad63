//! The table of attacks, and a fast run of all of it against the native backend.

mod native;
mod table;
