//! What every backend must do.

use std::sync::Arc;

use crate::support::*;
use expect_test::expect_file;
use outrigger_sandbox::{Backend, MemoryTrees, conformance};

/// What it was let off, but for the cases about trees, which have a test of their own.
fn without_trees(let_off: &str) -> String {
    let starts = ["it was given no trees to serve:", "it declares no served trees:"];
    let trees = |line: &&str| starts.contains(&line.trim_end()) || line.starts_with("  served/");
    let_off.split_inclusive('\n').filter(|line| !trees(line)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_passes() {
    let world = world().await;
    let report = conformance::run(Arc::new(world.again().await), None, None).await;
    println!("{report}");
    report.assert_passed();
    expect_file!["let_off.txt"].assert_eq(&without_trees(&report.let_off()));
    assert_eq!(world.owned("container").len(), 0, "containers are left");
    // The guest program and its record.
    assert_eq!(world.owned("volume").len(), 2, "volumes are left");
}

/// That part alone, with trees.
#[tokio::test(flavor = "multi_thread")]
async fn trees_are_served_where_the_host_allows_it() {
    let trees = Arc::new(MemoryTrees::new(&["/memory", "/skills"]));
    let world = world().await;
    let docker = Arc::new(world.serving(trees.clone()).await);
    let live = docker.capabilities().live_mounts;
    // It depends on whom the tests are run by, and of which daemon; the layer says so.
    let layers = &docker.capabilities().layers;
    let layer = layers.iter().find(|layer| layer.name == "served trees").unwrap();
    println!("{}", layer.detail);
    assert_eq!(layer.active, live, "{layer:?}");
    for part in ["served/", "declared/served"] {
        let report = conformance::run(docker.clone(), Some(trees.clone()), Some(part)).await;
        println!("{report}");
        assert!(report.failed().next().is_none(), "{report}");
        let ran = report.cases.len() - report.not_applicable().count();
        assert_eq!(ran > 1, live && part == "served/", "{report}");
    }
}
