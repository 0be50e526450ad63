//! Every limit of the engine, with its unit in its name.

/// Events that one step appends at most before it looks at the world again.
pub const BATCH_EVENTS_MAX: usize = 512;
/// Appends that lose against another writer before the driver gives up.
pub const CONFLICTS_MAX: u32 = 64;
/// How often a driver that waits looks for events that another process appended.
pub const FOREIGN_POLL_MS: u64 = 250;
/// How long a driver waits for a store that is busy or full, and holds what it knows.
pub const STORE_WAIT_MS_MAX: u64 = 3_600_000;
/// Before it tries for the second time; each further pause is twice as long.
pub const STORE_PAUSE_MS_MIN: u64 = 50;
/// The longest of these pauses.
pub const STORE_PAUSE_MS_MAX: u64 = 5_000;
/// Events after which the folded state is kept, so that loading stays flat.
pub const SNAPSHOT_EVENTS: u64 = 256;
/// From a cancel until a running command is given up.
pub const STOP_MS_MAX: u64 = 2_000;
/// From a cancel until a subagent is given up, for each that may be below another.
pub const STOP_BELOW_MS_MAX: u64 = 10_000;
/// From the question to the model until an idle sandbox is frozen.
pub const FREEZE_AFTER_MS_DEFAULT: u64 = 2_000;
/// Snapshots of one sandbox that are kept at once.
pub const SNAPSHOTS_DEFAULT: usize = 3;
/// Whole contexts of its model that one reply may say it used; it counts for no more.
pub const CONTEXTS_PER_REPLY_MAX: u64 = 2;
/// What a command may say it took beyond what was reserved for it; it counts for no more.
pub const LATE_MS_MAX: u64 = 10_000;
/// How often one call attaches anew to a sandbox that somebody else suspended.
pub const ATTACHES_MAX: usize = 4;
/// Notices that a slow listener may be behind before it has to read the journal again.
pub const FEED_NOTICES_MAX: usize = 1_024;
/// The file that says what a workspace was filled with.
pub const MARK_BYTES_MAX: u64 = 4_096;
/// File operations under way at once while a workspace is copied.
pub const COPIES_MAX: usize = 32;
/// Entries of one page of a manifest.
pub const MANIFEST_PAGE_ENTRIES: u32 = 2_000;
/// Files and links of a workspace when its changes are taken out.
pub const MANIFEST_ENTRIES_MAX: u64 = 1_000_000;
/// Changed files that the diff of a session holds, in bytes together.
pub const CHANGED_BYTES_MAX: u64 = 256 << 20;
/// How often a disk is copied for a subagent while something keeps it busy.
pub const COPY_ATTEMPTS_MAX: u32 = 50;
/// Between two of these attempts.
pub const COPY_PAUSE_MS: u64 = 100;
/// Sessions that one process drives at once.
pub const SESSIONS_MAX: usize = 4_096;
/// What a listing shows of a session's first message.
pub const TITLE_CHARS_MAX: usize = 120;

/// How long what the rules said of an entry is kept: they may look at the time.
pub const RIGHTS_MS_MAX: u64 = 1_000;
/// Entries of which it is kept at once, for one session.
pub const RIGHTS_MAX: usize = 20_000;
/// Effects of one session of which it is kept: most have the same facts.
pub const JUDGEMENTS_MAX: usize = 8;
/// Changes of entries that one event of the journal names.
pub const TOUCHED_CHANGES_PER_EVENT: usize = 1_000;
/// That are told at once; what is beyond is told with the next effect.
pub const TOUCHED_CHANGES_MAX: usize = 256_000;
/// Refused changes of entries that one event of the journal names, and as many unseen ones.
pub const REFUSED_ENTRIES_MAX: usize = 100;
/// The reason of each.
pub const REFUSAL_CHARS_MAX: usize = 300;
/// Hosts of one event about what a sandbox reached; further ones stand in the next one.
pub const EGRESS_FLOWS_PER_EVENT: usize = 64;
/// Refused hosts that the model is told of behind one command's output.
pub const EGRESS_REFUSALS_TOLD: usize = 5;
