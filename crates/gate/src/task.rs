//! Tasks of the gate's process.

/// Starts a task that ends with what it serves: a listener, a connection or a request.
#[expect(
    clippy::disallowed_methods,
    reason = "the gate is a process of its own, below the engine and its registry of tasks"
)]
pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}
