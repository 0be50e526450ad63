//! What is made of any bytes for the documents of an image.

#![no_main]

use libfuzzer_sys::fuzz_target;
use outrigger_fuzz::seeds;

fuzz_target!(init: seeds::documents(), |bytes: &[u8]| {
    outrigger_sandbox_native::fuzz::document(bytes);
});
