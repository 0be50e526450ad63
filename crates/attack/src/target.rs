//! What is attacked: a backend, and the door through which it takes images.
//!
//! Owns that door's form, so that attacks by images know no backend. It never says
//! what must come of one.

use std::fmt::Debug;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use outrigger_sandbox::{Backend, Networks};

/// The template that attacks by images make, and for which a backend must take one.
pub const TEMPLATE: &str = "attack-image";

/// The word that makes a program a gate: a file of roots and the gate's directory follow.
pub const GATE: &str = "--gate";

/// A backend under attack.
#[derive(Debug, Clone)]
pub struct Target {
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// Where it takes images.
    pub images: Arc<dyn Images>,
    /// Where its sandboxes get their way out.
    pub networks: Arc<dyn Networks>,
    /// The program that becomes a gate when its first argument is [`GATE`].
    pub program: PathBuf,
}

/// Where a backend takes images: as whoever operates it gives them, not through the port.
#[async_trait]
pub trait Images: Debug + Send + Sync {
    /// Who else reads the archives, if this project does not: what they are attacked
    /// with is not for us to withstand then.
    fn foreign_reader(&self) -> Option<&'static str>;

    /// Makes [`TEMPLATE`] of an archive as `docker save` writes them.
    ///
    /// # Errors
    /// Why it was refused; `Err` for everything that is no refusal begins with `failed`.
    async fn import(&self, archive: File) -> Result<(), String>;

    /// Deletes [`TEMPLATE`], if it is there.
    ///
    /// # Errors
    /// Why it stays.
    async fn forget(&self) -> Result<(), String>;

    /// Names of what images and sandboxes made of them left behind.
    ///
    /// # Errors
    /// Why nobody can tell.
    async fn left(&self) -> Result<Vec<String>, String>;
}
