//! Every limit of the model crate, with its unit in its name.

/// Attempts of one model call, the first one included.
pub const ATTEMPTS_MAX: u32 = 6;
/// Wait before the second attempt; doubles with each one after it.
pub const BACKOFF_BASE_MS: u64 = 500;
/// Longest wait between attempts that the provider did not ask for.
pub const BACKOFF_CAP_MS: u64 = 30_000;
/// Longest `Retry-After` that is waited out; a longer one ends the call at once, since
/// asking earlier would not honour it. The turn waits instead, without anything under way.
pub const RETRY_AFTER_MS_MAX: u64 = 120_000;
/// Random addition to a `Retry-After`, so that many sessions do not come back at once.
pub const RETRY_AFTER_JITTER_MS_MAX: u64 = 250;

/// Time to connect, names and TLS included.
pub const CONNECT_MS: u64 = 10_000;
/// Time from the sent request to the head of the answer.
pub const FIRST_BYTE_MS: u64 = 300_000;
/// Time without a byte after which a stream counts as dead.
pub const IDLE_MS: u64 = 300_000;
/// Time of one attempt as a whole, also if bytes keep coming.
pub const ATTEMPT_MS: u64 = 3_600_000;
/// Time that a finished stream may take to close, so that its connection can be used again.
pub const DRAIN_MS: u64 = 100;
/// Time that an unused connection is kept: shorter than the gate keeps it.
pub const POOL_IDLE_MS: u64 = 50_000;

/// One event of a stream, its field names and line ends included. The largest is the
/// last one of OpenAI Responses, which repeats all items of the reply.
pub const EVENT_BYTES_MAX: usize = 4 << 20;
/// One streamed answer as a whole.
pub const RESPONSE_BYTES_MAX: usize = 64 << 20;
/// Items, or tool calls, of one reply as a wire counts them.
pub const ITEMS_PER_REPLY_MAX: usize = 4_096;
/// Body of an answer that is an error.
pub const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
/// What people are shown of a provider's error message.
pub const ERROR_MESSAGE_BYTES_MAX: usize = 600;
/// Values of configured headers shorter than this are no secrets, but words that
/// any message may have; longer ones are taken out of what people are shown.
pub const HEADER_SECRET_BYTES_MIN: usize = 8;

/// A provider's list of its models; the largest has some hundreds with a page on each.
pub const LISTING_BYTES_MAX: usize = 16 << 20;
/// Models of one list.
pub const LISTED_MODELS_MAX: usize = 5_000;
/// Characters of the name of a listed model; what is longer is none.
pub const LISTED_NAME_CHARS_MAX: usize = 200;

/// Text of a script.
pub const SCRIPT_BYTES_MAX: usize = 4 << 20;
/// Turns of a script.
pub const SCRIPT_TURNS_MAX: usize = 10_000;
/// Delay that a scripted turn may ask for.
pub const SCRIPT_DELAY_MS_MAX: u64 = 60_000;
/// What an error about a script shows of the conversation's last results, each.
pub const SCRIPT_EXCERPT_BYTES_MAX: usize = 300;

/// Text of a file of prices.
pub const PRICES_BYTES_MAX: usize = 1 << 20;
/// What a million tokens can cost, in dollars.
pub const PRICE_DOLLARS_MAX: f64 = 1_000_000.0;
