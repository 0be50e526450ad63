//! Every limit of the Docker backend, with its unit in its name.

/// Longest name of an owner. With it and the longest id every name that is made of
/// them is a file name.
pub(crate) const OWNER_BYTES_MAX: usize = 32;
/// From a request to the daemon until it counts as not answering.
pub(crate) const ANSWER_MS_MAX: u64 = 120_000;
/// From a request that copies a whole disk until the daemon counts as not answering.
pub(crate) const COPY_MS_MAX: u64 = 3_600_000;
/// From the first attempt to reach a guest until one must have greeted, over all attempts.
pub(crate) const GREET_MS_MAX: u64 = 30_000;
/// From one attempt to reach a guest that is not up yet to the next.
pub(crate) const GREET_PAUSE_MS: u64 = 20;
/// Attempts at making a sandbox while others make, end or delete it at the same time.
pub(crate) const CREATE_ATTEMPTS_MAX: u32 = 40;
/// From one such attempt to the next.
pub(crate) const CREATE_PAUSE_MS: u64 = 50;
/// For how long the daemon may have a container for paused that this process let go on.
pub(crate) const LATE_MS: u64 = 2000;
/// Attempts at pausing a container.
pub(crate) const PAUSE_ATTEMPTS_MAX: u32 = 5;
/// From one such attempt to the next.
pub(crate) const PAUSE_PAUSE_MS: u64 = 100;
/// From one look whether a disk is still being copied to the next.
pub(crate) const HELD_LOOK_MS: u64 = 50;
/// From a request to a guest until it is looked at whether somebody suspended it.
/// Doubles from look to look.
pub(crate) const FROZEN_LOOK_MS: u64 = 200;
/// Longest time between two such looks.
pub(crate) const FROZEN_LOOK_MS_MAX: u64 = 5_000;
/// Age after which a container that only makes volumes counts as left behind, where
/// it can't be seen whether the process that made it lives.
pub(crate) const MAKER_MS_MAX: u64 = 2 * COPY_MS_MAX;
/// Processes of a container beside those of its commands: the guest with its threads,
/// and the programs at the inner end of the streams.
pub(crate) const OWN_PIDS: i64 = 16;
/// Core of what runs in a container.
pub(crate) const CORE_BYTES_MAX: i64 = 1;
/// `/dev/shm`.
pub(crate) const SHM_BYTES: i64 = 64 << 20;
/// Where the guest listens.
pub(crate) const SOCKET_TMPFS_BYTES: u64 = 64 << 10;
/// How much sooner than the daemon a container is ended when memory is short: the
/// kernel's scale from -1000 to 1000.
pub(crate) const OOM_SCORE: i64 = 500;
/// Pieces of a disk's copy that wait to be counted.
pub(crate) const COPY_PIECES_MAX: usize = 16;
/// Bytes of one such piece on its way to the daemon.
pub(crate) const COPY_PIECE_BYTES: usize = 64 << 10;
/// The oldest API of a daemon that is known to work: Docker 20.10.
pub(crate) const API_MIN: (usize, usize) = (1, 41);
/// Shortest time between two looks at the lifetimes of sandboxes.
pub(crate) const KEEPER_PAUSE_MS: u64 = 50;
/// Longest time between them.
pub(crate) const KEEPER_PAUSE_MS_MAX: u64 = 60_000;
