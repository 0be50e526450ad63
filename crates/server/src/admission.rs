//! People who are let in for longer than a request takes: streams and terminals end once they may
//! not any more.

use axum::http::HeaderMap;
use outrigger_api::ProblemCode;
use outrigger_policy::AccessAction;
use std::time::Duration;

use crate::limits::ADMISSION_LOOK_MS;
use crate::sandboxes::SandboxUse;
use crate::{RequestError, Server, login};

/// What somebody was let in to.
#[derive(Debug, Clone)]
pub(crate) enum AdmittedTo {
    Server,
    Session(String),
    Sandbox(String, SandboxUse),
}

/// Who was let in, by what they sent along, and to what.
#[derive(Debug)]
pub(crate) struct Admission {
    server: Server,
    headers: HeaderMap,
    to: AdmittedTo,
}

impl Admission {
    pub(crate) fn new(server: &Server, headers: &HeaderMap, to: AdmittedTo) -> Self {
        Self { server: server.clone(), headers: headers.clone(), to }
    }

    async fn check(&self) -> Result<(), RequestError> {
        let person = login::person(&self.server, &self.headers).await?;
        match &self.to {
            AdmittedTo::Server => Ok(()),
            AdmittedTo::Session(name) => {
                self.server.session(&person, name, AccessAction::View).await.map(drop)
            }
            AdmittedTo::Sandbox(name, what) => self.server.sandbox(&person, name, *what).map(drop),
        }
    }

    /// Comes back once they may not any more: their key is gone, or what they may is less.
    pub(crate) async fn until_dismissed(self) {
        loop {
            tokio::time::sleep(Duration::from_millis(ADMISSION_LOOK_MS)).await;
            // A store that can't be asked now says nothing about anybody.
            if self.check().await.is_err_and(|error| error.code != ProblemCode::Internal) {
                return;
            }
        }
    }
}
