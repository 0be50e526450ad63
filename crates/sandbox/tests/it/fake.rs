//! The fake: what it claims, its clock, and its ends.

use expect_test::expect;
use outrigger_sandbox::fake::{Disk, Fake};
use outrigger_sandbox::{
    Backend, Command, End, Error, ExecId, Execute, Executed, Sandbox, SandboxId, conformance,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

fn name() -> SandboxId {
    SandboxId::new("box").expect("a valid name")
}

fn shell(id: &str, line: &str) -> Execute {
    Execute::new(ExecId::new(id).expect("a valid id"), Command::Shell(line.to_owned()))
}

async fn made(fake: &Fake) -> Arc<dyn Sandbox> {
    fake.create(&name(), &Fake::spec()).await.expect("the fake does as asked")
}

async fn run(sandbox: &dyn Sandbox, id: &str, line: &str) -> Executed {
    sandbox.execute(shell(id, line), &()).await.expect("the fake does as asked")
}

#[tokio::test(start_paused = true)]
async fn passes_the_suite_as_far_as_it_claims_to() {
    let report = conformance::run(Arc::new(Fake::new()), None).await;
    report.assert_passed();
    let last = report.to_string().lines().last().unwrap().to_owned();
    expect!["fake: 222 passed, 0 failed, 100 not applicable"].assert_eq(&last);
}

#[tokio::test]
async fn a_filter_chooses_cases_and_none_is_no_success() {
    let report = conformance::run(Arc::new(Fake::new()), Some("exec/exit_codes")).await;
    report.assert_passed();
    assert_eq!(report.cases.len(), 1);
    let empty = conformance::run(Arc::new(Fake::new()), Some("no such case")).await;
    assert!(std::panic::catch_unwind(|| empty.assert_passed()).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_crashed_driver_is_replaced_and_nothing_runs_twice() {
    let fake = Fake::new();
    let line = "append log one; sleep 5; append log two; echo done";
    let first = made(&fake).await;
    let begun = Instant::now();
    timeout(Duration::from_secs(1), first.execute(shell("e", line), &())).await.unwrap_err();
    drop(first);
    let second = fake.clone().find(&name()).await.unwrap().unwrap();
    assert_eq!(run(&*second, "e", line).await.stdout, b"done\n");
    assert_eq!(begun.elapsed(), Duration::from_secs(5), "the virtual clock is followed");
    assert_eq!(fake.peek(&name(), "log").unwrap(), b"onetwo");
    assert_eq!(fake.starts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_sandbox_says_so_and_has_another_life() {
    for (disk, left) in [(Disk::Kept, Some(b"one".to_vec())), (Disk::Dropped, None)] {
        let fake = Fake::new();
        let old = made(&fake).await;
        let running = old.execute(shell("e", "append log one; sleep 9; append log two"), &());
        let losing = async {
            tokio::time::advance(Duration::from_secs(1)).await;
            fake.lose(&name(), disk);
        };
        let (lost, ()) = tokio::join!(running, losing);
        assert!(matches!(lost, Err(Error::Lost { .. })));
        assert!(fake.find(&name()).await.unwrap().is_none());
        let new = made(&fake).await;
        assert_ne!(old.generation(), new.generation());
        assert_eq!(fake.peek(&name(), "log"), left);
        assert!(matches!(old.execute(shell("f", "true"), &()).await, Err(Error::Lost { .. })));
        assert_eq!(run(&*new, "e", "exit 4").await.end, End::Exited(4));
        assert_eq!(fake.starts().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn what_its_shell_knows_and_what_not() {
    let fake = Fake::new();
    let sandbox = made(&fake).await;
    let mut shown = String::new();
    for (number, line) in [
        "write f a b; append f c; cat f; fail",
        "echo oops >&2; false || echo ok",
        "nonsense; exit",
        "echo a | cat",
        "kill -9 $$",
        "cat missing",
    ]
    .iter()
    .enumerate()
    {
        let done = run(&*sandbox, &format!("e{number}"), line).await;
        let (out, err) = (String::from_utf8(done.stdout), String::from_utf8(done.stderr));
        shown += &format!("{line:?} {:?} {:?} {:?}\n", out.unwrap(), err.unwrap(), done.end);
    }
    expect![[r#"
        "write f a b; append f c; cat f; fail" "a bc" "failed\n" Exited(1)
        "echo oops >&2; false || echo ok" "ok\n" "oops\n" Exited(0)
        "nonsense; exit" "" "sh: nonsense: not found\n" Exited(127)
        "echo a | cat" "" "fake shell: unknown syntax: `|`\n" Exited(2)
        "kill -9 $$" "" "" Signalled(9)
        "cat missing" "" "cat: missing: there is nothing at that path\n" Exited(1)
    "#]]
    .assert_eq(&shown);
}
