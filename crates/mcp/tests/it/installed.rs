//! A server that is not ours, `@modelcontextprotocol/server-everything`.

#[path = "../../../model/tests/it/npm.rs"]
mod npm;

use std::path::PathBuf;

/// The program, installed if it is not there.
pub(crate) fn program() -> PathBuf {
    npm::installed("@modelcontextprotocol/server-everything", "2026.8.31", "dist/index.js")
}
