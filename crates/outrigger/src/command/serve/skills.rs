//! The skills of a server: what there is for whom.

use async_trait::async_trait;
use outrigger_agent::Digest;
use outrigger_api::SkillList;
use outrigger_server::{RequestError, SkillCatalog};
use std::sync::Arc;

use super::context::ServeContext;
use super::failure::of_server;
use crate::exit::Outcome;
use crate::skills;

/// The skills of this installation.
#[derive(Debug)]
pub(super) struct ServedSkills {
    context: Arc<ServeContext>,
}

impl ServedSkills {
    pub(super) fn new(context: Arc<ServeContext>) -> Self {
        Self { context }
    }

    async fn all(&self, person: &str) -> Outcome<SkillList> {
        let ServeContext { config, store, rules, .. } = &*self.context;
        let directory = rules.directory()?;
        let config = &config.skills;
        let trusted_keys = config.trusted_keys.iter();
        let trusted_keys = trusted_keys.map(|key| Digest::from_sha256(key.0).to_string()).collect();
        let Some(scope) = person.parse().ok().and_then(|who| directory.authenticate(&who)) else {
            return Ok(SkillList { data: Vec::new(), trusted_keys });
        };
        let found = skills::find(&*store.entries, &scope).await;
        let found = found.map_err(|error| skills::failed(&error))?;
        let data = found.iter().map(|it| it.info(&scope, config)).collect();
        Ok(SkillList { data, trusted_keys })
    }
}

#[async_trait]
impl SkillCatalog for ServedSkills {
    async fn list(&self, person: &str) -> Result<SkillList, RequestError> {
        self.all(person).await.map_err(of_server)
    }
}
