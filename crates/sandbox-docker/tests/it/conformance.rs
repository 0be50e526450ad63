//! What every backend must do.

use std::sync::Arc;

use crate::support::*;
use expect_test::expect_file;
use outrigger_sandbox_testing::conformance::{self, SuiteTarget};

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_passes() {
    let world = world().await;
    let docker = Arc::new(world.again().await);
    let target = SuiteTarget { networks: Some(docker.clone()), ..SuiteTarget::new(docker) };
    let report = conformance::run(target, None).await;
    println!("{report}");
    report.assert_passed();
    expect_file!["let_off.txt"].assert_eq(&report.let_off());
    assert_eq!(world.owned("container").len(), 0, "containers are left");
    // The guest program and its record.
    assert_eq!(world.owned("volume").len(), 2, "volumes are left");
}
