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
