//! Commands with a terminal.

use std::sync::Mutex;

use outrigger_sandbox::{
    Command, End, Error, ExecId, Execute, FileOp, Input, Output, OutputSink, Sandbox, TerminalSize,
    limits,
};

use crate::harness::*;

fn typed(line: &str) -> Execute {
    let mut request = shell(line);
    request.terminal = Some(TerminalSize { rows: 24, columns: 80 });
    request
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What was shown so far.
#[derive(Default)]
struct Screen(Mutex<String>);

impl OutputSink for Screen {
    fn output(&self, output: Output<'_>) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        self.0.lock().unwrap().push_str(&text(bytes));
    }
}

impl Screen {
    async fn shows(&self, part: &str) {
        until(part, async || self.0.lock().unwrap().contains(part).then_some(())).await;
    }
}

async fn types(sandbox: &dyn Sandbox, id: &ExecId, bytes: &[u8]) {
    sandbox.input(id, Input::Bytes(bytes.to_vec())).await.unwrap();
}

#[tokio::test]
async fn a_command_has_a_terminal_of_its_own() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    let line = "tty; stty size; echo $TERM; echo err >&2; stat -c %u:%A $(tty); \
                ps -o tty= -p $$; echo x > /dev/pts/0";
    let executed = run(&sandbox, typed(line)).await;
    let lines = ["/dev/pts/0", "24 80", "xterm-256color", "err", "1000:crw--w----", "pts/0", "x"];
    let expected: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    assert_eq!((text(&executed.stdout), &executed.stderr[..]), (expected, &b""[..]));
    // The guest got none, and the next command neither.
    assert_eq!(
        says(&sandbox, "cut -d' ' -f7 /proc/1/stat; cut -d' ' -f7 /proc/$$/stat").await,
        "0\n0\n"
    );
}

#[tokio::test]
async fn what_is_typed_arrives_after_what_was_given_at_the_start() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    let mut request = typed("stty -echo; echo ready; read a; read b; read c; echo [$a][$b][$c]");
    request.stdin = b"one\n".to_vec();
    let (id, screen) = (request.id.clone(), Screen::default());
    let typist = async {
        screen.shows("ready").await;
        types(&sandbox, &id, b"two\nthr").await;
        types(&sandbox, &id, b"").await;
        types(&sandbox, &id, b"ee\n").await;
    };
    let (executed, ()) = tokio::join!(sandbox.execute(request.clone(), &screen), typist);
    let executed = executed.unwrap();
    assert!(text(&executed.stdout).ends_with("[one][two][three]\r\n"), "{executed:?}");
    // Later, and for another host, it is the same.
    let again = run(&guest.connect().await, request).await;
    assert_eq!(again, executed);
    let late = sandbox.input(&id, Input::Bytes(b"x".to_vec())).await;
    assert!(matches!(late, Err(Error::Invalid(_))), "{late:?}");
}

#[tokio::test]
async fn keys_are_signals_and_a_new_size_is_told() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    let request = typed(
        "trap 'stty size' WINCH; trap 'echo interrupted; exit 3' INT; echo ready; \
         while :; do sleep 0.01; done",
    );
    let (id, screen) = (request.id.clone(), Screen::default());
    let typist = async {
        screen.shows("ready").await;
        let size = TerminalSize { rows: 50, columns: 132 };
        sandbox.input(&id, Input::Size(size)).await.unwrap();
        screen.shows("50 132").await;
        let none = TerminalSize { rows: 0, columns: 1 };
        assert!(matches!(sandbox.input(&id, Input::Size(none)).await, Err(Error::Invalid(_))));
        types(&sandbox, &id, b"\x03").await;
    };
    let (executed, ()) = tokio::join!(sandbox.execute(request, &screen), typist);
    assert_eq!(executed.unwrap().end, End::Exited(3));
    assert!(screen.0.lock().unwrap().contains("interrupted"));
}

#[tokio::test]
async fn a_command_that_does_not_read_slows_its_typist() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    let request = typed(
        "stty raw -echo; echo ready; until [ -e go ]; do sleep 0.01; done; head -c 200000 | wc -c",
    );
    let (id, screen) = (request.id.clone(), Screen::default());
    let typist = async {
        screen.shows("ready").await;
        let piece = vec![b'x'; limits::INPUT_BYTES_MAX];
        let mut typing = std::pin::pin!(async {
            for _ in 0..3 {
                types(&sandbox, &id, &piece).await;
            }
            types(&sandbox, &id, &vec![b'x'; 200_000 - 3 * piece.len()]).await;
        });
        let short = tokio::time::timeout(std::time::Duration::from_millis(300), &mut typing);
        assert!(short.await.is_err(), "the terminal has no room for all of it");
        let go = FileOp::MakeDir { id: fresh(), path: "go".to_owned() };
        sandbox.files(go).await.unwrap();
        typing.await;
    };
    let (executed, ()) = tokio::join!(sandbox.execute(request, &screen), typist);
    assert!(text(&executed.unwrap().stdout).ends_with("200000\n"));
}

#[tokio::test]
async fn all_output_arrives_and_the_end_hangs_up() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    let executed = run(&sandbox, typed("seq 60000")).await;
    let expected: String = (1..=60_000).map(|number| format!("{number}\r\n")).collect();
    assert_eq!(text(&executed.stdout), expected);
    // One that stays behind loses its terminal, and the command ends all the same.
    let line = "(trap 'touch hung' HUP; touch trapped; while :; do sleep 0.01; done) & \
                until [ -e trapped ]; do sleep 0.01; done";
    let executed = run(&sandbox, typed(line)).await;
    assert_eq!(executed.end, End::Exited(0));
    let hung = FileOp::Stat { path: "hung".to_owned() };
    until("a hangup", async || sandbox.files(hung.clone()).await.ok()).await;
}

#[tokio::test]
async fn a_kill_ends_those_who_type_too() {
    for hierarchy in hierarchies() {
        let guest = Guest::ready(Setup { hierarchy, ..Setup::default() });
        let sandbox = guest.connect().await;
        let request = typed("stty raw; echo ready; sleep 1000");
        let (id, screen) = (request.id.clone(), Screen::default());
        let typist = async {
            screen.shows("ready").await;
            let most = vec![b'x'; limits::INPUT_BYTES_MAX];
            let (typed, killed) =
                tokio::join!(sandbox.input(&id, Input::Bytes(most)), sandbox.kill(&id));
            assert!(matches!(typed, Err(Error::Invalid(_))), "{typed:?}");
            killed.unwrap();
        };
        let (executed, ()) = tokio::join!(sandbox.execute(request, &screen), typist);
        assert_eq!(executed.unwrap().end, End::Killed);
    }
}

#[tokio::test]
async fn input_is_for_commands_with_a_terminal() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    let request = shell("touch began; until [ -e end ]; do sleep 0.01; done");
    let other = async {
        let began = FileOp::Stat { path: "began".to_owned() };
        until("a command", async || sandbox.files(began.clone()).await.ok()).await;
        for id in [request.id.clone(), fresh()] {
            let refused = sandbox.input(&id, Input::Bytes(b"x".to_vec())).await;
            assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        }
        let end = FileOp::MakeDir { id: fresh(), path: "end".to_owned() };
        sandbox.files(end).await.unwrap();
    };
    tokio::join!(run(&sandbox, request.clone()), other);
}

#[tokio::test]
async fn nobody_types_for_another() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    let mut request = typed("");
    let probe = "import fcntl, termios\ntry:\n fcntl.ioctl(0, termios.TIOCSTI, b'x')\n \
        print('typed')\nexcept OSError as error:\n print(error.errno)";
    request.command =
        Command::Argv(["python3", "-c", probe].map(|word| word.as_bytes().to_vec()).into());
    assert_eq!(text(&run(&sandbox, request).await.stdout), "1\r\n");
}
