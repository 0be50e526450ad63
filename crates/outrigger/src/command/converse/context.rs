//! What a conversation has wherever it goes on: the configuration, the directory, the model that
//! the next session begins with, and what was written back.

use outrigger_agent::SessionId;
use outrigger_repository::Change;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{Config, ModelChoice};
use crate::exit::{Failure, Kind, Outcome};
use crate::models;
use crate::network::Words;
use crate::paths::Paths;
use crate::show::row::Row;
use crate::show::{Tone, inert};

/// Cheap to copy: what takes long has one of its own.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) paths: Paths,
    pub(super) config: Arc<Config>,
    pub(super) model: ModelChoice,
    pub(super) dir: PathBuf,
    /// What was written back, the newest last; each as it was before and after.
    pub(super) applied: Vec<Vec<Change>>,
}

impl Context {
    pub(super) fn new(paths: &Paths, config: Config, model: ModelChoice, dir: PathBuf) -> Self {
        let (paths, config) = (paths.clone(), Arc::new(config));
        Self { paths, config, model, dir, applied: Vec::new() }
    }

    /// An error where no model is chosen: nothing could be said.
    pub(super) fn has_model(&self) -> Outcome {
        match self.model {
            ModelChoice::Unset => Err(models::unset()),
            _ => Ok(()),
        }
    }

    /// The model by its name.
    pub(super) fn model_name(&self) -> String {
        match &self.model {
            ModelChoice::Provider(model) => inert(&model.name),
            ModelChoice::Script(path) => {
                format!("the script {}", inert(&path.display().to_string()))
            }
            ModelChoice::Bundled(_) => "the bundled script".to_owned(),
            ModelChoice::Unset => "no model".to_owned(),
        }
    }

    /// Chooses another model. Whether that can be done.
    pub(super) fn choose(&mut self, name: &str, rows: &mut Vec<Row>) -> bool {
        match &mut self.model {
            ModelChoice::Provider(model) => {
                name.clone_into(&mut model.name);
                true
            }
            ModelChoice::Script(_) | ModelChoice::Bundled(_) | ModelChoice::Unset => {
                rows.push(Row::note(Tone::Warning, "! a script plays itself alone"));
                false
            }
        }
    }

    /// Lets the next session reach more, or nothing.
    pub(super) fn widen(&mut self, words: &Words) {
        let config = Arc::make_mut(&mut self.config);
        if let Some(first) = config.sandboxes.first_mut() {
            first.network = first.network.with(words);
        }
    }

    /// What the next session may reach.
    pub(super) fn network(&self) -> String {
        let first = self.config.sandboxes.first();
        first.map_or_else(String::new, |first| first.network.to_string())
    }

    /// What the last row says.
    pub(super) fn footer(&self, session: Option<&SessionId>) -> String {
        let dir = short(&self.dir);
        let model = self.model_name();
        match session {
            Some(session) => format!("session {session} · {model} · {dir}"),
            None => format!("{model} · {dir} · /help"),
        }
    }

    pub(super) fn not_open() -> Failure {
        Failure::new(Kind::NotFound, "there is no session yet: say something first")
    }
}

/// A directory as people write it.
pub(super) fn short(dir: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let below = home.as_ref().and_then(|home| dir.strip_prefix(home).ok());
    match below {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => inert(&format!("~/{}", below.display())),
        None => inert(&dir.display().to_string()),
    }
}
