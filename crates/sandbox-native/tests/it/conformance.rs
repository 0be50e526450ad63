//! What every backend must do.

use std::sync::Arc;

use crate::support::*;
use expect_test::expect;
use outrigger_sandbox::conformance;

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_passes() {
    let world = world().await;
    let backend = Arc::new(world.again().await);
    let report = conformance::run(backend, None).await;
    report.assert_passed();
    // Where root has cgroups there is nothing that it is let off.
    expect![[r#""#]].assert_eq(&report.let_off());
}
