//! What can go wrong while a workspace is copied.

/// What can go wrong while a workspace is copied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The starting content is not in the blob store.
    #[error("the starting content of the workspace can't be read")]
    Blob(#[source] outrigger_store::Error),
    /// The archive is damaged.
    #[error("the archive of the starting content is damaged")]
    Archive(#[source] std::io::Error),
    /// A path in the archive is no UTF-8, absolute, or leaves the workspace.
    #[error("`{0}` can't stand in a workspace")]
    Path(String),
    /// The sandbox refused a file.
    #[error("the sandbox refused {path}")]
    Sandbox {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: outrigger_sandbox::Error,
    },
    /// The changes are too large to be taken out.
    #[error("the changed files have more than {0} bytes")]
    TooLarge(u64),
    /// The sandbox answered something else than it was asked.
    #[error("the sandbox gave an answer that does not fit the question")]
    Protocol,
}

/// The whole chain of causes in one line.
#[must_use]
pub fn explain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        // Some errors of other crates tell their cause as well.
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
