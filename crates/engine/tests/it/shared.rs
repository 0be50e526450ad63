//! Sandboxes that the sessions of an assistant share.

use outrigger_agent::SandboxScope;
use outrigger_sandbox::Backend;
use outrigger_sandbox_testing::fake::Disk;
use std::time::Duration;
use tokio::sync::Notify;

use crate::model::{done, run};
use crate::spy::Spy;
use crate::world::{World, drive, notices, results};

async fn shared() -> World {
    World::with(Spy::new("fake"), SandboxScope::Assistant("ann".to_owned())).await
}

#[tokio::test(start_paused = true)]
async fn sessions_see_each_others_files_and_go_without_it() {
    let world = shared().await;
    let (first, one) = world.played(&[run("append a one"), done()]).await;
    assert_eq!(outrigger_engine::suspend(&first, &one).await.unwrap(), []);
    let second = world.engine(&[run("cat a"), done()]);
    let two = world.open(&second, "s2").await;
    drive(&second, &two).await;
    let state = second.state(&two).await.unwrap();
    assert!(results(&state)[0].starts_with("one"), "{:?}", results(&state));
    first.cancel(&one, "person:test", "done").await.unwrap();
    let state = first.state(&one).await.unwrap();
    assert_eq!(outrigger_engine::discard(&first, &one, &state).await, []);
    let there = Backend::list(&world.spy).await.unwrap();
    let there: Vec<String> = there.iter().map(|listed| listed.id.to_string()).collect();
    assert_eq!(there, ["assistant.ann.work"], "one sandbox, and it is not gone with a session");
}

#[tokio::test(start_paused = true)]
async fn who_stops_kills_nothing_of_the_others() {
    let world = shared().await;
    let (first, second) =
        (world.engine(&[run("sleep 9; append a one"), done()]), world.engine(&[run("sleep 99")]));
    let one = world.open(&first, "s1").await;
    let two = world.open(&second, "s2").await;
    let (poke, calm) = (Notify::new(), Notify::new());
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(1)).await; // poll: none; the clock is paused, this puts the two in order
        // It must not be suspended under the other one's command either.
        assert_eq!(outrigger_engine::suspend(&first, &one).await.unwrap(), []);
        second.interrupt(&two, "person:test").await.unwrap();
        poke.notify_one();
    };
    let (first_park, second_park, ()) = tokio::join!(
        outrigger_engine::drive(&first, &one, &calm),
        outrigger_engine::drive(&second, &two, &poke),
        stopping
    );
    first_park.unwrap();
    second_park.unwrap();
    let state = first.state(&one).await.unwrap();
    assert!(results(&state)[0].contains("[exit code 0]"), "{:?}", results(&state));
}

#[tokio::test(start_paused = true)]
async fn one_that_was_lost_begins_from_what_any_of_them_kept() {
    let world = shared().await;
    let first = world.engine(&[run("append a one"), done(), run("cat a"), run("cat a")]);
    let one = world.open(&first, "s1").await;
    drive(&first, &one).await;
    let second = world.engine(&[run("append a two"), done()]);
    let two = world.open(&second, "s2").await;
    drive(&second, &two).await;
    assert_eq!(outrigger_engine::suspend(&second, &two).await.unwrap(), []);
    let id = Backend::list(&world.spy).await.unwrap().remove(0).id;
    world.spy.inner.lose(&id, Disk::Dropped);
    first.say(&one, crate::world::said("go on")).await.unwrap();
    drive(&first, &one).await;
    let state = first.state(&one).await.unwrap();
    assert!(results(&state)[2].starts_with("onetwo"), "{:?}", results(&state));
    assert!(notices(&state)[0].contains("from its snapshot"), "{:?}", notices(&state));
}
