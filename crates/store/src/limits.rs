//! Every limit of the store, with its unit in its name.

/// Text of an event that is kept in its row; a longer one becomes a blob.
pub const PAYLOAD_INLINE_BYTES_MAX: usize = 64 << 10;
/// Text of one event, in a row or as a blob.
pub const EVENT_BYTES_MAX: usize = 64 << 20;
/// Events of one append.
pub const APPEND_EVENTS_MAX: usize = 1_024;
/// Appends and snapshots that one commit takes together.
pub const BATCH_REQUESTS_MAX: usize = 512;
/// Text that one commit takes together; one request alone may be larger.
pub const BATCH_BYTES_MAX: usize = 16 << 20;
/// Requests that wait for the writer; the next caller waits for a place.
pub const QUEUE_REQUESTS_MAX: usize = 1_024;
/// Rows of one SQL statement; more take several statements of the same transaction.
pub const STATEMENT_ROWS_MAX: usize = 16;
/// Events of one page of a load.
pub const PAGE_EVENTS_MAX: usize = 1_024;
/// Text of one page of a load; a single larger event still makes a page.
pub const PAGE_BYTES_MAX: usize = 16 << 20;
/// Sessions of one page of a listing.
pub const PAGE_SESSIONS_MAX: usize = 1_000;
/// Bytes of a snapshot's state.
pub const SNAPSHOT_BYTES_MAX: usize = 64 << 20;
/// Bytes of a session's title; a longer one is cut.
pub const TITLE_BYTES_MAX: usize = 200;
/// Bytes of a session's status; a longer one is cut.
pub const STATUS_BYTES_MAX: usize = 100;
/// A blob that is handed over or asked for as a whole, in memory.
pub const BLOB_MEMORY_BYTES_MAX: u64 = 64 << 20;
/// A blob that is streamed.
pub const BLOB_BYTES_MAX: u64 = 16 << 30;
/// How long a commit waits for another process that writes, unless set otherwise.
pub const BUSY_WAIT_MS: u64 = 10_000;
/// Connections that read.
pub const READERS: usize = 2;
/// The write-ahead log is copied into the database when it has this many pages.
pub const WAL_PAGES: u32 = 1_000;
/// The write-ahead log is cut back to this size after it was copied.
pub const WAL_KEPT_BYTES_MAX: u64 = 64 << 20;
/// Temporary files older than this were left by a crash and are removed at open.
pub const LEFTOVER_AGE_S: u64 = 24 * 60 * 60;
/// Accounts of one listing.
pub const ACCOUNTS_MAX: u32 = 100_000;
/// Accounts of one session that are written together with its head.
pub const LONELY_ACCOUNTS_MAX: usize = 4;
/// Sessions whose heads one statement reads.
pub const HEADS_MAX: usize = 64;
/// Events that no checkpoint covers yet; with one more, those that wait are covered.
pub const ANCHOR_EVENTS_MAX: u64 = 4_096;
/// How long an event waits for a checkpoint while the process that appended it lives.
pub const ANCHOR_MS_MAX: u64 = 10_000;
/// How often a process looks for what others that ended left without a checkpoint.
pub const ANCHOR_SCAN_MS: u64 = 300_000;
/// Entries that one transaction adds to the log when it catches up.
pub const ANCHOR_ENTRIES_MAX: usize = 4_096;
/// Faults that one audit tells; the rest is counted.
pub const AUDIT_FAULTS_MAX: usize = 1_000;
/// Sessions that are checked at once.
pub const AUDIT_READERS: usize = 2;
/// What a reader of the audit keeps of the database, in KiB.
pub const AUDIT_CACHE_KIB: usize = 16_384;
/// Events between the one that is proved and the entry that covers it.
pub const PROOF_LINKS_MAX: usize = 1_000_000;
/// Text of a proof.
pub const PROOF_BYTES_MAX: u64 = 256 << 20;
/// A line of the log's copy; none comes near it.
pub const LOG_LINE_BYTES_MAX: u64 = 256;
/// A day, as calendars count it.
pub(crate) const DAY_MS: u64 = 24 * 3_600_000;
