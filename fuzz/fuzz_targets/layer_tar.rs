//! What unpacking does with any bytes for a layer: files in its directory, or a refusal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use outrigger_fuzz::seeds;

fuzz_target!(init: seeds::layers(), |bytes: &[u8]| outrigger_sandbox_native::fuzz::layer(bytes));
