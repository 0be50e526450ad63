//! The evil program as bytes, to be put into a sandbox by a test.
//!
//! Owns nothing but the bytes: the program itself is this package's binary, which
//! the build script compiles statically, so that it runs whatever the sandbox's
//! root holds. No published program may ever embed it.

/// The static program that attacks the sandbox it runs in. `try GROUP...` prints one
/// JSON object per attempt; `bomb KIND [ARGUMENT...]` takes what it can get.
#[cfg(not(outrigger_inner))]
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/outrigger-evil"));
