//! Running commands: what the suite of all backends does not ask.

use crate::support::*;
use outrigger_sandbox::{Command, End, Error, Streams};

#[tokio::test]
async fn two_hundred_megabytes_are_counted_to_the_byte() {
    let sandbox = single().await;
    let executed = run(&*sandbox, shell("head -c 200000000 /dev/zero")).await;
    assert_eq!(executed.end, End::Exited(0));
    assert_eq!(
        (executed.stdout.len(), executed.stdout_dropped_bytes),
        (1 << 20, 200_000_000 - (1 << 20))
    );
}

#[tokio::test]
async fn the_whole_output_is_kept_in_a_file_that_commands_can_not_change() {
    let sandbox = single().await;
    let mut request =
        shell("i=0; while [ $i -lt 50 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done");
    (request.streams, request.spill_after_bytes, request.stdout_bytes_max) =
        (Streams::Merged, Some(100), 150);
    let executed = run(&*sandbox, request).await;
    let path = executed.spill.unwrap();
    assert_eq!(
        says(&*sandbox, &format!("wc -l < {path}; tail -n 2 {path}")).await,
        "100\nout49\nerr49\n"
    );
    let said = says(&*sandbox, &format!("echo x >> {path}; rm {path}; touch {path}.new")).await;
    let refused =
        said.matches("Read-only file system").count() + said.matches("Permission denied").count();
    assert_eq!(refused, 3, "{said}");
}

#[tokio::test]
async fn refusals_to_start_say_why() {
    let sandbox = single().await;
    let table = [
        (argv(&["no-such-program"]), "no such program"),
        (argv(&["/workspace"]), "not executable"),
        (argv(&["/etc/passwd"]), "not executable"),
    ];
    for (request, part) in table {
        let error = sandbox.execute(request.clone(), &()).await.unwrap_err();
        assert!(
            matches!(&error, Error::CannotStart { reason, .. } if reason.contains(part)),
            "{error}"
        );
        assert_eq!(sandbox.execute(request, &()).await.unwrap_err(), error, "the same again");
    }
    let mut request = argv(&["true"]);
    request.cwd = Some("/nowhere".to_owned());
    let error = sandbox.execute(request, &()).await.unwrap_err();
    assert!(error.to_string().contains("working directory"), "{error}");
}

#[tokio::test]
async fn an_argument_of_bytes_arrives_as_it_is() {
    let sandbox = single().await;
    let words = [b"printf".to_vec(), b"%s".to_vec(), vec![0xff, 0xfe, b'a']];
    let mut request = argv(&["x"]);
    request.command = Command::Argv(words.to_vec());
    assert_eq!(run(&*sandbox, request).await.stdout, [0xff, 0xfe, b'a']);
}

#[tokio::test]
async fn a_terminal_can_be_had() {
    let sandbox = single().await;
    let said = says(&*sandbox, "script -qc 'tty; echo $((6*7))' /dev/null < /dev/null").await;
    assert!(said.contains("/dev/pts/0") && said.contains("42"), "{said}");
}
