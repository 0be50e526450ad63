//! What every backend must do.

use std::sync::Arc;

use crate::support::*;
use expect_test::expect;
use outrigger_sandbox_native::{Config, Native};
use outrigger_sandbox_testing::FakeTrees;
use outrigger_sandbox_testing::conformance::{self, SuiteTarget};

fn target(native: Arc<Native>, trees: Arc<FakeTrees>) -> SuiteTarget {
    SuiteTarget { trees: Some(trees), networks: Some(native.clone()), backend: native }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_passes() {
    let trees = Arc::new(FakeTrees::new(&["/memory", "/skills"]));
    let world = world().await;
    let config = Config { trees: Some(trees.clone()), ..config(world.state.path()) };
    let backend = Arc::new(Native::open(config).await.unwrap());
    let report = conformance::run(target(backend, trees), None).await;
    report.assert_passed();
    // Where root has cgroups there is nothing that it is let off.
    expect![[r#""#]].assert_eq(&report.let_off());
}

/// That part alone, to be quick while it is worked on.
#[tokio::test(flavor = "multi_thread")]
async fn trees_are_served() {
    let trees = Arc::new(FakeTrees::new(&["/memory", "/skills"]));
    let world = world().await;
    let config = Config { trees: Some(trees.clone()), ..config(world.state.path()) };
    let backend = Arc::new(Native::open(config).await.unwrap());
    conformance::run(target(backend, trees), Some("served/")).await.assert_passed();
}
