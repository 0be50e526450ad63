//! Every limit of the native backend, with its unit in its name.

/// From the last sandbox and connection until a spawner ends itself.
pub const SPAWNER_IDLE_MS: u64 = 60_000;
/// From one look of a spawner at whether its state directory is still there to the next.
pub const SPAWNER_TICK_MS: u64 = 5_000;
/// From the start of a spawner until it takes connections.
pub const SPAWNER_START_MS_MAX: u64 = 10_000;
/// From a request to the spawner until its answer; deleting a large disk takes longest.
pub const SPAWNER_ANSWER_MS_MAX: u64 = 120_000;
/// How long the spawner waits for a peer that sends half a request or does not take its answer.
pub const SPAWNER_PEER_MS_MAX: u64 = 1_000;
/// One request to the spawner or its answer.
pub const SPAWNER_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Times that a request is made again because the spawner ended in between.
pub const SPAWNER_ATTEMPTS_MAX: u32 = 5;
/// Times that a request is made again because a spawner holds the state directory but
/// does not serve: it is about to, or on its way out.
pub const SPAWNER_BUSY_ATTEMPTS_MAX: u32 = 200;
/// Between two of them.
pub const SPAWNER_BUSY_PAUSE_MS: u64 = 50;
/// From the birth of a guest until it serves.
pub const GUEST_START_MS_MAX: u64 = 10_000;
/// Times that a guest which dies under a new connection is asked for again.
pub const ATTACH_ATTEMPTS_MAX: u32 = 50;
/// Between two of them.
pub const ATTACH_PAUSE_MS: u64 = 20;
/// Living sandboxes of one spawner.
pub const SANDBOXES_MAX: usize = 4_000;
/// Processes that a guest may have beside those of its commands.
pub const GUEST_PROCESSES: u32 = 16;
/// Memory that a guest may have beside the limit of its commands, in bytes.
pub const GUEST_MEMORY_BYTES: u64 = 16 << 20;
/// The skeleton of a sandbox's root: directories, links and a few small files.
pub const ROOT_BYTES_MAX: u64 = 4 << 20;
/// Shared memory of a sandbox (`/dev/shm`), also charged to its memory.
pub const SHM_BYTES_MAX: u64 = 1 << 30;

/// First user id of the ranges that root gives to sandboxes. Above those that
/// systemd gives to containers (see "Users, Groups, UIDs and GIDs on systemd Systems").
pub const ID_FIRST: u32 = 1_879_048_192;
/// Ids of one sandbox.
pub const IDS_PER_SANDBOX: u32 = 65_536;
/// Ranges between [`ID_FIRST`] and the next ids that systemd uses.
pub const ID_RANGES: u32 = 4_094;
/// Times that a cgroup is tried to be removed while its last processes fade.
pub const CGROUP_REMOVE_ATTEMPTS_MAX: u32 = 100;
/// Between two of them.
pub const CGROUP_REMOVE_PAUSE_MS: u64 = 1;
/// Names that are tried for the directories that are moved up while a tree is removed.
pub const REMOVE_NAMES_MAX: u64 = 1 << 24;
/// Directories open at once while a tree is removed; deeper ones are first moved up.
pub const REMOVE_DEPTH_MAX: usize = 64;

/// From the spawner's request to a guest to hand over until its answer; after it the
/// guest is killed and its commands are forgotten.
pub const HANDOVER_MS_MAX: u64 = 5_000;
/// What a guest hands over: the outcomes and the kept output of its commands.
pub const KEPT_BYTES_MAX: u64 = 96 << 20;
/// One record of the state directory: what a sandbox, layer or snapshot is.
pub const RECORD_BYTES_MAX: u64 = 1 << 20;
/// Entries of a tree whose fingerprint the spawner takes itself; larger trees are for
/// a process of their own.
pub const INLINE_ENTRIES_MAX: u64 = 256;
/// Bytes of a file whose digest the spawner takes itself.
pub const INLINE_BYTES_MAX: u64 = 256 << 10;
/// Directories open at once while a tree is walked.
pub const WALK_DIRS_MAX: usize = 64;
/// What a task may tell the spawner.
pub const TASK_RESULT_BYTES_MAX: usize = 4 << 10;
/// Layers of a stack at which it is made one.
pub const LAYERS_FLATTEN: usize = 32;
/// Layers that a stack may have where it could not be made one.
pub const LAYERS_MAX: usize = 64;
/// Requests that wait until a sandbox can be asked again.
pub const QUEUED_MAX: usize = 256;
/// Sandboxes that are kept ready.
pub const WARM_MAX: usize = 64;
/// Without anything to do for this long, the spawner makes sandboxes ready.
pub const WARM_REST_MS: u64 = 2;
/// From one look at how full the file system is to the next, while a sandbox lives.
pub const SURVEY_TICK_MS: u64 = 250;
/// From one survey of disks to the next where nothing seems to have been written.
pub const SURVEY_MS_MAX: u64 = 30_000;
/// Free space that must be gone before disks are surveyed, in bytes. Less where a
/// sandbox has a small limit.
pub const SURVEY_BYTES: u64 = 32 << 20;
/// The same in inodes.
pub const SURVEY_INODES: u64 = 4_096;
/// Surveys that find a sandbox above its limit and growing before it is killed.
pub const SURVEY_STRIKES_MAX: u32 = 4;
/// Growth between two surveys that counts, in bytes, and in inodes.
pub const SURVEY_GROWTH: u64 = 64;
