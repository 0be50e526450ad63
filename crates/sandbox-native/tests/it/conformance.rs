//! What every backend must do.

use std::sync::Arc;

use crate::support::*;
use outrigger_sandbox::conformance;

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_passes() {
    let world = world().await;
    let backend = Arc::new(world.again().await);
    let report = conformance::run(backend, None).await;
    assert_eq!(report.failed().count(), 0, "\n{report}");
}
