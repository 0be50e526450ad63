//! What a spawner and its callers do with any bytes on the control socket.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| outrigger_sandbox_native::fuzz::message(bytes));
