//! Tasks of a connection.

/// Starts a task that ends with its connection and touches nothing else.
#[expect(
    clippy::disallowed_methods,
    reason = "a backend stands below the engine and its registry of tasks; these end with their socket"
)]
pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}
