//! Asks providers which models they have.

use futures_util::future::join_all;
use outrigger_model::ListedModel;
use std::time::Duration;

use super::reach::reach;
use crate::config::{ModelFile, Provider, ProviderModel};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::paths::Paths;

/// A provider that may be asked, and why it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerCandidate {
    pub(crate) provider: Provider,
    /// Nothing for its own address.
    pub(crate) base_url: Option<String>,
    /// Nothing where somebody named it.
    pub(crate) because: Option<String>,
}

impl ServerCandidate {
    /// A model of it.
    pub(crate) fn model(&self, file: &ModelFile, name: String) -> ProviderModel {
        ProviderModel {
            base_url: self.base_url.clone(),
            because: self.because.clone(),
            ..file.model_of(self.provider.clone(), name)
        }
    }

    /// Where it is.
    pub(crate) fn address(&self) -> &str {
        self.base_url.as_deref().unwrap_or(self.provider.base_url)
    }

    /// Which models it has. One on this machine answers at once or is not there.
    pub(crate) async fn models(
        &self,
        paths: &Paths,
        file: &ModelFile,
    ) -> Outcome<Vec<ListedModel>> {
        let (http, endpoint) = reach(paths, &self.model(file, String::new())).await?;
        let here = self.provider.is_local() && self.base_url.is_none();
        let wait = if here { limits::LOCAL_ANSWER_MS_MAX } else { limits::LISTING_MS_MAX };
        let asked = outrigger_model::list(&http, &endpoint, Duration::from_millis(wait)).await;
        asked.map_err(|error| {
            let kind = if error.is_auth() { Kind::Auth } else { Kind::ModelFailed };
            let mut failure = Failure::from_error(kind, &error);
            failure.message = format!("{}: {}", self.provider.name, failure.message);
            failure
        })
    }
}

/// What a provider said when it was asked for its models.
#[derive(Debug)]
pub(crate) struct ProviderSurvey {
    pub(crate) candidate: ServerCandidate,
    pub(crate) models: Outcome<Vec<ListedModel>>,
}

/// Asks all of them at once. Servers on this machine that are not there are left out.
pub(crate) async fn survey(
    paths: &Paths,
    file: &ModelFile,
    candidates: Vec<ServerCandidate>,
) -> Vec<ProviderSurvey> {
    let only = candidates.len() == 1;
    let asked = join_all(candidates.iter().map(|candidate| candidate.models(paths, file))).await;
    let surveys = candidates.into_iter().zip(asked);
    let surveys = surveys.map(|(candidate, models)| ProviderSurvey { candidate, models });
    let there = |survey: &ProviderSurvey| {
        only || survey.models.is_ok() || !survey.candidate.provider.is_local()
    };
    surveys.filter(there).collect()
}
