//! Every limit of the simulation and of the measurements, with its unit in its name.

/// Replies of the simulated model in one turn.
pub(crate) const REPLIES_MAX: u64 = 6;
/// Tool calls in one reply of the simulated model.
pub(crate) const CALLS_MAX: u64 = 4;
/// Times that a world's harness is started before the run counts as livelocked.
pub(crate) const STARTS_MAX: u32 = 64;
/// Longest command of the simulated model.
pub(crate) const COMMAND_MS_MAX: u64 = 400;
/// Longest reply of the simulated model.
pub(crate) const REPLY_MS_MAX: u64 = 300;
/// Moments between writes at which each seed kills the harness.
pub(crate) const MOMENTS: u64 = 3;
/// From the question to the model until an idle sandbox is frozen: within most replies.
pub(crate) const FREEZE_AFTER_MS: u64 = 100;
/// Moments between writes, and writes, at which each seed's sandbox is suspended by
/// somebody else: once frozen and once cold.
pub(crate) const SUSPENSIONS: u64 = 3;
/// Writes at which somebody stops the turn of each seed, and at which somebody ends its session.
pub(crate) const STOPS: u64 = 2;
/// Writes, moments between writes, and deaths of the harness, at each of which each
/// seed loses its sandbox: once with its disk and once without.
pub(crate) const LOSSES: u64 = 1;
/// When a seed's first turn is over at the latest, counted from its beginning, as far
/// as moments are chosen.
pub(crate) const MOMENT_MS_MAX: u64 = 1_500;

/// All measurements together.
pub const BENCH_MS_MAX: u64 = 300_000;
/// From the start of the measurements' provider until it serves.
pub const BENCH_PROVIDER_START_MS_MAX: u64 = 5_000;
/// From the end of its work until a measured harness's spawner is gone.
pub const BENCH_SPAWNER_END_MS_MAX: u64 = 10_000;
/// A request's body that the measurements' provider takes.
pub const BENCH_BODY_BYTES_MAX: u64 = 64 << 20;
