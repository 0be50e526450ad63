//! Bytes that nobody should send.

use std::io::{Read, Write};

use outrigger_sandbox::wire::{self, GuestRequest, ToGuest};
use proptest::prelude::*;

use crate::harness::*;

/// Frames that are almost right: a length that fits, a message that may not.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..64);
    let framed = bytes.clone().prop_map(|bytes| {
        let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        [&length[..], &bytes[..]].concat()
    });
    let known = any::<u64>().prop_flat_map(|request| {
        let asks = prop_oneof![
            Just(GuestRequest::Forget),
            Just(GuestRequest::Freeze),
            Just(GuestRequest::Thaw),
            Just(GuestRequest::Kill(fresh())),
            Just(GuestRequest::Input {
                id: fresh(),
                input: outrigger_sandbox::Input::Bytes(vec![0; 9])
            }),
        ];
        asks.prop_map(move |ask| wire::encode(&ToGuest { request, ask }).unwrap())
    });
    proptest::collection::vec(prop_oneof![framed, known, bytes], 0..8).prop_map(|all| all.concat())
}

#[test]
fn a_connection_that_breaks_the_rules_ends_and_the_others_go_on() {
    let guest = Guest::ready(Setup::default());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sandbox = runtime.block_on(guest.connect());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(200));
    let send = |bytes: Vec<u8>| {
        let mut socket = guest.socket();
        let _ = socket.write_all(&bytes);
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answers = Vec::new();
        let _ = socket.read_to_end(&mut answers);
        prop_assert!(answers.len() > wire::HEADER_BYTES, "it greets");
        Ok(())
    };
    runner.run(&frames(), send).unwrap();
    assert_eq!(runtime.block_on(says(&sandbox, "echo on")), "on\n");
    // A length that no frame has ends the connection at once.
    let mut socket = guest.socket();
    socket.write_all(&u32::MAX.to_le_bytes()).unwrap();
    let _ = socket.read_to_end(&mut Vec::new());
    assert_eq!(runtime.block_on(says(&sandbox, "echo on")), "on\n");
}
