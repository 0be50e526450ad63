//! Every limit of the guest, with its unit in its name. Those of the door itself
//! are in [`outrigger_sandbox::limits`].

/// Connections at once; a further one is closed.
pub(crate) const CONNECTIONS_MAX: usize = 32;
/// Answers that wait for a slow host, per connection, before its requests are no longer read.
pub(crate) const OUTBOX_BYTES_MAX: usize = 8 << 20;
/// Bytes read from a pipe or a connection at once, and the size of an output frame.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
/// Pieces read from one pipe before the others have their turn.
pub(crate) const PIECES_PER_TURN_MAX: usize = 16;
/// From one look at a tree that is being killed to the next.
pub(crate) const KILL_POLL_MS: u64 = 2;
/// Pipes of ended commands whose background children still write to them.
pub(crate) const DRAINS_MAX: usize = 256;
/// Ids that are known but whose outcome is forgotten. Beyond it the oldest id could run again.
pub(crate) const FORGOTTEN_IDS_MAX: usize = 1 << 20;
/// Files with the full output of commands, all together; the oldest are removed first.
pub(crate) const SPILL_TOTAL_BYTES_MAX: u64 = 1 << 30;
/// Files with the full output of commands, by their number.
pub(crate) const SPILLS_MAX: usize = 16_384;
/// Name of a program in the reason why it does not run.
pub(crate) const PROGRAM_BYTES_MAX: usize = 1_024;
/// Threads that perform file operations.
pub(crate) const FILE_THREADS_MAX: usize = 4;
/// A read that is done without a thread, where everything is in memory.
pub(crate) const QUICK_BYTES_MAX: usize = 64 << 10;
/// File operations that wait for a thread.
pub(crate) const FILE_QUEUE_MAX: usize = 1_024;
/// Stack of such a thread.
pub(crate) const FILE_STACK_BYTES: usize = 512 << 10;
/// Of what the kernel lets a user have, one part in so many is a sandbox's, where others
/// have the same user.
pub(crate) const PARTS_OF_USER: u64 = 4;
/// First of the ids that stand for who made a user namespace, each for as long as the process
/// of that number lives. No file belongs to any, and nobody may become one: from here on ids
/// are negative to who takes them for signed (see "Users, Groups, UIDs and GIDs on systemd
/// Systems").
pub(crate) const OWNER_ID_FIRST: u32 = 1 << 31;
/// Core of the guest and of a command. Not 0: by exactly 1 the kernel also knows not to start
/// the program that the host may have cores handed to, as root (`do_coredump`, fs/coredump.c).
pub(crate) const CORE_BYTES_MAX: u64 = 1;
/// Open files of a command.
pub(crate) const OPEN_FILES_MAX: u64 = 16_384;
/// Largest file that a command can make (`RLIMIT_FSIZE`), where nothing else is said.
pub(crate) const FILE_BYTES_MAX: u64 = 16 << 30;
/// Time that the first file of a manifest's page has at least, so that every page moves on.
pub(crate) const FIRST_DIGEST_MS: u64 = 5_000;
/// File bytes that `read_lines` scans to count lines.
pub(crate) const SCAN_BYTES_MAX: u64 = 256 << 20;
/// Bytes at the start of a file that `grep` searches.
pub(crate) const GREP_FILE_BYTES_MAX: u64 = 32 << 20;
/// Symbolic links that one path may lead through, as in path_resolution(7).
pub(crate) const LINKS_MAX: u32 = 40;
/// Names that are tried for a temporary file.
pub(crate) const TEMPORARY_NAMES_MAX: u32 = 16;
/// Names that are tried for the directories that are moved up while a tree is removed.
pub(crate) const REMOVE_NAMES_MAX: u64 = 1 << 24;
/// Directories open at once while a tree is removed; deeper ones are first moved up.
pub(crate) const REMOVE_DEPTH_MAX: usize = 64;
/// From one word to the spawner that something was asked for to the next. It counts a
/// sandbox as idle only this much later.
pub(crate) const ACTIVITY_MS_MIN: u64 = 1_000;
/// How long nothing is written by file operations after the spawner said that the disk is full.
/// It looks four times in that time, and says so again where it grew.
pub(crate) const DISK_FULL_MS: u64 = 1_000;
/// Kept output, or names that are forgotten, in one record of it.
pub(crate) const KEPT_PIECE_BYTES: usize = 256 << 10;
/// From one look at processes that are being stopped to the next.
pub(crate) const FREEZE_POLL_MS: u64 = 1;
/// Time that they have to stop before they are let go on for a moment; twice as much
/// each time after that.
pub(crate) const NUDGE_MS_MIN: u64 = 4;
/// What stopping them may take. One that the kernel can't stop (it waits for a disk)
/// must not hold the caller.
pub(crate) const FREEZE_MS_MAX: u64 = 10_000;
/// Stack of the thread that opens a terminal.
pub(crate) const TERMINAL_STACK_BYTES: usize = 64 << 10;
/// Input that waits for one command to read, beside what it was started with.
pub(crate) const INPUT_WAITING_BYTES_MAX: usize = 1 << 20;
/// Pieces of such input.
pub(crate) const INPUTS_WAITING_MAX: usize = 256;
/// Stack of the second thread of a bridge.
pub(crate) const BRIDGE_STACK_BYTES: usize = 64 << 10;
/// How long a bridge tries to reach a guest that does not listen yet.
pub(crate) const BRIDGE_CONNECT_MS_MAX: u64 = 10_000;
/// From one try to the next.
pub(crate) const BRIDGE_POLL_MS: u64 = 5;
/// Stack of a new process until it executes.
pub(crate) const CHILD_STACK_BYTES: usize = 64 << 10;
/// Empty groups that are kept for the next commands.
pub(crate) const STOCK_MAX: usize = 4;

/// The rest of a command line that comes over the spawner's socket.
pub(crate) const REST_BYTES_MAX: usize = 32 << 10;
/// Descriptors that come with it: of outputs, of what is kept, and of each served tree. Those
/// that a clone begins with are fewer.
pub(crate) const REST_FDS_MAX: usize = 2 + outrigger_sandbox::limits::SERVED_MAX;
/// Descriptors that go out with one answer: of the listeners.
pub(crate) const PASSED_FDS_MAX: usize =
    1 + outrigger_sandbox::capture::PORTS.len() + outrigger_sandbox::limits::CAPTURED_PORTS_MAX;
/// Connections that wait to be accepted on one listener: as many as the standard library asks for.
pub(crate) const LISTENER_BACKLOG: i32 = 128;
/// Bytes of a question for a name: what UDP carries of it without extensions (RFC 1035, 4.2.1).
pub(crate) const NAME_QUESTION_BYTES_MAX: usize = 512;
/// Bytes of a name and of a part of it (RFC 1035, 2.3.4).
pub(crate) const NAME_BYTES_MAX: usize = 255;
pub(crate) const LABEL_BYTES_MAX: usize = 63;
/// For how long programs may remember where a name led, in seconds.
pub(crate) const NAME_TTL_S: u32 = 60;
/// Entries at the top of an image's root in which commands may write; a further one is
/// read alone.
pub(crate) const ROOT_ENTRIES_MAX: usize = 1_024;

/// Numbers that the kernel is given for files and folders of a served tree. Beyond it no
/// more are looked up until the kernel forgot some.
pub(crate) const NODES_MAX: usize = 1 << 18;
/// Largest write to a served file that the kernel is told to send at once.
pub(crate) const WRITE_BYTES_MAX: u32 = 128 << 10;
/// What one read of its device may give: a write with what stands before it.
pub(crate) const REQUEST_BYTES_MAX: usize = WRITE_BYTES_MAX as usize + 4_096;
/// Oldest revision of the kernel's protocol for file systems that is spoken: Linux 5.4.
pub(crate) const PROTOCOL_MINOR_MIN: u32 = 31;
/// Requests that are taken from the kernel before others have their turn.
pub(crate) const REQUESTS_PER_TURN_MAX: usize = 32;
/// For how long what was heard of a file is taken for what it is, if nothing at all came
/// from outside since: for a process that looks at what it has just opened.
pub(crate) const FRESH_MS_MAX: u64 = 10;
/// For how long the kernel may use attributes without asking, if nothing comes from outside,
/// in nanoseconds; it counts in its own ticks, of which this is one begun.
pub(crate) const LENT_NS: u32 = 1_000_000;
/// It may do so once it was told the same for this long: whoever was told else has that by now.
pub(crate) const LENT_AFTER_MS: u64 = 100;
/// Nodes of a mount whose attributes it may use so.
pub(crate) const LENT_MAX: usize = 64;
/// Contents of served files that are kept for who opens them again, for each tree.
pub(crate) const CONTENTS_BYTES_MAX: usize = 4 << 20;
/// Contents of served files that are kept, with those that are open, for each tree.
pub(crate) const CONTENTS_OPEN_BYTES_MAX: usize = 16 << 20;
/// What one of them counts beside its bytes.
pub(crate) const CONTENTS_OVERHEAD_BYTES: usize = 128;
/// Working copies of served files that are open to be written, all together.
pub(crate) const COPIES_BYTES_MAX: usize = 16 << 20;
/// Revisions of a served file that are remembered as known to the sandbox.
pub(crate) const OPENED_MAX: usize = 8;
/// Notes of which process read which revision of a served file, for each tree.
pub(crate) const READS_MAX: usize = 4_096;
/// Times that what was added to a served file is added again, because others wrote it.
pub(crate) const REBASES_MAX: u32 = 200;
/// Times that something else is tried again because others were faster.
pub(crate) const RETRIES_MAX: u32 = 4;
/// From a signal to a process that waits for a host until it is let go, and from the
/// beginning of a kill until all are that wait for as long.
pub(crate) const INTERRUPTED_MS_MAX: u64 = 500;
/// One part of a listing of a served folder.
pub(crate) const LISTING_BYTES_MAX: usize = 128 << 10;
/// From the end of a command until it is told although what it wrote to served files is
/// not outside yet.
pub(crate) const RELEASING_MS_MAX: u64 = 1_000;
/// From one look at that to the next.
pub(crate) const RELEASING_POLL_MS: u64 = 2;
