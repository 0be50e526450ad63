//! A server that is a program: it lives from call to call, and what ends it is told.

use outrigger_agent::Digest;
use outrigger_mcp::{Stdio, limits};
use outrigger_sandbox::Sandbox;
use outrigger_tools::outside::{Fault, Outside, OutsideCall, ToolAnswer, shown};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::shell::Shell;

/// It counts its calls in memory; what a call says, it does.
const COUNTER: &str = r#"
import json, os, sys, time
calls = 0
for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), asked.get("id")
    if id is None:
        continue
    say = lambda **more: print(json.dumps({"jsonrpc": "2.0", "id": id, **more}), flush=True)
    if method == "initialize":
        say(result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "counter", "version": "1"}})
    elif method == "tools/list":
        say(result={"tools": [{"name": "count", "description": "Counts.",
                               "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        calls += 1
        do = asked["params"]["arguments"].get("do")
        if do == "exit":
            sys.exit(7)
        if do == "hang":
            time.sleep(3600)
        if do == "slow":
            time.sleep(0.5)
        say(result={"content": [{"type": "text", "text": "%d of %d" % (calls, os.getpid())}]})
        if do == "leave":
            time.sleep(0.1)
            os._exit(0)
        if do == "half":
            sys.stdout.write('{"jsonrpc": "2.0", "id": %d, "resu' % (id + 1))
            sys.stdout.flush()
    else:
        say(error={"code": -32601, "message": "no"})
"#;

/// A server, and the sandbox of a session that nobody else has.
struct Home {
    server: Stdio,
    shell: Arc<Shell>,
    session: String,
    calls: AtomicU64,
}

impl Home {
    fn new(command: &[&str]) -> Self {
        let server = Stdio::new(command.iter().map(|word| (*word).to_owned()).collect());
        let session = format!("test-{}", uuid::Uuid::new_v4().simple());
        Self { server, shell: Shell::new("g"), session, calls: AtomicU64::new(0) }
    }

    /// Another driver of the same session.
    fn again(&self) -> Self {
        let mut again = Self::counter();
        again.session.clone_from(&self.session);
        again.shell = Arc::clone(&self.shell);
        again.calls = AtomicU64::new(self.calls.load(Ordering::SeqCst));
        again
    }

    fn counter() -> Self {
        Self::new(&["python3", "-c", COUNTER])
    }

    async fn digest(&self) -> Digest {
        let sandbox: Arc<dyn Sandbox> = Arc::clone(&self.shell) as _;
        self.server.list(Some(&sandbox)).await.unwrap().tools[0].digest()
    }

    async fn call(&self, held_to: &Digest, what: &str, ms: u64) -> Result<ToolAnswer, Fault> {
        self.call_of(&self.session, held_to, what, ms).await
    }

    async fn call_of(
        &self,
        holder: &str,
        held_to: &Digest,
        what: &str,
        timeout_ms: u64,
    ) -> Result<ToolAnswer, Fault> {
        let sandbox: Arc<dyn Sandbox> = Arc::clone(&self.shell) as _;
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let call = OutsideCall {
            tool: "count",
            held_to,
            arguments: &format!("{{\"do\":\"{what}\"}}"),
            key: "the-key",
            timeout_ms,
            exec: &format!("{holder}.{number}"),
            holder,
            sandbox: Some(&sandbox),
            sends: &AtomicU64::new(0),
        };
        self.server.call(&call).await
    }

    /// Waits until the program is over: it answers a moment before that.
    async fn is_over(&self) {
        let status = self.shell.tmp().join(format!(".mcp-{}/status", self.session));
        for _ in 0..1_000 {
            if status.exists() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await; // poll: it is no child of this process
        }
        panic!("{} still runs", self.session);
    }

    /// How often the program counted, and which process it is; whether it was begun anew.
    async fn count(&self, held_to: &Digest, what: &str) -> (u64, u64, bool) {
        read(&self.call(held_to, what, 20_000).await.unwrap())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What a session leaves behind goes with its sandbox, which is none here.
        let script =
            "for id in \"$0\"/.mcp-*/id; do read -r group _ < $id && kill -s KILL -- -$group; done";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).arg(self.shell.tmp()).stderr(std::process::Stdio::null());
        drop(command.status());
    }
}

fn read(answered: &ToolAnswer) -> (u64, u64, bool) {
    let text = shown("counter", answered, 10_000).text;
    let (notice, said) = text.rsplit_once('\n').unwrap_or(("", &text));
    let (count, process) = said.split_once(" of ").unwrap();
    (count.parse().unwrap(), process.parse().unwrap(), notice.contains("begun anew"))
}

/// Waits for the end of a process that was killed: nothing tells of it but the kernel.
fn ends(process: u64) {
    for _ in 0..1_000 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        if !stat.contains(") ") || stat.contains(") Z ") {
            return;
        }
        std::thread::sleep(Duration::from_millis(10)); // poll: it is no child of this process
    }
    panic!("{process} still runs");
}

#[tokio::test]
async fn it_keeps_what_it_holds_from_call_to_call() {
    let home = Home::counter();
    let held_to = home.digest().await;
    let (count, process, anew) = home.count(&held_to, "").await;
    assert_eq!((count, anew), (1, false));
    // Nothing runs as a command while nobody waits, so that its sandbox can rest.
    assert_eq!(home.shell.running(), [""; 0]);
    assert_eq!(home.count(&held_to, "").await, (2, process, false));
    // Of another session it is another one, and this one stays.
    let other = format!("{}-other", home.session);
    let (count, apart, anew) = read(&home.call_of(&other, &held_to, "", 20_000).await.unwrap());
    assert!((count, anew) == (1, false) && apart != process);
    assert_eq!(home.count(&held_to, "").await, (3, process, false));
}

#[tokio::test]
async fn one_that_ended_between_is_begun_anew_and_that_is_said() {
    let home = Home::counter();
    let held_to = home.digest().await;
    let (_, first, _) = home.count(&held_to, "leave").await;
    home.is_over().await;
    let (count, second, anew) = home.count(&held_to, "").await;
    assert!(count == 1 && anew && second != first);
    assert_eq!(home.count(&held_to, "").await, (2, second, false), "it is said once");
}

#[tokio::test]
async fn one_that_ends_or_hangs_in_a_call_is_not_heard_again() {
    let home = Home::counter();
    let held_to = home.digest().await;
    let (_, first, _) = home.count(&held_to, "").await;
    let ended = home.call(&held_to, "exit", 20_000).await.unwrap_err();
    let detail = "the connection ended before the answer: its program ended with exit code 7";
    assert_eq!(ended, Fault::MayHaveHappened { detail: detail.to_owned() });
    let (count, second, anew) = home.count(&held_to, "").await;
    assert!(count == 1 && anew && second != first);
    let late = home.call(&held_to, "hang", 1_000).await.unwrap_err();
    assert_eq!(late, Fault::MayHaveHappened { detail: "no answer within 1000 ms".to_owned() });
    // It was killed, and does not answer the next call.
    ends(second);
    let (count, third, anew) = home.count(&held_to, "").await;
    assert!(count == 1 && anew && third != second);
}

/// Half an answer that nobody asked for is left in its pipe.
#[tokio::test]
async fn what_is_left_of_a_call_is_not_the_answer_to_the_next() {
    let home = Home::counter();
    let held_to = home.digest().await;
    let (_, first, _) = home.count(&held_to, "half").await;
    // Either it is told apart, or it costs that call, and never answers it.
    match home.call(&held_to, "", 2_000).await {
        Ok(answered) => assert_eq!(read(&answered).1, first),
        Err(fault) => assert!(matches!(fault, Fault::MayHaveHappened { .. }), "{fault:?}"),
    }
    // Whoever waited for an answer goes away in the middle.
    let (_, before, _) = home.count(&held_to, "").await;
    let waiting = home.call(&held_to, "slow", 20_000);
    drop(tokio::time::timeout(Duration::from_millis(100), waiting).await);
    let (count, after, anew) = home.count(&held_to, "").await;
    assert!(count == 1 && anew && after != before, "{before} {after}");
}

#[tokio::test]
async fn calls_of_one_session_come_one_after_the_other() {
    let home = Home::counter();
    let held_to = home.digest().await;
    home.count(&held_to, "").await;
    let slow = home.call(&held_to, "slow", 20_000);
    let quick = home.call(&held_to, "", 20_000);
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!((read(&slow.unwrap()).0, read(&quick.unwrap()).0), (2, 3));
    let slow = home.call(&held_to, "slow", 20_000);
    let impatient = home.call(&held_to, "", 100);
    let (slow, impatient) = tokio::join!(slow, impatient);
    let detail = "another call of its program was not over in time".to_owned();
    assert_eq!((read(&slow.unwrap()).0, impatient), (4, Err(Fault::NotAsked { detail })));
}

/// Another driver, which knows nothing of the one that was killed.
#[tokio::test]
async fn whoever_drives_on_ends_the_program_of_the_one_before() {
    let home = Home::counter();
    let held_to = home.digest().await;
    let (_, first, _) = home.count(&held_to, "").await;
    let next = home.again();
    let (count, second, anew) = next.count(&held_to, "").await;
    assert!(count == 1 && anew && second != first);
    ends(first);
}

#[tokio::test]
async fn many_sessions_have_a_bounded_number_of_programs() {
    let home = Home::counter();
    let held_to = home.digest().await;
    let (_, first, _) = home.count(&held_to, "").await;
    for number in 0..limits::PROGRAMS_MAX {
        let holder = format!("{}-{number}", home.session);
        read(&home.call_of(&holder, &held_to, "", 20_000).await.unwrap());
    }
    // One of them gave way; whichever it was, its next call begins it anew.
    let (_, again, anew) = home.count(&held_to, "").await;
    assert_eq!(again != first, anew);
}

#[tokio::test]
async fn a_program_that_can_t_be_begun_says_why_to_people_alone() {
    let home = Home::new(&["sh", "-c", "printf 'no \\033[2Jserver\\n' >&2; exit 7"]);
    let sandbox: Arc<dyn Sandbox> = Arc::clone(&home.shell) as _;
    let listed = home.server.list(Some(&sandbox)).await.unwrap_err();
    let called = home.call(&Digest::of(b""), "", 20_000).await.unwrap_err();
    let detail = "the server hung up: its program ended with exit code 7";
    let for_people = format!("{detail}; it says: no server");
    assert_eq!(listed, Fault::NotAsked { detail: for_people });
    assert_eq!(called, Fault::NotAsked { detail: detail.to_owned() });
    assert_eq!(home.shell.running(), [""; 0], "no writer is left behind");
}
