//! Every limit of the turn machine, with its unit in its name.

/// Arguments of one tool call, as the model wrote them.
pub const ARGUMENT_BYTES_MAX: usize = 4 << 20;
/// How deep the arguments of a call nest.
pub const ARGUMENT_DEPTH_MAX: usize = 64;
/// How deep any JSON of a provider nests; readers of JSON give up at 128.
pub const JSON_DEPTH_MAX: usize = 100;
/// Tool calls in one model reply; later ones are refused.
pub const CALLS_PER_REPLY_MAX: usize = 128;
/// The same call with the same arguments in a row; the next one is refused.
pub const SAME_CALL_MAX: u32 = 4;
/// One message of a person, a file or standard input.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// How long the name of a request is remembered by which something was said.
pub const REQUEST_KEPT_MS: u64 = 48 * 60 * 60 * 1_000;
/// How many of them at most; the oldest are forgotten first.
pub const REQUESTS_KEPT_MAX: usize = 10_000;
/// One picture: 5 MiB in base64, which is what Anthropic and Bedrock take at the most.
pub const PICTURE_BYTES_MAX: u64 = (5 << 20) / 4 * 3;
/// Columns or rows of one: Anthropic refuses more.
pub const PICTURE_EDGE_PX_MAX: u32 = 8_000;
/// Pictures of one message.
pub const PICTURES_PER_MESSAGE_MAX: usize = 10;
/// Pictures of a conversation between two compactions: of more Anthropic takes small ones only.
pub const PICTURES_MAX: usize = 20;
/// All of these: 20 MB in base64 is what a request to Gemini has room for.
pub const PICTURES_BYTES_MAX: u64 = 14 << 20;
/// Pixels that are counted as one token.
pub const PIXELS_PER_TOKEN: u64 = 750;
/// Tokens of the largest picture: one of 2,576 pixels in length, which a model of high
/// resolution looks at as it is.
pub const PICTURE_TOKENS_MAX: u64 = 4_784;
/// Compaction starts when the context is this full, in percent of the model's window.
pub const COMPACT_AT_PERCENT: u64 = 80;
/// Bytes of a message that a shortened request for a summary still shows.
pub const COMPACT_MESSAGE_BYTES_MAX: usize = 32 << 10;
/// Bytes of one tool result that it still shows.
pub const COMPACT_RESULT_BYTES_MAX: usize = 2_000;
/// However little room there is, so much is shown of one message or result, in bytes.
pub const COMPACT_ITEM_BYTES_MIN: usize = 256;
/// What stands for one item of a conversation of which no summary could be made, in bytes.
pub const COMPACT_LINE_BYTES: usize = 500;
/// How often in a row a conversation is made shorter before the turn ends.
pub const COMPACT_ATTEMPTS_MAX: u32 = 3;
/// What a summary may take of a model's output, in tokens.
pub const SUMMARY_TOKENS_MAX: u64 = 16_384;
/// What a model is asked for at most when its summaries were too long, in words.
pub const SUMMARY_WORDS_MAX: usize = 4_000;
/// And at least.
pub const SUMMARY_WORDS_MIN: usize = 50;
/// Bytes that are counted for a word.
pub const SUMMARY_BYTES_PER_WORD: usize = 8;
/// Files that a summary names as written.
pub const SUMMARY_FILES_MAX: usize = 200;
/// Bytes of text that are counted as one token where no provider counted them. On the safe side.
pub const BYTES_PER_TOKEN: u64 = 3;
/// Snapshots of one sandbox that a session remembers; older ones are forgotten.
pub const KEPT_MAX: usize = 256;
/// Attempts at one effect, counted over crashes of the harness.
pub const ATTEMPTS_MAX: u32 = 100;
/// Characters of changed arguments that the model is told.
pub const AMENDED_CHARS_MAX: usize = 2_000;
/// The longest that a model call may take, all its attempts together.
pub const MODEL_MS_MAX: u64 = 3_600_000;
/// How long a turn waits at the least, where a provider takes no more requests; doubles with
/// each time in a row.
pub const THROTTLE_MS_MIN: u64 = 60_000;
/// And at the most, where the provider does not ask for more.
pub const THROTTLE_MS_MAX: u64 = 3_600_000;
/// How often in a row a turn waits so before it ends.
pub const THROTTLES_MAX: u32 = 48;
/// Output that a model call is begun with at the least, where a budget leaves no more: enough
/// for a short answer or the call of a tool. With less left nothing is begun.
pub const OUTPUT_TOKENS_MIN: u64 = 512;
/// What is reserved for a call that has no deadline.
pub const CALL_MS_MAX: u64 = 60_000;
/// Time that a call or a command is begun with at the least, where a budget leaves no more.
pub const CALL_MS_MIN: u64 = 1_000;
/// From the deadline of a command until the last of its processes is dead.
pub const KILL_MS: u64 = 2_000;
/// How often a call of a tool outside may be sent: again where its server says that it did
/// nothing, because it knows the connection no more.
pub const SENDS_MAX: u64 = 2;
/// Subagents that a budget is for at once, where nobody says what each may spend.
pub const CHILD_SHARES: u64 = 4;
/// Tokens of a subagent where nobody limits them.
pub const CHILD_TOKENS: u64 = 250_000;
/// Steps of a subagent where nobody limits them.
pub const CHILD_STEPS: u64 = 100;
/// Questions to the model that a subagent's part covers at the least, by what the first
/// one may cost, if there is that much left.
pub const CHILD_CALLS: u64 = 2;
/// How many times as much a model may ask for where nobody limits it.
pub const CHILD_ASKS_TIMES: u64 = 40;
/// Subagents of a session that run beside each other; others wait for their turn.
pub const CHILDREN_AT_ONCE_MAX: usize = 16;
/// What a subagent's effects may take, and its commands of processors, where nobody limits it.
pub const CHILD_MS: u64 = 2 * 3_600_000;
/// What a subagent may send to tools outside where nobody limits it, in bytes.
pub const CHILD_EGRESS_BYTES: u64 = 16 << 20;
/// Characters of the name of a source in a label.
pub const LABEL_CHARS_MAX: usize = 128;
/// A day, as times are told.
pub(crate) const DAY_MS: u64 = 24 * 3_600_000;
