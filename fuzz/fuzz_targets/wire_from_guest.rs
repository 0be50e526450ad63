//! What a host does with any bytes from a guest: messages that are the same when
//! they are sent again, or a refusal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use outrigger_fuzz::{arriving, seeds, survives};
use outrigger_sandbox::wire::FromGuest;

fuzz_target!(init: seeds::from_guest(&[64]), |bytes: &[u8]| {
    arriving(bytes, |message: FromGuest| survives(&message));
});
