//! Every limit of the program, with its unit in its name. The defaults can be configured.

/// What people call a provider of logins where nobody says.
pub(crate) const OIDC_NAME_DEFAULT: &str = "OpenID";
/// Hours that a login by a provider lasts.
pub(crate) const OIDC_HOURS_DEFAULT: u64 = 12;
/// Logins for which a provider is asked at the same time.
pub(crate) const OIDC_LOGINS_AT_ONCE: usize = 16;
/// Characters of what a provider says to a person who was not logged in.
pub(crate) const OIDC_QUOTED_CHARS_MAX: usize = 200;
/// People who came by a provider of logins, all that ever did.
pub(crate) const SIGNED_IN_PEOPLE_MAX: usize = 5_000;
/// Values of a claim of groups that stand for groups of ours, of one person.
pub(crate) const SIGNED_IN_GROUPS_MAX: usize = 16;
/// How long the groups of a login count for what is under way, in milliseconds.
pub(crate) const SIGNED_IN_GROUPS_MS_MAX: u64 = 7 * 24 * 3_600_000;
/// Days after which a secret stops being sent, at most.
pub(crate) const SECRET_DAYS_MAX: u64 = 36_500;
/// From telling somebody that something waits until that is given up, in milliseconds.
pub(crate) const NOTIFY_MS_MAX: u64 = 10_000;
/// Digits of a digest by which a person says what they looked at: 128 bits, so that nobody
/// finds another text of the same ones.
pub(crate) const SEEN_CHARS: usize = 32;
/// Model calls and tool calls of one turn.
pub(crate) const STEPS_DEFAULT: u64 = 200;
/// The most that a limit of money can be, in dollars.
pub(crate) const DOLLARS_MAX: f64 = 1_000_000_000.0;
/// Sessions that `budget show` tells of.
pub(crate) const BUDGET_SESSIONS_MAX: usize = 10;
/// Tokens of a session.
pub(crate) const TOKENS_DEFAULT: u64 = 5_000_000;
/// Wall time of one turn: four hours.
pub(crate) const TURN_MS_DEFAULT: u64 = 4 * 3_600_000;
/// Largest directory that is copied into a sandbox.
pub(crate) const WORKSPACE_BYTES_DEFAULT: u64 = 512 << 20;
/// Files of a directory that is copied into a sandbox.
pub(crate) const WORKSPACE_FILES_DEFAULT: u64 = 50_000;
/// Bytes of one folder of what a directory depends on.
pub(crate) const DEPENDENCY_BYTES_DEFAULT: u64 = 4 << 30;
/// For how long it is noted which layer was made of a folder, in milliseconds.
pub(crate) const DEPENDENCY_NOTE_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// One command of `sandbox.setup`, in milliseconds.
pub(crate) const SETUP_COMMAND_MS_MAX: u64 = 30 * 60_000;
/// All of them, as the age of the sandbox in which they run.
pub(crate) const SETUP_SANDBOX_MS_MAX: u64 = 3 * 3_600_000;
/// Files and folders that they made among what is tracked.
pub(crate) const SETUP_PATHS_MAX: usize = 1_000;
/// Files that are taken out of their sandbox at once.
pub(crate) const SETUP_READS_MAX: usize = 16;
/// Lines of what one of them printed, where it failed.
pub(crate) const SETUP_TAIL_LINES: usize = 40;
/// Bytes of all variables that a template says.
pub(crate) const TEMPLATE_ENV_BYTES_MAX: usize = 24 << 10;
/// What an error shows of a line of a configuration.
pub(crate) const CONFIG_LINE_CHARS_MAX: usize = 100;
/// AGENTS.md and its like.
pub(crate) const GUIDE_BYTES_MAX: u64 = 64 << 10;
/// Contents of one file of a repository that a person's answers are remembered of.
pub(crate) const TRUST_DECISIONS_MAX: usize = 32;
/// Files in which what a person trusts is kept, that are looked at for a list.
pub(crate) const TRUST_FILES_MAX: usize = 100_000;
/// Piped standard input.
pub(crate) const STDIN_BYTES_MAX: u64 = 4 << 20;
/// Tokens of a context where nobody says otherwise.
pub(crate) const CONTEXT_TOKENS_DEFAULT: u64 = 200_000;
/// Tokens of one reply where nobody says otherwise.
pub(crate) const OUTPUT_TOKENS_DEFAULT: u64 = 16_000;
/// How long a server on this machine may take to say which models it has, where nobody named
/// one: it answers at once or is not there.
pub(crate) const LOCAL_ANSWER_MS_MAX: u64 = 1_000;
/// Models of one server among which a person is asked to choose.
pub(crate) const MODELS_ASKED_MAX: usize = 8;
/// How long a provider may take to say which models it has.
pub(crate) const LISTING_MS_MAX: u64 = 10_000;
/// Lines of a patch that a person is shown; the patch file has them all.
pub(crate) const DIFF_LINES_MAX: usize = 400;
/// Bytes of a patch that a person is shown; the patch file has them all.
pub(crate) const DIFF_BYTES_MAX: usize = 64 << 10;
/// What a person is shown of one line of a patch.
pub(crate) const DIFF_LINE_CHARS_MAX: usize = 2_000;
/// Paths that one line names of what a session did not commit.
pub(crate) const UNCOMMITTED_TOLD_MAX: usize = 5;
/// How long git in a sandbox may take for its commits, all times that it is asked together.
pub(crate) const COMMITS_MS_MAX: u64 = 120_000;
/// What it may print for them, each time.
pub(crate) const COMMITS_OUTPUT_BYTES_MAX: u64 = 63 << 20;
/// How often it is asked: once more for each folder that a change lies deep in.
pub(crate) const COMMIT_ROUNDS_MAX: usize = 64;
/// Lines of a tool's output that a person is shown.
pub(crate) const OUTPUT_LINES_MAX: usize = 12;
/// From a cancel until the sandbox is deleted under a driver that does not stop.
pub(crate) const CANCEL_MS_MAX: u64 = 1_500;
/// From telling a process to stop until that is given up, with what it takes out of its sandbox.
pub(crate) const STOP_MS_MAX: u64 = 15_000;

/// How long a process whose turn was stopped is waited for: it ends, unless it is a conversation.
pub(crate) const STOPPED_RUN_MS_MAX: u64 = 5_000;
/// What a list shows of a model's name or of a path.
pub(crate) const COLUMN_CHARS_MAX: usize = 28;
/// From an answer until the process that holds its session goes on with it, or lets go.
pub(crate) const HANDOVER_MS_MAX: u64 = 30_000;
/// How often a listener looks for new events of another process.
pub(crate) const FOLLOW_POLL_MS: u64 = 100;
/// How often it is looked for what sandboxes reached.
pub(crate) const EGRESS_POLL_MS: u64 = 500;
/// Sessions that are looked at for that, the newest ones.
pub(crate) const EGRESS_SESSIONS_MAX: usize = 200;
/// Sessions that are looked at at a time for the newest of a directory.
pub(crate) const SESSIONS_PAGE: usize = 32;
/// Those of a server that are asked for at a time.
pub(crate) const REMOTE_SESSIONS_PAGE: usize = 200;
/// The name that a person gives to a session, so that those of its sandboxes stay short.
pub(crate) const SESSION_NAME_CHARS_MAX: usize = 32;
/// Sessions that the beginning of a name is looked for in.
pub(crate) const SESSIONS_SEARCHED_MAX: usize = 100_000;
/// What says, behind a row of a terminal, how much of it is not shown.
pub(crate) const MORE_CHARS: usize = 24;
/// What a person is shown of one line of a tool's output.
pub(crate) const OUTPUT_LINE_CHARS_MAX: usize = 160;
/// What a person is shown of a task or of a call's arguments.
pub(crate) const BRIEF_CHARS_MAX: usize = 100;
/// How long something takes before a person is told that it still goes on.
pub(crate) const STATUS_AFTER_MS: u64 = 1_000;
/// How often that is brought up to date.
pub(crate) const STATUS_TICK_MS: u64 = 250;
/// Warnings of one kind that a person is told one by one.
pub(crate) const WARNINGS_MAX: usize = 20;
/// Files of one copy into or out of a sandbox.
pub(crate) const COPIED_FILES_MAX: usize = 1_000_000;
/// Bytes that are copied out of an archive at once.
pub(crate) const COPY_PIECE_BYTES: usize = 64 << 10;
/// Files that are under way at once.
pub(crate) const COPIES_AT_ONCE_MAX: usize = 16;
/// The name of a session's sandbox where nobody says otherwise.
pub(crate) const SANDBOX_NAME_DEFAULT: &str = "work";
/// Whose shared sandboxes are where nobody says otherwise.
pub(crate) const ASSISTANT_DEFAULT: &str = "main";
/// The name of a sandbox or an assistant, so that ids and names of tools stay short.
pub(crate) const SANDBOX_NAME_CHARS_MAX: usize = 24;
/// Sandboxes of one session.
pub(crate) const SANDBOXES_MAX: usize = 8;
/// From the last use of a sandbox until it goes cold by itself: half an hour.
pub(crate) const SANDBOX_IDLE_MS_DEFAULT: u64 = 1_800_000;
/// From the last use of what no session names until it is destroyed: a week.
pub(crate) const RETENTION_MS_DEFAULT: u64 = 7 * 24 * 3_600_000;
/// The name of a server of tools, so that there is room for those of its tools.
pub(crate) const SERVER_NAME_CHARS_MAX: usize = 24;
/// The name of a server in a repository's `.mcp.json`, so that its sandbox has one too.
pub(crate) const MCP_NAME_CHARS_MAX: usize = 20;
/// The age of a sandbox in which a program is asked for its tools, should nobody destroy it.
pub(crate) const LIST_SANDBOX_MS_MAX: u64 = 600_000;
/// Addresses of one server, beside the one that it is at, at which its tools stay pinned.
pub(crate) const PINNED_ADDRESSES_MAX: usize = 64;
/// Servers of tools.
pub(crate) const SERVERS_MAX: usize = 32;
/// From the start of a call of a tool outside to giving up.
pub(crate) const OUTSIDE_MS_DEFAULT: u64 = 60_000;
/// The name of an agent.
pub(crate) const AGENT_NAME_CHARS_MAX: usize = 32;
/// Agents of one memory scope that are looked at.
pub(crate) const AGENTS_MAX: usize = 200;
/// How often it is looked which agents begin by themselves: at each minute of the clock.
pub(crate) const TRIGGER_LOOK_MS: u64 = 60_000;
/// How late what a schedule wants is still begun, where no server was there in time.
pub(crate) const TRIGGER_LATE_MS_MAX: u64 = 3_600_000;
/// How long ago, or ahead, a message to a webhook says that it was signed (Standard Webhooks).
pub(crate) const WEBHOOK_LATE_MS_MAX: u64 = 300_000;
/// Signatures of a message to a webhook that are tried: as many as keys while one is changed.
pub(crate) const WEBHOOK_SIGNATURES_MAX: usize = 4;
/// How many agents deep subagents start others.
pub(crate) const SUBAGENTS_DEEP_DEFAULT: u64 = 1;
/// A checkpoint or a key that is read from a file.
pub(crate) const CHECKPOINT_BYTES_MAX: u64 = 1 << 20;

/// What one session may write to memory, in MiB.
pub(crate) const MEMORY_SESSION_MIB_DEFAULT: u64 = 256;
/// Files and folders that one session may make in memory.
pub(crate) const MEMORY_SESSION_ENTRIES_DEFAULT: u64 = 10_000;
/// Versions that one session may write to memory.
pub(crate) const MEMORY_SESSION_VERSIONS_DEFAULT: u64 = 50_000;
/// What is kept in the memory scopes of one person or group, in MiB.
pub(crate) const MEMORY_PERSON_MIB_DEFAULT: u64 = 2_048;
/// Files and folders of one person or group.
pub(crate) const MEMORY_PERSON_ENTRIES_DEFAULT: u64 = 100_000;
/// Versions of one person or group whose contents are kept.
pub(crate) const MEMORY_PERSON_VERSIONS_DEFAULT: u64 = 500_000;
/// What is kept in all memory scopes, in MiB.
pub(crate) const MEMORY_ORGANISATION_MIB_DEFAULT: u64 = 32_768;
/// Files and folders of all memory scopes.
pub(crate) const MEMORY_ORGANISATION_ENTRIES_DEFAULT: u64 = 1_000_000;
/// Versions of all memory scopes whose contents are kept.
pub(crate) const MEMORY_ORGANISATION_VERSIONS_DEFAULT: u64 = 5_000_000;
/// Versions that a redaction asks about one by one.
pub(crate) const RELATED_SHOWN_MAX: usize = 50;
/// Files that `doctor` counts of one kind; of more it says only that there are.
pub(crate) const COUNTED_FILES_MAX: u64 = 1_000_000;
/// The database is made smaller when so much of it is free.
pub(crate) const FREE_BYTES_MAX: u64 = 1 << 20;

/// A day.
pub(crate) const DAY_MS: u64 = 24 * 3_600_000;

/// Folders that are looked at as skills.
pub(crate) const SKILLS_MAX: usize = 500;
/// What a session is told of skills when it is opened, names and descriptions together.
pub(crate) const SKILLS_PROMPT_BYTES_MAX: usize = 32 << 10;
/// Lines of one thing that waits in a list of all; the rest of it is shown by its name.
pub(crate) const INBOX_LINES_MAX: usize = 16;

/// The narrowest terminal that anything is fitted into; on a narrower one rows are broken by it.
pub(crate) const COLUMNS_MIN: usize = 10;
/// The end of a command's output that is looked at of one piece of it.
pub(crate) const TAIL_BYTES_MAX: usize = 64 << 10;
/// Lines of the end of a command's output that are kept while it runs.
pub(crate) const TAIL_LINES_MAX: usize = 200;
/// What is kept of one of these lines.
pub(crate) const TAIL_LINE_BYTES_MAX: usize = 4 << 10;
/// Rows of a command's output that are shown while it runs.
pub(crate) const TAIL_ROWS: usize = 5;
/// Text of a model that may still change how it looks; more of it is taken as it is.
pub(crate) const OPEN_TEXT_BYTES_MAX: usize = 64 << 10;
/// Between two drawings of what is under way.
pub(crate) const FRAME_MS: u64 = 16;
/// How often a conversation in which nothing runs looks whether others said something.
pub(crate) const TALK_LOOK_MS: u64 = 1_000;
/// How long a question stands on a terminal before it is left to the inbox.
pub(crate) const QUESTION_MS_MAX: u64 = 600_000;
/// How long a key belongs to the text that may have been meant, after a question came.
pub(crate) const QUESTION_GUARD_MS: u64 = 500;
/// How long after one Ctrl-C another one leaves.
pub(crate) const LEAVE_MS_MAX: u64 = 2_000;
/// What a person may write at once in a conversation; more belongs into a file.
pub(crate) const INPUT_BYTES_MAX: usize = 256 << 10;
/// Rows in which the text is shown that a person writes.
pub(crate) const EDITOR_ROWS: usize = 8;
/// Files that are offered at once for the word that is written.
pub(crate) const OFFERS_MAX: usize = 6;
/// The width of what is no terminal.
pub(crate) const COLUMNS_DEFAULT: usize = 80;
/// The height of what is no terminal, or does not say.
pub(crate) const ROWS_DEFAULT: usize = 24;
/// Lines that a person wrote in conversations before, of which they can have one again.
pub(crate) const HISTORY_LINES_MAX: usize = 500;
/// Hosts of registries to which a pull keeps its ways: the registry, where it keeps blobs and where
/// it has tokens given.
pub(crate) const REGISTRY_HOSTS_MAX: usize = 16;
/// A template's name that is made of an image's.
pub(crate) const IMAGE_NAME_CHARS_MAX: usize = 100;
/// Milliseconds for an image to be built, or to be taken from the engine.
pub(crate) const IMAGE_BUILD_MS_MAX: u64 = 60 * 60_000;
/// Rows of what was said last that a person is shown who goes on.
pub(crate) const RECAP_ROWS_MAX: usize = 12;
/// Sessions that a conversation lists.
pub(crate) const SESSIONS_SHOWN: usize = 15;
/// How long one who leaves a conversation waits for its session to rest.
pub(crate) const CLOSE_MS_MAX: u64 = 2_000;
/// Rows of a conversation that can be drawn again when its terminal was resized.
pub(crate) const PRINTED_ROWS_MAX: usize = 300;
/// Settings of a package manager that are read, in bytes.
pub(crate) const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// Files with sources of apt that are read.
pub(crate) const APT_FILES_MAX: usize = 64;
/// Characters of a key; a shorter word opens nothing.
pub(crate) const KEY_CHARS_MIN: usize = 8;
/// Connections of a container that wait for the gate to take them.
pub(crate) const CONNECTIONS_WAITING_MAX: usize = 256;
/// From opening a sandbox in another gate, while a command runs, until that one is watched.
pub(crate) const GATE_AGAIN_MS: u64 = 100;
/// Bytes of a secret that is typed or piped.
pub(crate) const HIDDEN_LINE_BYTES_MAX: usize = 16 << 10;
/// Bytes of what the supervisor is asked.
pub(crate) const START_REQUEST_BYTES_MAX: usize = 64 << 10;
/// From being told to end until a server does, whatever requests are under way, in milliseconds.
pub(crate) const SERVE_GRACE_MS_MAX: u64 = 3_000;
/// Descriptors that a server may have open, as far as the machine lets it: some six for each
/// session that works and is followed.
pub(crate) const SERVE_FILES_MAX: u64 = 65_536;
/// Sessions that are looked at, or gone on with, at once when a server begins.
pub(crate) const SERVE_BEGIN_AT_ONCE: usize = 16;
/// Sessions that wait to be opened, woken or looked at.
pub(crate) const SERVE_JOBS_MAX: usize = 1_024;
/// How often a server looks for sessions that are to be driven and that nobody drives.
pub(crate) const SERVE_DUE_LOOK_MS: u64 = 1_000;
/// How long the removal of a session waits until a server lets go of it that has just answered.
pub(crate) const SERVE_REMOVE_WAIT_MS: u64 = 10_000;
/// How often it looks whether the server has.
pub(crate) const SERVE_REMOVE_LOOK_MS: u64 = 50;
/// How long a server that died may take to come back before another one takes up its sessions.
pub(crate) const SERVE_RETURN_MS: u64 = 4_000;
/// From asking what a session that works has changed until what was kept of it is shown instead,
/// in milliseconds.
pub(crate) const CHANGES_MS_MAX: u64 = 20_000;
/// Directories that were sent to a server and with which no session began yet.
pub(crate) const UPLOADS_MAX: usize = 100;
/// How long they are kept.
pub(crate) const UPLOAD_MS_MAX: u64 = 24 * 3_600 * 1_000;
/// What a file takes in an archive beside its content, at most as a rule.
pub(crate) const ARCHIVE_HEADER_BYTES: u64 = 2_048;
/// What a directory that was sent is known by.
pub(crate) const SOURCE_CHARS_MAX: usize = 1_024;
/// How often a server that is away is asked again, before that is told as an error.
pub(crate) const RECONNECTS_MAX: u32 = 20;
/// Before the first time; it doubles up to 32 times this.
pub(crate) const RECONNECT_MS: u64 = 250;
/// How often it is looked what a subagent of a server's session asks.
pub(crate) const REMOTE_LOOK_MS: u64 = 2_000;
/// How often it is asked how a server's session stands that is to stop.
pub(crate) const REMOTE_POLL_MS: u64 = 250;
/// Until a server that just began takes up what ran on it.
pub(crate) const TAKE_UP_MS_MAX: u64 = 6_000;
/// Sandboxes that a person has on a server at once.
pub(crate) const PERSON_SANDBOXES_MAX: usize = 64;
/// Snapshots that a person has on a server at once.
pub(crate) const PERSON_SNAPSHOTS_MAX: usize = 64;
/// Until a sandbox that is not there was not merely about to be made, in milliseconds.
pub(crate) const SANDBOX_BEGIN_MS_MAX: u64 = 600_000;
/// Commands of a sandbox of which it is known in which life it was begun, the newest.
pub(crate) const EXEC_LIVES_MAX: usize = 4_096;
/// Flows of a person's sandbox that are told, the newest; half of them are kept when their file
/// becomes too large.
pub(crate) const SANDBOX_FLOWS_MAX: usize = 1_000;
/// Bytes of that file.
pub(crate) const SANDBOX_FLOW_BYTES_MAX: u64 = 512 << 10;
/// Spans that wait to be sent to a collector; what comes beyond it is dropped and counted.
pub(crate) const SPANS_QUEUED_MAX: usize = 8_192;
/// What they take together.
pub(crate) const SPAN_BYTES_QUEUED_MAX: usize = 16 << 20;
/// Spans of one request to a collector.
pub(crate) const SPANS_PER_REQUEST_MAX: usize = 512;
/// Of the spans of a request, from where on no other comes along.
pub(crate) const EXPORT_BYTES_MAX: usize = 1 << 20;
/// What is read of a collector's answer.
pub(crate) const EXPORT_ANSWER_BYTES_MAX: usize = 64 << 10;
/// From asking a collector until it is asked again, in milliseconds: what OpenTelemetry has.
pub(crate) const EXPORT_MS_MAX: u64 = 10_000;
/// Before a collector is asked again, the first time; it doubles.
pub(crate) const EXPORT_RETRY_MS: u64 = 500;
/// Up to this, also where the collector wants more.
pub(crate) const EXPORT_RETRY_MS_MAX: u64 = 30_000;
/// For what still waits when the server ends, in milliseconds.
pub(crate) const EXPORT_FLUSH_MS_MAX: u64 = 2_000;
/// What is to be done at a server and was not yet, in a conversation.
pub(crate) const TALK_ORDERS_MAX: usize = 64;
/// What was heard of a server's session and not shown yet.
pub(crate) const TALK_NEWS_MAX: usize = 256;
/// Until one of these is tried anew that a server does not answer.
pub(crate) const ORDER_MS_MAX: u64 = 30_000;
