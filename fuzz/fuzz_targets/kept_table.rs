//! What a guest does with any bytes for what an earlier life handed over: a table that is
//! the same when it is handed on, or a refusal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use outrigger_fuzz::seeds;

fuzz_target!(init: seeds::kept(), |bytes: &[u8]| outrigger_guest::fuzz::kept(bytes));
