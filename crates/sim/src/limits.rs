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

/// All measurements together.
pub const BENCH_MS_MAX: u64 = 115_000;
/// From the start of the measurements' provider until it serves.
pub const BENCH_PROVIDER_START_MS_MAX: u64 = 5_000;
/// From the end of its work until a measured harness's spawner is gone.
pub const BENCH_SPAWNER_END_MS_MAX: u64 = 10_000;
/// A request's body that the measurements' provider takes.
pub const BENCH_BODY_BYTES_MAX: u64 = 64 << 20;
