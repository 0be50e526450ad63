//! Which seeds have what.

/// Whether a seed has something that so many of 256 have. What turns it is the thing's own.
pub(crate) fn is_one_of(seed: u64, turn: u32, share: u8) -> bool {
    fastrand::Rng::with_seed(seed.rotate_left(turn)).u8(..) < share
}
