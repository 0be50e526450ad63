//! Limits of the gate. What is "per sandbox" or "per connection" says so.

/// Bytes of a request to the gate. A network with a few thousand grants fits.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Bytes of a message whose signature is verified: in base64 it fits into a request.
pub(crate) const VERIFIED_BYTES_MAX: usize = 704 << 10;
/// Bytes of an answer of the gate: a full table of flows, or the roots it trusts.
pub(crate) const ANSWER_BYTES_MAX: usize = 4 << 20;
/// For a whole request to the gate, from its first byte to its answer.
pub(crate) const REQUEST_MS_MAX: u64 = 10_000;
/// Until a gate that was started says that it serves.
pub(crate) const START_MS_MAX: u64 = 30_000;
/// Bytes of what a gate says at its start.
pub(crate) const START_BYTES_MAX: u64 = 64 << 10;
/// Gates started for one request.
pub(crate) const START_ATTEMPTS_MAX: u32 = 3;
/// Waits for another gate of the directory: it begins, or is on its way out.
pub(crate) const BUSY_ATTEMPTS_MAX: u32 = 100;
/// Between two of those.
pub(crate) const BUSY_PAUSE_MS: u64 = 50;
/// Requests to the gate that are looked at together.
pub(crate) const REQUESTS_AT_ONCE_MAX: usize = 64;
/// After this long without a sandbox and without a request, the gate ends.
pub(crate) const UNUSED_MS_MAX: u64 = 60_000;
/// As long as that where sandboxes are open: whoever opened them may have died. The next
/// command of one opens it again.
pub(crate) const UNUSED_OPEN_MS_MAX: u64 = 3_600_000;
/// Sandboxes of one gate.
pub(crate) const SANDBOXES_MAX: usize = 10_000;
/// Bytes of a sandbox's name.
pub(crate) const SANDBOX_NAME_BYTES_MAX: usize = 128;
/// Grants of a sandbox.
pub(crate) const GRANTS_MAX: usize = 5_000;

/// Bytes of a secret. A shorter one could not be told from other text in answers.
pub(crate) const SECRET_BYTES_MIN: usize = 8;
/// Bytes of a secret: a header has room for it.
pub(crate) const SECRET_BYTES_MAX: usize = 8 << 10;
/// Bytes of a secret's name.
pub(crate) const SECRET_NAME_BYTES_MAX: usize = 128;
/// Places that one secret is sent to.
pub(crate) const SECRET_PLACES_MAX: usize = 32;
/// Secrets of a sandbox.
pub(crate) const SECRETS_MAX: usize = 64;
/// Bytes of what a push says that it changes: a few hundred refs.
pub(crate) const PUSH_COMMANDS_BYTES_MAX: usize = 64 << 10;
/// Bytes of a refused push that are taken before git is told so. Behind more it sees an error of
/// HTTP.
pub(crate) const REFUSED_PUSH_BYTES_MAX: usize = 64 << 20;
/// Bytes of a body that has to be signed and does not say its hash.
pub(crate) const SIGNED_BODY_BYTES_MAX: usize = 8 << 20;
/// Bits that nobody can guess of a placeholder.
pub(crate) const PLACEHOLDER_BITS_MIN: u32 = 128;
/// Bytes at the beginning of a secret that say what it is, and that its placeholder keeps.
pub(crate) const PLACEHOLDER_PREFIX_BYTES_MAX: usize = 16;
/// Bytes of the master key.
pub(crate) const MASTER_KEY_BYTES: usize = 32;
/// Bytes of what a command prints that gives it.
pub(crate) const MASTER_KEY_TEXT_BYTES_MAX: usize = 4 << 10;

/// Ports of a sandbox at which connections are passed on unread.
pub(crate) const CAPTURED_PORTS_MAX: usize = 16;
/// Listeners of a sandbox: that of its proxy, and those to which names lead.
pub(crate) const LISTENERS_MAX: usize = 4 + CAPTURED_PORTS_MAX;
/// Connections of a sandbox at once. Above it nothing is accepted, and the backlog waits.
pub(crate) const CONNECTIONS_MAX: usize = 256;
/// New connections of a sandbox in a second, beside those that it may have at once: TLS with each
/// costs the gate's one thread half a millisecond. More wait.
pub(crate) const CONNECTIONS_PER_S_MAX: u32 = 100;
/// Requests of a sandbox in a second, about a third of what the gate's one thread passes on. More
/// wait; as many again may come at once.
pub(crate) const REQUESTS_PER_S_MAX: u32 = 10_000;
/// Connections of a sandbox to the outside at once. Above it requests are refused.
pub(crate) const UPSTREAMS_MAX: usize = 512;
/// Connections that one call of a thread accepts.
pub(crate) const ACCEPTS_AT_ONCE_MAX: usize = 16;
/// A call to accept(2) that takes longer was made to block by whoever else holds the listener.
pub(crate) const ACCEPT_MS_MAX: u64 = 2_000;
/// Pause after an accept(2) that failed for want of something.
pub(crate) const ACCEPT_PAUSE_MS: u64 = 100;
/// Such failures in a row, after which the listener counts as broken.
pub(crate) const ACCEPT_FAILURES_MAX: u32 = 100;

/// Hosts of a sandbox that somebody is asked about at once. What is asked beyond is refused.
pub(crate) const QUESTIONS_MAX: usize = 16;
/// Connections of a sandbox that wait for an answer, of all that it may have.
pub(crate) const HELD_CONNECTIONS_MAX: usize = 128;
/// How long somebody may take to answer. curl, git, npm and Go wait longer than that for
/// CONNECT; pip, uv and cargo hang up after 15 to 30 seconds and ask again.
pub(crate) const HELD_MS_MAX: u64 = 60_000;
/// How long a question stands without a connection: until whoever hung up asks again.
pub(crate) const HELD_AGAIN_MS: u64 = 5_000;
/// Hosts of a sandbox that somebody declined.
pub(crate) const DECLINED_MAX: usize = 1_000;

/// Requests of one connection.
pub(crate) const REQUESTS_PER_CONNECTION_MAX: u64 = 10_000;
/// Bytes of a head, of either side.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Headers of a head, of either side.
pub(crate) const HEADERS_MAX: usize = 100;
/// Bytes of a request's method.
pub(crate) const METHOD_BYTES_MAX: usize = 32;
/// Digits of a chunk's size.
pub(crate) const CHUNK_DIGITS_MAX: u8 = 15;
/// Bytes of extensions and trailers of one body: nobody has a use for many.
pub(crate) const CHUNK_EXTRA_BYTES_MAX: usize = 16 << 10;
/// Bytes read at once while a head is looked for.
pub(crate) const READ_BYTES: usize = 8 << 10;
/// Streams at once in one connection of HTTP/2, and connections to the outside that one inside has.
pub(crate) const STREAMS_MAX: u32 = 100;
/// Bytes of what is passed on as it is that are read at once, each way.
pub(crate) const STREAM_BYTES: usize = 16 << 10;
/// Connections to the outside that wait to be used again, for one inside.
pub(crate) const IDLE_UPSTREAMS_MAX: usize = 8;
/// For the head of a request, from its first byte.
pub(crate) const HEAD_MS_MAX: u64 = 15_000;
/// To resolve a name and reach one of its addresses.
pub(crate) const DIAL_MS_MAX: u64 = 10_000;
/// To reach one address, where there are others.
pub(crate) const DIAL_ADDRESS_MS_MAX: u64 = 4_000;
/// For a TLS handshake, on each side.
pub(crate) const HANDSHAKE_MS_MAX: u64 = 10_000;
/// Between two requests of a connection.
pub(crate) const IDLE_MS_MAX: u64 = 60_000;
/// Without a byte moving while a request is under way.
pub(crate) const STILL_MS_MAX: u64 = 300_000;
/// Without a byte moving while a caller's request is under way. Callers have times of their own, and
/// a call of a tool outside may take an hour.
pub(crate) const CALLER_STILL_MS_MAX: u64 = 3_660_000;
/// How often a connection is looked at for the three above, so that no request needs a timer.
pub(crate) const LOOK_MS: u64 = 5_000;
/// For a connection to the outside to finish with its last request before another is dialled.
pub(crate) const READY_MS_MAX: u64 = 100;
/// Bytes of what an upstream proxy answers to CONNECT.
pub(crate) const PROXY_HEAD_BYTES_MAX: usize = 16 << 10;

/// Rows of flows that reached something, per sandbox.
pub(crate) const GRANTED_ROWS_MAX: usize = 500;
/// Rows of flows that were refused, per sandbox. Apart, so that refusals displace nothing.
pub(crate) const REFUSED_ROWS_MAX: usize = 500;
/// Bytes of a path in a row.
pub(crate) const ROW_PATH_BYTES_MAX: usize = 200;

/// Certificates kept per sandbox.
pub(crate) const LEAVES_MAX: usize = 256;
/// How long a certificate is valid.
pub(crate) const LEAF_DAYS: u64 = 30;
/// After this long another is made.
pub(crate) const LEAF_KEPT_MS: u64 = 24 * 60 * 60 * 1000;
/// How long the authority of a sandbox is valid.
pub(crate) const AUTHORITY_DAYS: u64 = 3650;

/// Bytes of core files.
pub(crate) const CORE_BYTES_MAX: u64 = 0;
/// Threads for what blocks: names that are resolved, listeners that are accepted.
pub(crate) const BLOCKING_THREADS_MAX: usize = 512;
