//! Sessions that a session starts: what they may do and spend, how they end, and what a
//! crash makes of them.

use outrigger_agent::{
    Answer, Delegate, Event, Limit, Park, Price, Role, Seq, SessionId, State, ToolKind, TurnEnd,
};
use outrigger_engine::{AnswerRequest, Error, ResumeChange};
use outrigger_policy::RuleSet;
use outrigger_sandbox::{Backend, LifecycleState};
use outrigger_store::{Journal, load_all};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::Notify;

use crate::model::{Step, call, calls, done, run};
use crate::world::{World, drive, notices, results, said, session, work};

fn agent(name: &str) -> Delegate {
    Delegate {
        name: name.to_owned(),
        description: format!("{name}s."),
        system: None,
        tools: None,
        limit: Limit::NONE,
    }
}

/// A machine whose sessions may start `default` and `helper`, who say this.
async fn world(below: &[(&str, Vec<Step>)]) -> World {
    let mut world = World::new().await;
    world.role =
        Role { agents: vec![agent("default"), agent("helper")], deep: 1, ..Role::default() };
    world.below = below.iter().map(|(task, steps)| ((*task).to_owned(), steps.clone())).collect();
    world
}

fn task(text: &str) -> Value {
    json!({ "task": text, "agent": "helper" })
}

fn start(text: &str) -> Step {
    call("task", task(text))
}

/// The session that is the only subagent of `s1`.
async fn child(world: &World) -> SessionId {
    let rows = world.journal.sessions(None, 10).await.unwrap();
    let mut below = rows.into_iter().map(|row| row.session).filter(|id| id.as_str() != "s1");
    let only = below.next().unwrap();
    assert_eq!(below.next(), None);
    only
}

async fn status(world: &World, of: &SessionId) -> String {
    let rows = world.journal.sessions(None, 100).await.unwrap();
    rows.into_iter().find(|row| row.session == *of).unwrap().status
}

/// What is spent and reserved together never is more than may be spent.
async fn never_over(world: &World, of: &SessionId) -> State {
    let mut state = State::default();
    load_all(&world.journal, of, Seq(0), |record| {
        state = std::mem::take(&mut state).apply(&record);
        let all = state.spent().plus(state.reserved());
        assert!(all.fits(state.budget()), "{of} after {record:?}: {all:?}");
    })
    .await
    .unwrap();
    state
}

#[tokio::test(start_paused = true)]
async fn it_works_on_a_copy_and_its_answer_returns() {
    let world =
        world(&[("look", vec![run("append /workspace/a y; cat /workspace/a"), done()])]).await;
    let steps = [
        run("append /workspace/a x"),
        start("look"),
        run("cat /workspace/a"),
        call("task", json!({ "task": "look", "files": "start" })),
        done(),
    ];
    let (engine, one) = world.played(&steps).await;
    let state = engine.state(&one).await.unwrap();
    let gave = results(&state);
    assert_eq!(gave[1], "reply 1", "its last words, {gave:?}");
    assert!(gave[2].starts_with("x\n") || gave[2].starts_with("x["), "not the copy: {gave:?}");
    assert_eq!(gave[3], "reply 1");
    let rows = world.journal.sessions(None, 10).await.unwrap();
    let mut below: Vec<_> = rows.iter().filter(|row| row.session != one).collect();
    let place = |id: &SessionId| id.as_str().rsplit('-').next().unwrap().parse::<u64>().unwrap();
    below.sort_by_key(|row| place(&row.session));
    let mut spent = state.spent().minus(state.spent());
    for (row, (found, agent)) in below.iter().zip([("xy", "helper"), ("y", "default")]) {
        assert_eq!((row.status.as_str(), row.title.as_str()), ("done", "look"));
        assert!(row.session.as_str().starts_with("s1-"));
        let child = engine.state(&row.session).await.unwrap();
        assert!(results(&child)[0].starts_with(found), "{:?}", results(&child));
        let spec = child.spec().unwrap();
        assert_eq!(spec.role.acting(), format!("agent:{agent}"));
        assert_eq!(spec.role.above(), ["agent:default"]);
        assert!(spec.tools.iter().all(|tool| tool.kind != ToolKind::Subagent), "no deeper");
        assert!(Backend::find(&world.spy, &work(&row.session)).await.unwrap().is_none());
        assert_eq!(child.ended(), Some(&TurnEnd::Answered));
        assert!(child.charged() == child.charged().minus(child.spent()), "its parent is charged");
        assert!(world.journal.verify(&row.session).await.is_ok());
        spent = spent.plus(child.spent());
    }
    assert_eq!(below.len(), 2);
    // Ten of its own: five replies, and five calls.
    assert_eq!(state.spent().steps, 9 + spent.steps);
    assert_eq!(state.spent().tokens, 5 * 120 + spent.tokens);
    // Nothing is left of what was copied.
    let left = world.spy.inner.list().await.unwrap();
    assert_eq!(left.iter().map(|listed| listed.id.clone()).collect::<Vec<_>>(), [work(&one)]);
    let kept = outrigger_sandbox::Snapshots::list(world.spy.snapshots().unwrap()).await.unwrap();
    assert!(kept.iter().all(|kept| kept.sandbox == work(&one)), "{kept:?}");
    assert!(
        kept.iter().all(|kept| state.kept("work").iter().any(|k| k.snapshot == kept.name.as_str()))
    );
}

#[tokio::test(start_paused = true)]
async fn many_run_beside_each_other() {
    let world = world(&[("think", vec![done().after(60_000)])]).await;
    let many: Vec<_> = (10..26).map(|it| task(&format!("think {it}"))).collect();
    let steps =
        [calls("task", &[1, 2, 3].map(|it| task(&format!("think {it}")))), calls("task", &many)];
    let (engine, one) = world.played(&steps).await;
    let took = world.now_ms();
    assert!((120_000..125_000).contains(&took), "{took}");
    let gave = results(&engine.state(&one).await.unwrap());
    assert_eq!(gave, vec!["reply 0"; 19]);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_race_for_a_cent_and_start_what_fits() {
    const CENT: u64 = 10_000_000;
    let mut world = world(&[("race", vec![run("echo on"); 30])]).await;
    world.budget = Limit { money_nanos: Some(CENT), ..Limit::NONE };
    // The worst case of a call is about a twelfth of a cent, and it costs a 60th.
    world.price = Some(Price { input: 1_000_000, output: 500_000, ..Price::default() });
    let race: Vec<_> = (0..100).map(|it| task(&format!("race {it}"))).collect();
    let steps = [calls("task", &race), done()];
    let engine = world.engine(&steps);
    let one = world.open(&engine, "s1").await;
    assert_eq!(
        outrigger_engine::drive(&engine, &one, &Notify::new()).await.unwrap(),
        Park::Message
    );
    let state = never_over(&world, &one).await;
    let (mut settled, mut asked) = (0, 0);
    let rows = world.journal.sessions(None, 200).await.unwrap();
    for row in rows.iter().filter(|row| row.session != one) {
        let child = never_over(&world, &row.session).await;
        settled += child.spent().money_nanos;
        asked += usize::from(child.spent().tokens > 0);
    }
    assert!(settled <= CENT && asked >= 2, "{asked} children asked the model, for {settled}");
    assert!(state.spent().money_nanos <= CENT && state.spent().money_nanos >= settled);
    assert_eq!(rows.len(), asked + 1, "who could not ask once is not opened");
    let told = results(&state).iter().filter(|gave| gave.contains("does not cover")).count();
    assert_eq!(told + asked, 100);
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_for_a_person_holds_nothing() {
    const RULES: &str = r#"
        @id("all") permit (principal, action, resource);
        @id("below-asks") @approvable("anyone")
        forbid (principal, action == Action::"execute", resource) when { context.depth > 0 };
    "#;
    for same_process in [true, false] {
        let mut world =
            world(&[("ask", vec![run("append /workspace/n x; cat /workspace/n"), done()])]).await;
        world.rules = RuleSet::from_cedar(RULES).unwrap();
        let steps = [run("true"), start("ask"), done()];
        let engine = world.engine(&steps);
        let one = world.open(&engine, "s1").await;
        assert!(matches!(
            outrigger_engine::drive(&engine, &one, &Notify::new()).await.unwrap(),
            Park::Answers(_)
        ));
        let below = child(&world).await;
        let above = engine.state(&below).await.unwrap().spec().unwrap().parent().cloned();
        assert_eq!(above.unwrap().session, one);
        for id in [&one, &below] {
            assert_eq!(status(&world, id).await, State::WAITS);
        }
        assert_eq!(outrigger_engine::suspend(&engine, &one).await.unwrap(), []);
        let listed = Backend::list(&world.spy).await.unwrap();
        assert!(listed.iter().all(|listed| listed.state == LifecycleState::Cold), "{listed:?}");
        let waiting = engine.state(&below).await.unwrap();
        let (effect, _, asked) = waiting.asked().next().unwrap();
        let answer = Answer::Approved { rule_set: asked.rule_set, seen: None, standing: None };
        let by = "person:test".to_owned();
        let given = AnswerRequest { effect, by, arguments: None, asked: None, answer };
        if same_process {
            // It goes on by itself where the session above is being driven.
            let poke = Notify::new();
            let (driving, answering) = (outrigger_engine::drive(&engine, &one, &poke), async {
                engine.answer(&below, given).await.unwrap();
            });
            let (park, ()) = tokio::join!(driving, answering);
            if matches!(park.unwrap(), Park::Answers(_)) {
                drive(&engine, &one).await;
            }
        } else {
            let other = world.engine(&steps);
            other.answer(&below, given).await.unwrap();
            drive(&other, &one).await;
        }
        let state = engine.state(&one).await.unwrap();
        assert_eq!(results(&state)[1], "reply 1");
        let found = results(&engine.state(&below).await.unwrap());
        assert!(found[0].starts_with('x') && !found[0].starts_with("xx"), "{found:?}");
    }
}

/// The driver is dropped at every moment, and another goes on.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_moment_finds_the_same_one_again() {
    for at_ms in (0..400).step_by(7) {
        let below = vec![
            run("append /workspace/n x; sleep 0.1; cat /workspace/n").after(50),
            done().after(50),
        ];
        let world = world(&[("count", below)]).await;
        let steps = [run("append /workspace/n x").after(20), start("count").after(20), done()];
        let engine = world.engine(&steps);
        let one = world.open(&engine, "s1").await;
        let limit = Duration::from_millis(at_ms);
        drop(
            tokio::time::timeout(limit, outrigger_engine::drive(&engine, &one, &Notify::new()))
                .await,
        );
        let engine = world.engine(&steps);
        drive(&engine, &one).await;
        assert_eq!(results(&engine.state(&one).await.unwrap())[1], "reply 1", "{at_ms}");
        let below = engine.state(&child(&world).await).await.unwrap();
        assert!(
            results(&below)[0].starts_with("xx\n") || results(&below)[0].starts_with("xx["),
            "{at_ms}: {:?}",
            results(&below)
        );
        assert_eq!(below.status(), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_reaches_all_of_them() {
    for cancel in [false, true] {
        let mut world = world(&[
            ("sleep", vec![run("append /workspace/n x; sleep 3600"), run("append /workspace/n y")]),
            ("deep", vec![call("task", json!({ "task": "sleep" })), done()]),
        ])
        .await;
        world.role.deep = 2;
        let tasks = [task("sleep 1"), task("deep"), task("sleep 2")];
        let engine = world.engine(&[run("true"), calls("task", &tasks), done()]);
        let one = world.open(&engine, "s1").await;
        let stop = async {
            tokio::time::sleep(Duration::from_secs(60)).await; // poll: none; the clock is paused
            if cancel {
                engine.cancel(&one, "person:test", "enough").await.unwrap();
            } else {
                engine.interrupt(&one, "person:test").await.unwrap();
            }
        };
        let poke = Notify::new();
        let (park, ()) = tokio::join!(outrigger_engine::drive(&engine, &one, &poke), stop);
        assert!(matches!(park.unwrap(), Park::Message | Park::Cancelled));
        let rows = world.journal.sessions(None, 10).await.unwrap();
        assert_eq!(rows.len(), 5, "{rows:?}");
        for row in rows.iter().filter(|row| row.session != one) {
            let state = engine.state(&row.session).await.unwrap();
            assert!(state.is_cancelled() && !state.in_turn(), "{row:?}");
        }
        let listed = Backend::list(&world.spy).await.unwrap();
        assert!(listed.iter().all(|listed| listed.id == work(&one)), "{listed:?}");
        let state = engine.state(&one).await.unwrap();
        assert!(state.spent().tokens >= 4 * 120, "what they spent is spent: {:?}", state.spent());
    }
}

/// What is told to be not begun can't begin afterwards, whoever else had more luck.
#[tokio::test(start_paused = true)]
async fn one_whose_files_can_t_be_copied_is_given_up_for_good() {
    let world = world(&[("late", vec![done()])]).await;
    let steps = [run("append /workspace/n x"), start("late").after(10), done()];
    let engine = world.engine(&steps);
    let one = world.open(&engine, "s1").await;
    world.spy.fill();
    drive(&engine, &one).await;
    let gave = results(&engine.state(&one).await.unwrap());
    assert!(
        gave[1].starts_with("No subagent was started: its files could not be copied"),
        "{gave:?}"
    );
    let below = child(&world).await;
    let state = engine.state(&below).await.unwrap();
    assert!(state.is_cancelled() && state.conversation().is_empty(), "it heard its task");
    // Another driver of the subagent finds nothing to do.
    assert_eq!(
        outrigger_engine::drive(&engine, &below, &Notify::new()).await.unwrap(),
        Park::Cancelled
    );
    assert_eq!(engine.state(&below).await.unwrap().spent().steps, 0);
}

/// A driver that others believe dead is about to open what was stopped.
#[tokio::test(start_paused = true)]
async fn what_was_stopped_before_it_was_opened_is_not_opened() {
    let world = world(&[("late", vec![run("append /workspace/n x"), done()])]).await;
    let engine = world.engine(&[start("late").after(10), done()]);
    let one = world.open(&engine, "s1").await;
    // All that the first driver did.
    drop(
        tokio::time::timeout(
            Duration::from_millis(5),
            outrigger_engine::drive(&engine, &one, &Notify::new()),
        )
        .await,
    );
    drive(&engine, &one).await;
    let below = child(&world).await;
    let events = records(&world, &one).await;
    let begun = events
        .iter()
        .position(|event| matches!(event, Event::Started { reserved, .. } if reserved.steps > 1));

    // Another machine, on which it was only begun.
    let again = self::world(&[("late", vec![run("append /workspace/n x"), done()])]).await;
    let engine = again.engine(&[start("late").after(10), done()]);
    for (index, event) in events.into_iter().enumerate().take(begun.unwrap() + 1) {
        let after = Seq(index as u64);
        again.journal.append(&one, after, 0, &[event], Default::default()).await.unwrap();
    }
    engine.interrupt(&one, "person:test").await.unwrap();
    drive(&engine, &one).await;
    let state = engine.state(&below).await.unwrap();
    assert!(state.is_cancelled());
    assert_eq!(state.spent().steps, 0);
}

async fn records(world: &World, of: &SessionId) -> Vec<Event> {
    let mut events = Vec::new();
    load_all(&world.journal, of, Seq(0), |record| events.push(record.event)).await.unwrap();
    events
}

#[tokio::test(start_paused = true)]
async fn it_has_no_right_that_those_above_have_not() {
    const RULES: &str = r#"
        @id("all") permit (principal, action, resource);
        @id("not-default") forbid (principal == Agent::"default", action == Action::"execute", resource);
        @id("not-root") forbid (principal, action == Action::"start_subagent", resource == Agent::"root");
    "#;
    let mut world = world(&[("run", vec![run("append /workspace/n x"), done()])]).await;
    world.rules = RuleSet::from_cedar(RULES).unwrap();
    world.role.agents.push(agent("root"));
    let root = json!({ "task": "run", "agent": "root" });
    let steps = [run("true"), start("run"), call("task", root), done()];
    let (engine, one) = world.played(&steps).await;
    let gave = results(&engine.state(&one).await.unwrap());
    assert!(gave[0].contains("not-default"), "{gave:?}");
    assert!(gave[2].contains("not-root"), "{gave:?}");
    let below = engine.state(&child(&world).await).await.unwrap();
    assert!(results(&below)[0].contains("not-default"), "{:?}", results(&below));
}

#[tokio::test(start_paused = true)]
async fn wrong_calls_say_what_is_wrong() {
    let world = world(&[]).await;
    let steps = [
        call("task", json!({ "task": " " })),
        call("task", json!({ "task": "x", "agent": "nobody" })),
        call("task", json!({ "task": "x", "budget": 3 })),
        call("task", json!({})),
        done(),
    ];
    let (engine, one) = world.played(&steps).await;
    let gave = results(&engine.state(&one).await.unwrap());
    for (gave, says) in gave.iter().zip([
        "`task` is empty",
        "no agent `nobody`, only default, helper",
        "unknown field `budget`",
        "missing field `task`",
    ]) {
        assert!(gave.contains(says), "{says}: {gave}");
    }
    assert_eq!(world.journal.sessions(None, 10).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn its_budget_is_a_part_and_nobody_raises_it() {
    let mut world = world(&[("spend", vec![run("true"); 50])]).await;
    world.budget = Limit { steps: Some(41), ..Limit::NONE };
    let all = json!({ "task": "spend", "max_steps": 6, "max_tokens": 1_000_000 });
    let (engine, one) = world.played(&[start("spend"), call("task", all), done()]).await;
    let state = never_over(&world, &one).await;
    let gave = results(&state);
    assert!(
        gave.iter().all(|gave| gave.starts_with("No answer: it has no steps left")),
        "{gave:?}"
    );
    let rows = world.journal.sessions(None, 10).await.unwrap();
    let mut budgets = Vec::new();
    for row in rows.iter().filter(|row| row.session != one) {
        let child = never_over(&world, &row.session).await;
        budgets.push((child.budget().steps.unwrap(), child.budget().tokens.unwrap()));
        let change = ResumeChange { budget: Some(Limit::NONE), ..ResumeChange::default() };
        let raised = engine.resume(&row.session, "person:test", change).await;
        assert!(matches!(raised, Err(Error::Subagent { parent, .. }) if parent == one));
        assert!(matches!(engine.say(&row.session, said("more")).await, Err(Error::Ended(_))));
    }
    budgets.sort_unstable();
    // A quarter of what is left after the call itself.
    assert_eq!(budgets, [(6, 1_000_000), (9, 250_000)]);
}

/// Refused, and not made less: the model learns what there is.
#[tokio::test(start_paused = true)]
async fn one_that_asks_for_more_than_there_is_is_not_started() {
    let mut world = world(&[("spend", vec![done()])]).await;
    world.budget = Limit { steps: Some(40), tokens: Some(100_000), ..Limit::NONE };
    world.role.agents[1].limit = Limit { steps: Some(5), ..Limit::NONE };
    let ask = |arguments: serde_json::Value| call("task", arguments);
    let steps = [
        ask(json!({ "task": "spend", "max_tokens": 1_000_000 })),
        ask(json!({ "task": "spend", "max_steps": 50 })),
        ask(json!({ "task": "spend", "agent": "helper", "max_steps": 6 })),
        ask(json!({ "task": "spend", "agent": "helper", "max_steps": 5 })),
        done(),
    ];
    let (engine, one) = world.played(&steps).await;
    let gave = results(&engine.state(&one).await.unwrap());
    for (gave, says) in gave.iter().zip([
        "`max_tokens` asks for 1000000, and 99",
        "`max_steps` asks for 50, and 3",
        "`max_steps` asks for 6, and 5 are the most for the agent `helper`",
    ]) {
        assert!(gave.starts_with("Not performed.") && gave.contains(says), "{says}: {gave}");
    }
    assert!(!gave[3].starts_with("Not performed."), "{gave:?}");
    assert_eq!(world.journal.sessions(None, 10).await.unwrap().len(), 2, "one was started");
}

/// What labels a session labels those that it starts: they may do no more than it.
#[tokio::test(start_paused = true)]
async fn labels_reach_them() {
    let mut world = world(&[("look", vec![run("true"), done()])]).await;
    world.rules = RuleSet::from_cedar(
        "@id(\"all\") permit (principal, action, resource);\n\
         @id(\"clean\") forbid (principal, action == Action::\"execute\", resource)\n\
         when { context.labels.contains(\"untrusted\") };",
    )
    .unwrap();
    let engine = world.engine(&[start("look"), done()]);
    let one = session("s1");
    let author = outrigger_agent::Author::Untrusted("AGENTS.md".to_owned());
    let guide = outrigger_agent::Message::new(author, "Obey.".to_owned());
    engine.open(&one, world.spec(), vec![guide, said("go")]).await.unwrap();
    drive(&engine, &one).await;
    let below = engine.state(&child(&world).await).await.unwrap();
    assert!(below.labels().contains("untrusted") && below.labels().contains("from:AGENTS.md"));
    assert!(results(&below)[0].contains("clean"), "{:?}", results(&below));
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_one_is_a_session_of_its_own() {
    let world =
        world(&[("look", vec![run("append /workspace/a y; cat /workspace/a"), done()])]).await;
    let (engine, _) = world.played(&[start("look"), done()]).await;
    let below = child(&world).await;
    let two = session("s2");
    engine.fork(&below, None, &two, "person:test").await.unwrap();
    let forked = engine.state(&two).await.unwrap();
    assert!(!forked.is_child());
    assert_eq!(forked.spec().unwrap().role.above(), ["agent:default"], "bound as before");
    engine.say(&two, said("look again")).await.unwrap();
    drive(&engine, &two).await;
    let forked = engine.state(&two).await.unwrap();
    assert_eq!(forked.charged(), forked.spent(), "nobody above it is charged");
}

#[tokio::test(start_paused = true)]
async fn stopping_an_account_reaches_them() {
    use outrigger_agent::AccountId;
    use outrigger_store::{AccountStop, Accounts, TermsChange};
    let world = world(&[("work", vec![run("true").after(60_000); 10])]).await;
    let engine = world.engine(&[start("work"), done()]);
    let one = world.open(&engine, "s1").await;
    let stop = async {
        tokio::time::sleep(Duration::from_secs(90)).await; // poll: none; the clock is paused
        let stopped = AccountStop { by: "p".to_owned(), reason: "enough".to_owned(), at_ms: 1 };
        let org = AccountId::organisation();
        world.journal.set_terms(&org, TermsChange::Stop(stopped)).await.unwrap();
    };
    let poke = Notify::new();
    let (park, ()) = tokio::join!(outrigger_engine::drive(&engine, &one, &poke), stop);
    assert_eq!(park.unwrap(), Park::Message);
    let below = engine.state(&child(&world).await).await.unwrap();
    assert!(matches!(below.ended(), Some(TurnEnd::OutOfBudget(_))), "{:?}", below.ended());
    assert!(below.spent().steps < 10);
    assert_eq!(status(&world, &one).await, "out of budget");
    let gave = results(&engine.state(&one).await.unwrap());
    assert!(gave[0].contains("`org` was stopped: enough"), "{gave:?}");
}

#[tokio::test(start_paused = true)]
async fn it_is_told_that_its_disk_is_a_copy_and_what_is_known_of_the_one_above() {
    let world = world(&[("look", vec![run("cat /workspace/a"), done()])]).await;
    let (engine, _) = world.played(&[run("append /workspace/a x"), start("look"), done()]).await;
    let below = engine.state(&child(&world).await).await.unwrap();
    assert_eq!(notices(&below).len(), 1, "{:?}", notices(&below));
    let ready = below.last_ready("work").unwrap();
    assert_eq!(ready.backend, "fake");
}
