//! Every limit of the attacks, with its unit in its name.

/// Memory of a sandbox that is attacked from inside.
pub const MEMORY_BYTES_MAX: u64 = 192 << 20;
/// Its processes.
pub const PIDS_MAX: u32 = 96;
/// Its CPU, in thousandths of a core.
pub const CPU_MILLIS_MAX: u32 = 1_000;
/// Its disk.
pub const DISK_BYTES_MAX: u64 = 96 << 20;
/// Its files.
pub const DISK_INODES_MAX: u64 = 8_000;
/// How long such a sandbox lives when nobody destroys it.
pub const AGE_MS_MAX: u64 = 900_000;
/// From a deadline or a kill until a command with all its processes must be gone.
pub const KILL_MS_MAX: u64 = 2_000;
/// From the start of one attack until it counts as hanging.
pub const ATTACK_MS_MAX: u64 = 120_000;
/// What the process that holds the connection may grow by while output floods it.
pub const GROWTH_BYTES_MAX: u64 = 96 << 20;
/// Times that is looked whether what another one has is gone: an image, a lock.
pub const LEFT_LOOKS_MAX: u32 = 100;
/// Between two looks.
pub const LEFT_PAUSE_MS: u64 = 50;
/// A neighbour's p99 under attack at most: half of what a person notices. SECURITY.md says
/// what was measured.
pub const NEIGHBOUR_P99_MS_MAX: u128 = 50;
/// Times that is looked whether one has taken all that it gets.
pub const TAKEN_LOOKS_MAX: u32 = 1_500;
/// Between two looks.
pub const TAKEN_PAUSE_MS: u64 = 20;
/// Bytes that are under way at once in a connection from inside.
pub const WIRE_BYTES: usize = 16 << 10;
/// Bytes that come back on such a connection.
pub const WIRE_OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// For anything to come back on it.
pub const ANSWER_MS_MAX: u64 = 15_000;
/// From a revocation until what is under way with the secret must have ended.
pub const REVOKED_MS_MAX: u128 = 1_000;
/// Connections that one sandbox holds half open.
pub const HALF_OPEN: u32 = 200;
/// What the gate may grow by while it is flooded.
pub const GATE_GROWTH_BYTES_MAX: u64 = 64 << 20;
/// For a flood to be ended by the gate.
pub const FLOOD_MS_MAX: u64 = 5_000;
/// Descriptors that a gate is left with, so that few connections take them all.
pub const DESCRIPTORS: u64 = 256;
/// Connections of HTTP/2 whose answers are not read.
pub const HOARDS: u32 = 6;
/// Looks in a row at which nothing was taken any more.
pub const STILL_LOOKS: u32 = 75;
/// Streams of each.
pub const STREAMS: u32 = 90;
/// For a sandbox beside that to be served.
pub const BESIDE_MS_MAX: u64 = 3_000;
