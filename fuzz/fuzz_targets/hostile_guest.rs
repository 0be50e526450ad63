//! A whole link to a guest that greets and then sends any bytes: each who waits is
//! told an end, and no more output comes than was asked for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use outrigger_sandbox::wire::{self, FromGuest, GuestReply, GuestRequest};
use outrigger_sandbox::{Command, ExecId, Execute, Generation, limits};
use outrigger_sandbox_client::Link;
use tokio::io::AsyncWriteExt as _;

/// Input of the fuzzer is far shorter than this.
const STREAM_BYTES: usize = 1 << 20;

fn asks() -> [GuestRequest; 2] {
    let id = ExecId::new("e").expect("a valid id");
    let mut request = Execute::new(id.clone(), Command::Shell(String::new()));
    request.stdout_bytes_max = 10;
    request.stderr_bytes_max = 0;
    [GuestRequest::Execute(request), GuestRequest::Kill(id)]
}

async fn talk(bytes: &[u8]) {
    let (ours, mut theirs) = tokio::io::duplex(STREAM_BYTES);
    let generation = Generation::new("g").expect("a valid name");
    let hello = FromGuest::Hello { version: wire::VERSION, generation };
    let hello = wire::encode(&hello).expect("a greeting fits into a frame");
    theirs.write_all(&hello).await.expect("it fits into the stream");
    let (reads, writes) = tokio::io::split(ours);
    let link = Link::open(reads, writes).await.expect("it greeted");
    let [execute, kill] = asks();
    let mut execute = link.ask(execute).await.expect("it is open");
    let mut kill = link.ask(kill).await.expect("it is open");
    // The other side may have ended the connection.
    let _ = theirs.write_all(bytes).await;
    let _ = theirs.shutdown().await;
    drop(theirs);
    let mut output = 0;
    while let Ok(GuestReply::Output { bytes, .. }) = execute.next().await {
        output += bytes.len();
    }
    assert!(output <= 2 * limits::FRAME_BYTES_MAX + 10);
    let answer = kill.next().await;
    assert!(!matches!(answer, Ok(GuestReply::Output { .. })), "a kill has no output");
}

fuzz_target!(init: outrigger_fuzz::seeds::from_guest(&[]), |bytes: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime of one thread needs nothing").block_on(talk(bytes));
});
