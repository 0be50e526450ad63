//! Sizes of the measurement, and what keeps it from going on.

/// For all of it.
pub(crate) const BENCH_MS_MAX: u64 = 1_200_000;
/// From the start of a server until it answers.
pub(crate) const START_MS_MAX: u64 = 60_000;
/// Between two tries to reach a server that is not there.
pub(crate) const START_PAUSE_MS: u64 = 5;
/// For one request and its answer.
pub(crate) const REQUEST_MS_MAX: u64 = 60_000;
/// Bytes of a line of a head, or of what stands before a piece of a body.
pub(crate) const LINE_BYTES_MAX: u64 = 16 << 10;
/// Bytes of a piece of a body, of a body and of a frame of a stream.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 20;

/// Sessions that work at once, each with somebody who follows it.
pub(crate) const SESSIONS: usize = 200;
/// Tool calls of a turn; before each and behind the last a model is asked.
pub(crate) const CALLS: usize = 4;
/// Pieces in which a reply of the model comes.
pub(crate) const PIECES: usize = 20;
/// From each to the next, on average over all replies.
pub(crate) const PIECE_PAUSE_MS: u64 = 100;
/// Rounds on each server, by turns with a peer: a turn of new sessions, and one more of each.
pub(crate) const ROUNDS: usize = 2;
/// For one turn of all sessions.
pub(crate) const ROUND_MS_MAX: u64 = 120_000;
/// From the beginning of a round until the server is killed, in the round in which it is: in
/// the middle of the turns.
pub(crate) const KILL_AFTER_MS: u64 = 6_000;
/// From the start of a peer that was killed until it is looked whether its sessions went on: as
/// long as all of their turn takes.
pub(crate) const PEER_BACK_MS: u64 = 20_000;

/// Sessions that have their answer.
pub(crate) const IDLE: usize = 10_000;
/// Sessions that wait for a person.
pub(crate) const WAITING: usize = 1_000;
/// Clients that open them at once.
pub(crate) const OPENERS: usize = 32;
/// Starts of a server that has them.
pub(crate) const STARTS: usize = 5;
/// Sessions of a page of the list.
pub(crate) const PAGE_SESSIONS: usize = 200;
/// Between two looks whether all of them rest.
pub(crate) const REST_PAUSE_MS: u64 = 250;
