//! How much is measured. What a measurement may take at most stands in the crate's limits.

/// Sessions whose turns are measured, one after the other.
pub(crate) const SESSIONS: u64 = 3;
/// Turns of each of them.
pub(crate) const TURNS: u64 = 120;
/// Turns at the beginning and at the end that are compared to show growth.
pub(crate) const TURNS_COMPARED: u64 = 20;
/// Turns of the one session whose memory is measured.
pub(crate) const ALONE_TURNS: u64 = 40;
/// How often that is done, each time in a new process.
pub(crate) const ALONE_TIMES: u64 = 3;
/// Sessions that run at once in one process.
pub(crate) const CROWD_SESSIONS: u64 = 200;
/// Turns of each of them.
pub(crate) const CROWD_TURNS: u64 = 10;
/// Tasks that append to the journal at once.
pub(crate) const WRITERS: u64 = 100;
/// Steps of each of them in one batch.
pub(crate) const STEPS_PER_BATCH: u64 = 20;
/// Batches.
pub(crate) const BATCHES: usize = 30;

/// Rounds of the sandbox's figures.
pub(crate) const SANDBOX_ROUNDS: usize = 60;
/// Commands and reads of a file in each round.
pub(crate) const SANDBOX_EXECS: usize = 10;
/// Files of 4 KiB in the workspace of each round.
pub(crate) const SANDBOX_FILES: usize = 50;
/// Rounds from one sample of Docker to the next, which takes a hundred times as long.
pub(crate) const SANDBOX_DOCKER_EVERY: usize = 4;
/// Sandboxes at once.
pub(crate) const SANDBOX_CROWD: usize = 1_000;
/// Tasks that make them.
pub(crate) const SANDBOX_MAKERS: usize = 4;

/// Decisions of each figure of `bench policy`.
pub(crate) const POLICY_DECISIONS: usize = 20_000;
/// People of the organisation that is decided for.
pub(crate) const POLICY_PEOPLE: usize = 10_000;
/// Sessions of the store that is audited: with the two below a million events.
pub(crate) const AUDIT_SESSIONS: u64 = 1_000;
/// Turns of each of them.
pub(crate) const AUDIT_TURNS: u64 = 40;
/// Events of each turn.
pub(crate) const AUDIT_TURN_EVENTS: u64 = 25;
/// Events of one append.
pub(crate) const AUDIT_APPEND_EVENTS: u64 = 9;
/// Tasks that write them at once.
pub(crate) const AUDIT_WRITERS: u64 = 20;
/// How often it is audited.
pub(crate) const AUDIT_TIMES: usize = 5;

/// Entries of the store whose namespace is measured.
pub(crate) const ENTRIES: u64 = 100_000;
/// Entries of each of their folders.
pub(crate) const FOLDER_ENTRIES: u64 = 100;
/// Words of each of them, about a kilobyte.
pub(crate) const ENTRY_WORDS: u64 = 160;
/// Different words in all of them.
pub(crate) const WORDS: u64 = 20_000;
/// Tasks that write them at once.
pub(crate) const ENTRY_WRITERS: u64 = 64;
/// How often each operation is measured.
pub(crate) const ENTRY_SAMPLES: u64 = 1_000;

/// Entries that a program in a sandbox searches: 20 MB with the next.
pub(crate) const SERVED_ENTRIES: u64 = 5_000;
/// Bytes of each of them.
pub(crate) const SERVED_BYTES: usize = 4_096;
/// Entries that are opened and read one by one.
pub(crate) const SERVED_OPENS: u64 = 2_000;
/// Sandboxes in each of which everything is searched once cold and a few times warm.
pub(crate) const SERVED_SANDBOXES: u64 = 5;
/// How often it is searched warm in each.
pub(crate) const SERVED_WARM: u64 = 4;

/// Files of the repository that is conversed about.
pub(crate) const REPOSITORY_FILES: u64 = 200;
/// Starts of a program that was never started before.
pub(crate) const FIRST_STARTS: u64 = 5;
/// Starts of one that was.
pub(crate) const STARTS: u64 = 20;
/// Keys that are typed in an empty conversation, and in a long one.
pub(crate) const KEYS: usize = 200;
/// What stands behind the prompt at most, so that it is one row.
pub(crate) const TYPED_CHARS: usize = 52;
/// Sessions that are begun with a message.
pub(crate) const FRESH_SESSIONS: usize = 10;
/// Turns of tokens.
pub(crate) const TOKEN_TURNS: u64 = 50;
/// Tokens of each.
pub(crate) const TURN_TOKENS: u64 = 10;
/// Turns in which a command prints five megabytes.
pub(crate) const OUTPUT_TURNS: usize = 5;
/// Tokens of the long conversation.
pub(crate) const LONG_TOKENS: usize = 200_000;
/// Bytes of a token, about.
pub(crate) const TOKEN_BYTES: usize = 4;
/// Bytes of each reply of which it consists.
pub(crate) const LONG_REPLY_BYTES: usize = 60_000;
/// Messages that are sent in it.
pub(crate) const LONG_MESSAGES: usize = 20;
