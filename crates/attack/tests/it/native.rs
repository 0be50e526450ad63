//! Everything that can be tried quickly, on the native backend.

use outrigger_attack::{NativeWorld, Scale, run};

#[tokio::test(flavor = "multi_thread")]
async fn the_native_backend_holds() {
    let world = NativeWorld::open(env!("CARGO_BIN_EXE_attack").into()).await.unwrap();
    let report = run(world.target(), Scale::Fast, None, &|_| {}).await;
    world.close().await.unwrap();
    assert!(report.attempts.len() > 400, "{report}");
    assert_eq!(report.unexpected().count(), 0, "\n{report}");
}
