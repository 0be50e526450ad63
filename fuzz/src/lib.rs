//! What the fuzz targets share: a stream that arrives in pieces of any size, and
//! what must hold of every message that was taken from it.
//!
//! Must never decide what a message may say: that stands in the targets.

pub mod seeds;

use std::fmt::Debug;

use outrigger_sandbox::wire::{self, Gather, HEADER_BYTES};
use serde::{Serialize, de::DeserializeOwned};

/// Takes whole messages from bytes that arrive in pieces as large as the first byte
/// says, until they end or are refused.
pub fn arriving<T: DeserializeOwned>(bytes: &[u8], mut each: impl FnMut(T)) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let mut gather = Gather::default();
    for piece in rest.chunks(usize::from(*first).max(1)) {
        gather.push(piece);
        loop {
            match gather.take::<T>() {
                Ok(Some(message)) => each(message),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// Demands that a message is the same when it is sent again.
///
/// # Panics
/// If it is not: a finding.
pub fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T) {
    let frame = wire::encode(message).expect("what came in a frame fits into one");
    let again: T = wire::decode(&frame[HEADER_BYTES..]).expect("what we send is a message");
    assert_eq!(*message, again);
}
