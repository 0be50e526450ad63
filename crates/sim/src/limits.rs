//! Every limit of the simulation and of the measurements, with its unit in its name.

/// Replies of the simulated model in one turn.
pub(crate) const REPLIES_MAX: u64 = 6;
/// Replies of the simulated model in one turn of a subagent.
pub(crate) const REPLIES_BELOW_MAX: u64 = 3;
/// Seeds whose sessions may start subagents, of 256.
pub(crate) const FAMILIES_OF_256: u8 = 14;
/// Seeds whose sessions may call tools outside, of 256.
pub(crate) const DESKS_OF_256: u8 = 20;
/// How long a call of a tool outside is waited for.
pub(crate) const DESK_MS_MAX: u64 = 30_000;
/// What the model sees of an answer from outside.
pub(crate) const DESK_BYTES_MAX: usize = 10_000;
/// Seeds in whose concurrent runs several sessions share an account, of 256.
pub(crate) const PURSES_OF_256: u8 = 20;
/// What those may spend together.
pub(crate) const PURSE_TOKENS_MIN: u64 = 8_000;
pub(crate) const PURSE_TOKENS_MAX: u64 = 80_000;
/// How often those below a session that is over are looked at until they have ended too.
pub(crate) const ENDINGS_MAX: u32 = 32;
/// Tool calls in one reply of the simulated model.
pub(crate) const CALLS_MAX: u64 = 4;
/// Times that a world's harness is started before the run counts as livelocked.
pub(crate) const STARTS_MAX: u32 = 64;
/// Longest command of the simulated model.
pub(crate) const COMMAND_MS_MAX: u64 = 400;
/// Longest reply of the simulated model.
pub(crate) const REPLY_MS_MAX: u64 = 300;
/// From a question to a person until the answer.
pub(crate) const ANSWER_MS: u64 = 3 * 24 * 3_600_000;
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

/// What a store needs for an append or a read, mostly; a slow one.
pub(crate) const STORE_MS_MAX: u64 = 40;
pub(crate) const STORE_SLOW_MS_MAX: u64 = 3_000;
/// What a backend needs for a request, mostly; one that hangs.
pub(crate) const BACKEND_MS_MAX: u64 = 20;
pub(crate) const HANG_MS_MAX: u64 = 60_000;
/// Model calls that fail in a concurrent run, of 256.
pub(crate) const MODEL_FAILS_OF_256: u8 = 4;
/// After how long a question is denied, where it ever is.
pub(crate) const EXPIRE_MS: u64 = 24 * 3_600_000;
/// How late an intent becomes durable where that safeguard is taken away.
pub(crate) const INTENT_LATE_MS: u64 = 25;
/// Concurrent runs that each seed goes through.
pub(crate) const CONCURRENT_RUNS: u64 = 3;
/// Hosts that drive one session at the same moment.
pub(crate) const HOSTS_MAX: usize = 3;
/// Lives of one host in one round of a concurrent run.
pub(crate) const LIVES_MAX: u64 = 3;
/// Rounds of a concurrent run in which something goes wrong.
pub(crate) const DISTURBED_ROUNDS: u32 = 2;
/// How long a concurrent run lasts, as far as moments are chosen.
pub(crate) const CONCURRENT_MS_MAX: u64 = 4_000;
/// Plans of each seed that are drawn from all that there are, unless every one is run.
pub(crate) const PLANS_DRAWN: usize = 8;
/// Plans of each seed with subagents that are drawn, fewer because each run of one is that of
/// many sessions.
pub(crate) const FAMILY_PLANS_DRAWN: usize = 4;
/// Seeds after which everything that can happen has happened, or the run shows nothing.
pub const COVERED_SEEDS: u64 = 200;

/// All measurements together.
pub const BENCH_MS_MAX: u64 = 300_000;
/// From the start of the measurements' provider until it serves.
pub const BENCH_PROVIDER_START_MS_MAX: u64 = 5_000;
/// From the end of its work until a measured harness's spawner is gone.
pub const BENCH_SPAWNER_END_MS_MAX: u64 = 10_000;
/// A request's body that the measurements' provider takes.
pub const BENCH_BODY_BYTES_MAX: u64 = 64 << 20;
/// From what is typed until a measured program shows what is waited for.
pub const BENCH_TERMINAL_MS_MAX: u64 = 30_000;
/// From one key that is shown to the next that is typed.
pub const BENCH_KEY_PAUSE_MS: u64 = 2;
/// From one token of the measurements' provider to the next.
pub const BENCH_TOKEN_PAUSE_MS: u64 = 7;
