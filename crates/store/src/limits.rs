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
/// Rows that a copy of a store sends at once.
pub const COPY_ROWS_MAX: usize = 64;
/// Text and bytes of the rows that a copy of a store sends at once; a single larger row is sent
/// alone.
pub const COPY_BYTES_MAX: usize = 4 << 20;
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
/// How long a commit waits for other processes that write, unless set otherwise. SQLite has no
/// queue for them: with 50 at once on a busy disk, one was passed over for more than 10 s.
pub const BUSY_WAIT_MS: u64 = 60_000;
/// Connections that read.
pub const READERS: usize = 2;
/// From asking for a connection that reads until one more is opened.
pub const READER_WAIT_MS_MAX: u64 = 500;
/// How often a process tells PostgreSQL that it lives.
pub const LEASE_PING_MS: u64 = 500;
/// A process that tells PostgreSQL nothing for that long is taken for dead, and another one may
/// drive its sessions.
pub const LEASE_IDLE_MS_MAX: u64 = 3_000;
/// A process that does nothing in the middle of a commit for that long loses the write lock of
/// PostgreSQL, and the commit with it.
pub const COMMIT_IDLE_MS_MAX: u64 = 3_000;
/// How long PostgreSQL may take to say who has a session.
pub const LEASE_ANSWER_MS_MAX: u64 = 10_000;
/// From losing the connection that is told of changes until another one is made.
pub const LISTEN_PAUSE_MS: u64 = 1_000;
/// Changes that were told and that nobody has looked at; more are lost, and found by looking.
pub const NOTICES_MAX: usize = 1_024;
/// Sessions that one notification tells of: it has at most 8,000 bytes (PostgreSQL's `NOTIFY`),
/// and a session's name with its place at most 86.
pub const NOTIFIED_SESSIONS_MAX: usize = 80;
/// Sessions that are looked up at once that are to be driven.
pub const DUE_SESSIONS_MAX: u32 = 1_000;
/// How often one who takes a session looks whether whoever only looks at it is done.
pub const LEASE_LOOKS_MAX: u32 = 200;
/// How often one who takes a session in PostgreSQL looks whether it is free: the answer does not say
/// whether whoever has it only looks at it.
pub const LEASE_ROW_LOOKS_MAX: u32 = 5;
/// Between two of these looks.
pub const LEASE_PAUSE_MS: u64 = 10;
/// The write-ahead log is copied into the database when it has this many pages.
pub const WAL_PAGES: u32 = 1_000;
/// The write-ahead log is cut back to this size after it was copied.
pub const WAL_KEPT_BYTES_MAX: u64 = 64 << 20;
/// A blob that no event names is let go when it is this old: the event may be on its way.
pub const BLOB_UNNAMED_S_MIN: u64 = 24 * 60 * 60;
/// What an archive says of itself, in its first file.
pub const ARCHIVE_HEAD_BYTES_MAX: u64 = 16 << 20;
/// The sums of an archive's files, about a hundred bytes each.
pub const ARCHIVE_SUMS_BYTES_MAX: u64 = 512 << 20;
/// Temporary files older than this were left by a crash and are removed at open.
pub const LEFTOVER_AGE_S: u64 = 24 * 60 * 60;
/// Accounts of one listing.
pub const ACCOUNTS_MAX: u32 = 100_000;
/// Accounts of one session that are written together with its head.
pub const LONELY_ACCOUNTS_MAX: usize = 4;
/// Keys that are listed.
pub const KEYS_MAX: u32 = 10_000;
/// Secrets of an organisation that are listed.
pub const SECRETS_MAX: u32 = 10_000;
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
/// Sessions that are checked at once.
pub const AUDIT_READERS: usize = 2;
/// What a reader of the audit keeps of the database, in KiB.
pub const AUDIT_CACHE_KIB: usize = 16_384;
/// A day, as calendars count it.
pub(crate) const DAY_MS: u64 = 24 * 3_600_000;
/// A file of memory or skills.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;
/// A path in a memory scope.
pub const PATH_BYTES_MAX: usize = 1_024;
/// A name in a path.
pub const NAME_BYTES_MAX: usize = 255;
/// Names of a path.
pub const DEPTH_MAX: usize = 48;
/// What an author, a reviewer or a redaction says.
pub const MESSAGE_BYTES_MAX: usize = 4 << 10;
/// Labels of a version.
pub const LABELS_MAX: usize = 256;
/// Text of all labels of a version together.
pub const LABELS_BYTES_MAX: usize = 16 << 10;
/// Entries of one page of a listing.
pub const PAGE_ENTRIES_MAX: usize = 1_000;
/// Places of which it is known in memory what stands there; one more, and all are forgotten.
pub const NODES_KNOWN_MAX: usize = 32_768;
/// Versions of one page.
pub const PAGE_VERSIONS_MAX: usize = 1_000;
/// Proposals of one page.
pub const PAGE_PROPOSALS_MAX: usize = 100;
/// Proposals of a memory scope that wait for somebody.
pub const PROPOSALS_OPEN_MAX: usize = 1_000;
/// Comments on a proposal.
pub const COMMENTS_MAX: usize = 1_000;
/// Entries that one move takes along.
pub const MOVE_ENTRIES_MAX: usize = 4_096;
/// Versions that one pruning lets go of.
pub const PRUNE_VERSIONS_MAX: usize = 1_000;
/// A run of a text that is destroyed, by which others are known to have been made from it.
pub const RUN_BYTES_MIN: usize = 16;
/// Texts that are destroyed together and whose runs are looked for.
pub const RUNS_BYTES_MAX: usize = 16 << 20;
/// Texts in which they are looked for.
pub const RELATED_BYTES_MAX: usize = 256 << 20;
/// Versions that a blame goes back.
pub const BLAME_VERSIONS_MAX: usize = 1_000;
/// Text of one search.
pub const SEARCH_BYTES_MAX: usize = 1_024;
/// Words of one search.
pub const SEARCH_WORDS_MAX: usize = 16;
/// Letters of a word's beginning that is looked for; shorter ones are those of too many.
pub const PREFIX_CHARS_MIN: usize = 3;
/// Files that one search gives.
pub const SEARCH_HITS_MAX: usize = 100;
/// Files that have the words and are compared for which fits best.
pub const SEARCH_CANDIDATES_MAX: usize = 5_000;
/// Text that is shown of a file that was found.
pub const SNIPPET_BYTES_MAX: usize = 240;
/// How long a destruction waits for others who read the write-ahead log.
pub const SHRED_WAIT_MS: u64 = 500;
/// Changes of entries that one commit takes together.
pub const BATCH_CHANGES_MAX: usize = 128;

/// The longest word that PostgreSQL's index takes, in bytes (its textsearch limits say 2 KiB).
pub const WORD_BYTES_MAX: usize = 2_000;

/// The last place that it knows of a word; what stands behind it is not found.
pub const WORD_PLACES_MAX: usize = 16_383;

/// How large the words of one file may be in it, in bytes: it takes less than 1 MiB.
pub const WORDS_BYTES_MAX: usize = 512 << 10;

/// About what it takes for a word, and for each of its places, in bytes.
pub const WORD_PLACE_BYTES: usize = 8;

/// How much of a blob is in one row of PostgreSQL, in bytes.
pub const BLOB_PIECE_BYTES: usize = 1 << 20;

/// How many statements a connection to PostgreSQL keeps prepared.
pub const STATEMENTS_KEPT: usize = 256;
