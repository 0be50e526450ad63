//! What the server asks of whoever knows the skills.

use async_trait::async_trait;
use outrigger_api::SkillList;
use std::fmt::Debug;

use crate::RequestError;

/// Knows the skills, and what is configured of them.
#[async_trait]
pub trait SkillCatalog: Send + Sync + Debug {
    /// The skills that a person sees, also folders that are none.
    ///
    /// # Errors
    /// What the store says.
    async fn list(&self, person: &str) -> Result<SkillList, RequestError>;
}
