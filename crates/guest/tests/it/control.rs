//! What the spawner says to a guest beside passing connections in.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use outrigger_sandbox::{Command, End, Error, Execute, FileOp, FileReply, Sandbox};

use crate::harness::*;

#[tokio::test]
async fn the_next_life_knows_what_this_one_did_and_does_it_no_second_time() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    let command = shell("echo -n out; echo -n err >&2; exit 7");
    let outcome = run(&sandbox, command.clone()).await;
    let refused = Execute::new(fresh(), Command::Argv(vec![b"no-such-program".to_vec()]));
    let refusal = sandbox.execute(refused.clone(), &()).await.unwrap_err();
    let made = FileOp::MakeDir { id: fresh(), path: "dir".to_owned() };
    assert_eq!(sandbox.files(made.clone()).await, Ok(FileReply::Done));
    let missing = FileOp::Remove { id: fresh(), path: "missing".to_owned() };
    let error = sandbox.files(missing.clone()).await.unwrap_err();
    let never = fresh();
    sandbox.kill(&never).await.unwrap();
    let (answer, kept) = guest.hand_over();
    assert_eq!(answer, Some(b'k'));
    drop(guest);
    assert!(matches!(sandbox.execute(shell("true"), &()).await, Err(Error::Lost { .. })));

    // Its disk is empty, so that whatever was done again would show.
    let next = Guest::ready(Setup { kept: Some(kept), ..Setup::default() });
    let sandbox = next.connect().await;
    let again = run(&sandbox, command).await;
    assert_eq!(again, outcome);
    assert_eq!((&again.stdout[..], &again.stderr[..]), (&b"out"[..], &b"err"[..]));
    assert_eq!(sandbox.execute(refused, &()).await.unwrap_err(), refusal);
    assert_eq!(sandbox.files(made).await, Ok(FileReply::Done));
    assert!(sandbox.files(FileOp::Stat { path: "dir".to_owned() }).await.is_err());
    assert_eq!(sandbox.files(missing).await.unwrap_err(), error);
    let refused = Execute::new(never, Command::Shell("touch /workspace/ran".to_owned()));
    assert_eq!(run(&sandbox, refused).await.end, End::Killed);
    assert_eq!(says(&sandbox, "ls").await, "");
}

#[tokio::test]
async fn a_guest_that_works_hands_nothing_over() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    assert_eq!(says(&sandbox, "echo").await, "\n");
    guest.tell(b'i', None);
    assert_eq!(guest.hears(), Some(b'n'));
    let request = shell("touch began; until [ -e end ]; do sleep 0.01; done");
    let running = sandbox.execute(request.clone(), &());
    let spawner = async {
        let began = FileOp::Stat { path: "began".to_owned() };
        until("a command", async || sandbox.files(began.clone()).await.ok()).await;
        guest.tell(b'i', None);
        assert_eq!(guest.hears(), Some(b'b'));
        assert_eq!(guest.hand_over().0, Some(b'b'));
        let end = FileOp::MakeDir { id: fresh(), path: "end".to_owned() };
        sandbox.files(end).await.unwrap();
    };
    let (ended, ()) = tokio::join!(running, spawner);
    assert_eq!(ended.unwrap().end, End::Exited(0));
    assert_eq!(guest.hand_over().0, Some(b'k'));
}

#[tokio::test]
async fn a_full_disk_ends_every_command() {
    for hierarchy in hierarchies() {
        let guest = Guest::ready(Setup { hierarchy, ..Setup::default() });
        let sandbox = guest.connect().await;
        let (first, second, ()) = tokio::join!(
            run(&sandbox, shell("touch a; sleep 1000 & sleep 1000")),
            run(&sandbox, shell("touch b; trap '' TERM; sleep 1000")),
            async {
                for name in ["a", "b"] {
                    let stat = FileOp::Stat { path: name.to_owned() };
                    until(name, async || sandbox.files(stat.clone()).await.ok()).await;
                }
                guest.tell(b'q', None);
            }
        );
        assert_eq!((first.end, second.end), (End::DiskFull, End::DiskFull), "{hierarchy:?}");
        assert_eq!(says(&sandbox, "echo on").await, "on\n");
    }
}

#[tokio::test]
async fn one_file_is_bounded_by_what_the_guest_was_told() {
    let args = ["--file-bytes", "1000"].map(str::to_owned).into();
    let guest = Guest::ready(Setup { args, ..Setup::default() });
    let sandbox = guest.connect().await;
    let said = says(&sandbox, "head -c 5000 /dev/zero > big; stat -c %s big").await;
    assert!(said.contains("File size limit exceeded") && said.ends_with("\n1000\n"), "{said}");
}

#[tokio::test]
async fn what_was_handed_over_is_not_guessed_at() {
    for bytes in [&b""[..], b"\0\0\0\0", b"garbage that is no table at all"] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let guest = Guest::start(Setup { kept: Some(file), ..Setup::default() });
        assert_eq!(guest.hears(), None);
        assert_eq!(guest.code(), Some(5));
    }
    let gone = File::open("/dev/null").unwrap();
    let guest = Guest::start(Setup { kept: Some(gone), ..Setup::default() });
    assert_eq!(guest.code(), Some(5));
}

#[tokio::test]
async fn activity_is_told_once_for_many_requests() {
    let guest = Guest::ready(Setup::default());
    let sandbox = guest.connect().await;
    let stat = FileOp::Stat { path: "/workspace".to_owned() };
    let begun = Instant::now();
    for _ in 0..50 {
        sandbox.files(stat.clone()).await.unwrap();
    }
    guest.tell(b'i', None);
    let mut words = vec![guest.word()];
    while words.last() != Some(&b'n') {
        words.push(guest.word());
    }
    // Of what came after a word, which is something if there was but one, the next one
    // tells a second later. More come only if the requests took that long.
    if words.len() == 2 {
        words.push(guest.word());
    }
    let most = 1 + usize::try_from(begun.elapsed().as_secs()).unwrap();
    let told = words.iter().filter(|word| **word == b'a').count();
    assert!(words.starts_with(b"a") && told >= 2 && told <= most, "{words:?} in {most} s");
}

#[tokio::test]
async fn what_the_guest_does_not_know_is_no_harm() {
    let guest = Guest::ready(Setup::default());
    for byte in [0, b'h', b'c', b'x', 255] {
        guest.tell(byte, None);
    }
    guest.tell(b'q', Some(&std::os::fd::OwnedFd::from(File::open("/dev/null").unwrap())));
    guest.tell(b'i', None);
    assert_eq!(guest.hears(), Some(b'n'));
    assert_eq!(says(&guest.connect().await, "echo on").await, "on\n");
}
