//! What a seed says of each thing, apart from what it says of all others.

/// What a seed draws for a thing. What turns it is the thing's own.
pub(crate) fn draws(seed: u64, turn: u32) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed.rotate_left(turn))
}

/// Whether a seed has a thing that so many of 256 have.
pub(crate) fn is_one_of(seed: u64, turn: u32, share: u8) -> bool {
    draws(seed, turn).u8(..) < share
}
