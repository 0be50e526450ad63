//! Every limit of the log and its proofs, with its unit in its name.

/// Faults that one audit tells; the rest is counted.
pub const FAULTS_MAX: usize = 1_000;
/// Entries of the log's copy that differ from the log and are held to compare sessions
/// with. An older database in place of a newer one makes as many as it is older.
pub(crate) const DIFFERING_ENTRIES_MAX: usize = 100_000;
/// Events between the one that is proved and the entry that covers it.
pub const PROOF_LINKS_MAX: usize = 1_000_000;
/// Text of a proof.
pub const PROOF_BYTES_MAX: u64 = 256 << 20;
/// Checkpoints that the log's copy lags behind after crashes, one for each; with more, its
/// end was cut off.
pub const COPY_LAG_CHECKPOINTS_MAX: usize = 8;
/// A line of the log's copy; none comes near it.
pub(crate) const LOG_LINE_BYTES_MAX: u64 = 256;
