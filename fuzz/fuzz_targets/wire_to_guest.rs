//! What a guest does with any bytes from its host: messages that are the same when
//! they are sent again, or a refusal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use outrigger_fuzz::{arriving, seeds, survives};
use outrigger_sandbox::wire::{GuestRequest, ToGuest};

fuzz_target!(init: seeds::to_guest(), |bytes: &[u8]| {
    arriving(bytes, |message: ToGuest| {
        survives(&message);
        // What a guest does next with a request, whatever is in it.
        if let GuestRequest::Execute(request) = &message.ask {
            let _ = request.check();
        }
    });
});
