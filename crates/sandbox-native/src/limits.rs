//! Every limit of the native backend, with its unit in its name.

/// From the last sandbox and connection until a spawner ends itself.
pub const SPAWNER_IDLE_MS: u64 = 60_000;
/// From one look of a spawner at whether its state directory is still there to the next.
pub const SPAWNER_TICK_MS: u64 = 5_000;
/// From the start of a spawner until it takes connections.
pub const SPAWNER_START_MS_MAX: u64 = 10_000;
/// Times that a request is made again because a spawner took longer than that.
pub const SPAWNER_SLOW_ATTEMPTS_MAX: u32 = 2;
/// Times that the program of guests is sealed again because the kernel held its pages.
pub const SEAL_ATTEMPTS_MAX: u32 = 20;
/// From a request to the spawner until its answer; deleting a large disk takes longest.
pub const SPAWNER_ANSWER_MS_MAX: u64 = 120_000;
/// How long the spawner waits for a peer that sends half a request or does not take its answer.
pub const SPAWNER_PEER_MS_MAX: u64 = 1_000;
/// One request to the spawner or its answer.
pub const SPAWNER_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Times that a request is made again because the spawner ended in between.
pub const SPAWNER_ATTEMPTS_MAX: u32 = 5;
/// Times that a request is made again because a spawner holds the state directory but
/// does not serve: it is about to, or on its way out.
pub const SPAWNER_BUSY_ATTEMPTS_MAX: u32 = 200;
/// Between two requests to a spawner that is busy.
pub const SPAWNER_BUSY_PAUSE_MS: u64 = 50;
/// From the decision to start a guest, the making of its root included, until it serves.
pub const GUEST_START_MS_MAX: u64 = 30_000;
/// Core of the spawner and of all that it makes. Not 0: by exactly 1 the kernel also knows not
/// to start the program that the host may have cores handed to (`do_coredump`, fs/coredump.c).
pub const CORE_BYTES_MAX: u64 = 1;
/// Processes that wait to become a sandbox, whichever is asked for next.
pub const PREFORK_POOL_MAX: usize = 4;
/// Without one being taken for this long, the next one is made.
pub const PREFORK_POOL_REST_MS: i32 = 3;
/// What a worker says of one preforked guest, or of why there is none.
pub const PREFORK_REPLY_BYTES_MAX: usize = 512;
/// Mount namespaces that were left and not ended yet.
pub const MOUNTS_LEFT_MAX: usize = 64;
/// Without anything to do for this long, the spawner does what it put off; and after this
/// long a life goes on that was ended for a snapshot, whatever there is to do.
pub const PUT_OFF_MS: u64 = 5;
/// Descriptors with one message inside of the spawner, or to a guest: of two things, and of
/// each tree that is served. Those of a guest's listeners are more.
pub const FDS_MAX: usize =
    1 + outrigger_sandbox::capture::PORTS.len() + outrigger_sandbox::limits::CAPTURED_PORTS_MAX;
/// Folders for trees that a root has although its own sandbox asked for none of them.
pub const SERVED_FOLDERS_MAX: usize = 64;
/// Times that a guest which dies under a new connection is asked for again.
pub const ATTACH_ATTEMPTS_MAX: u32 = 50;
/// Between two attempts to attach to a guest.
pub const ATTACH_PAUSE_MS: u64 = 20;
/// Living sandboxes of one spawner.
pub const SANDBOXES_MAX: usize = 4_000;
/// Processes that a guest may have beside those of its commands.
pub const GUEST_PROCESSES: u32 = 16;
/// Memory that a guest may have beside the limit of its commands, in bytes.
pub const GUEST_MEMORY_BYTES: u64 = 16 << 20;
/// Memory that a guest that serves trees may have for what it holds of their files, in bytes.
pub const GUEST_SERVED_BYTES: u64 = 64 << 20;
/// The skeleton of a sandbox's root: directories, links and a few small files.
pub const ROOT_BYTES_MAX: u64 = 4 << 20;
/// Files of `/etc` up to this size are copied to the skeleton, larger ones bound.
pub const SKELETON_FILE_BYTES_MAX: u64 = 256 << 10;
/// From one look at whether the host's files are still those of the skeleton to the next.
pub const SKELETON_LOOK_MS: u64 = 1_000;
/// Maps from one range of ids to another that a spawner keeps.
pub const ID_MAPS_MAX: usize = 64;
/// Shared memory of a sandbox (`/dev/shm`), also charged to its memory. It has half of
/// its memory where that is less.
pub const SHM_BYTES_MAX: u64 = 1 << 30;

/// Terminals of a sandbox, of which the host has some thousands for all (`kernel.pty.max`).
pub(crate) const TERMINALS_MAX: u32 = 128;
/// First user id of the ranges that root gives to sandboxes. Above those that
/// systemd gives to containers (see "Users, Groups, UIDs and GIDs on systemd Systems").
pub const ID_FIRST: u32 = 1_879_048_192;
/// Ids of one sandbox.
pub const IDS_PER_SANDBOX: u32 = 65_536;
/// Ranges between [`ID_FIRST`] and the next ids that systemd uses.
pub const ID_RANGES: u32 = 4_094;
/// Subordinate ids that an ordinary user's sandboxes have, all of them the same: those
/// of the usual range but the last, because the spawner's own comes before them.
pub const SHARED_IDS: u32 = 65_535;
/// The first of them, as the spawner sees it.
pub const SHARED_ID_FIRST: u32 = 1;
/// Times that a cgroup is tried to be removed while its last processes fade.
pub const CGROUP_REMOVE_ATTEMPTS_MAX: u32 = 100;
/// Between two attempts to remove a cgroup.
pub const CGROUP_REMOVE_PAUSE_MS: u64 = 1;
/// Groups below one that are looked at while it is removed or let go on. In version 1 a
/// guest that turned against us can make any number; those beyond stay until a spawner
/// starts.
pub const CGROUPS_WALKED_MAX: usize = 50_000;
/// From one time that a guest is told to end to the next.
pub const KILL_AGAIN_MS: u64 = 50;
/// From the first time that a guest is told to end until the spawner waits no longer.
pub const KILL_MS_MAX: u64 = 10_000;
/// How long the spawner waits for the end of a guest where it can do nothing else meanwhile.
pub const REAP_MS_MAX: u64 = 10_000;
/// Names that are tried for the directories that are moved up while a tree is removed.
pub const REMOVE_NAMES_MAX: u64 = 1 << 24;
/// Directories open at once while a tree is removed; deeper ones are first moved up.
pub const REMOVE_DEPTH_MAX: usize = 64;

/// From a request to a guest until it tells the spawner that there was one, at the latest.
pub const ACTIVITY_LATE_MS: u64 = 1_000;
/// From the decision that a guest is to hand over until its answer; after it the
/// guest is killed and its commands are forgotten.
pub const HANDOVER_MS_MAX: u64 = 30_000;
/// For how long a template of a project is kept that nobody saves again, in milliseconds.
pub const PROJECT_MS_MAX: u64 = 14 * 24 * 3_600_000;
/// One record of the state directory: what a sandbox, layer or snapshot is.
pub const RECORD_BYTES_MAX: u64 = 1 << 20;
/// Entries of a tree whose fingerprint the spawner takes itself; larger trees are for
/// a process of their own.
pub const INLINE_ENTRIES_MAX: u64 = 256;
/// Bytes of a file whose digest the spawner takes itself.
pub const INLINE_BYTES_MAX: u64 = 256 << 10;
/// Bytes of a tree that the spawner deletes itself.
pub const INLINE_DELETE_BYTES_MAX: u64 = 16 << 20;
/// Directories open at once while a tree is walked.
pub const WALK_DIRS_MAX: usize = 64;
/// What a task may tell the spawner.
pub const TASK_RESULT_BYTES_MAX: usize = 4 << 10;
/// Layers of a stack at which it is made one.
pub const LAYERS_FLATTEN: usize = 32;
/// Layers that a stack may have where it could not be made one.
pub const LAYERS_MAX: usize = 64;
/// Requests that wait until a sandbox can be asked again.
pub const QUEUED_MAX: usize = 256;
/// From one look at how full the file system is to the next, while a sandbox lives.
pub const DISK_USAGE_TICK_MS: u64 = 250;
/// From one look at all disks to the next where nothing seems to have been written.
pub const DISK_USAGE_MS_MAX: u64 = 30_000;
/// Free space that must be gone before disks are looked at, in bytes. Less where a
/// sandbox has a small limit.
pub const DISK_USAGE_BYTES: u64 = 32 << 20;
/// Free inodes that must be gone before disks are looked at.
pub const DISK_USAGE_INODES: u64 = 4_096;
/// Looks that find a sandbox above its limit and growing before it is killed.
pub const DISK_USAGE_STRIKES_MAX: u32 = 4;
/// Growth between two looks that counts, in bytes.
pub const DISK_USAGE_GROWTH_BYTES: u64 = 1 << 20;
/// Growth between two looks that counts, in inodes.
pub const DISK_USAGE_GROWTH_INODES: u64 = 64;
/// Names and descriptors of one sandbox that a look at all sandboxes goes through. One
/// with more is looked at alone.
pub const DISK_USAGE_TURN_ENTRIES: u64 = 4_096;
/// Time that such a look has for one sandbox.
pub const DISK_USAGE_TURN_MS: u64 = 50;
/// Sandboxes that are looked at alone at once; others wait for that.
pub const DISK_USAGE_ALONE_MAX: usize = 4;
/// Names that a sandbox may have for each file that its limit allows: files can have
/// many, and each takes time to look at. With more it counts as above its limit.
pub const DISK_USAGE_NAMES_PER_INODE: u64 = 4;
/// Time that the look at one sandbox alone has. With a tree that takes longer it counts
/// as above its limit.
pub const DISK_USAGE_LOOK_MS_MAX: u64 = 120_000;
/// Sandboxes above their limit, or to be looked at alone, that one look tells of.
pub const DISK_USAGE_FOUND_MAX: usize = 128;
/// Files with several names whose second name is made again when layers are made one;
/// those beyond it become files of their own.
pub const FLATTEN_LINKS_MAX: usize = 100_000;

/// Layers of one image.
pub const IMAGE_LAYERS_MAX: usize = 127;
/// Entries of one layer.
pub const LAYER_ENTRIES_MAX: u64 = 2_000_000;
/// What comes out of one layer, in bytes.
pub const LAYER_BYTES_MAX: u64 = 32 << 30;
/// One file of a layer.
pub const LAYER_FILE_BYTES_MAX: u64 = 16 << 30;
/// One compressed layer.
pub const LAYER_BLOB_BYTES_MAX: u64 = 16 << 30;
/// Bytes that may come out of one byte of a compressed layer.
pub const LAYER_RATIO_MAX: u64 = 200;
/// Bytes that may come out of a layer however short it is.
pub const LAYER_RATIO_FREE_BYTES: u64 = 64 << 20;
/// Directories that one path of a layer goes through.
pub const LAYER_DEPTH_MAX: usize = 128;
/// One path of a layer, or the target of a link, as the kernel has it (`PATH_MAX` without the NUL).
pub const LAYER_PATH_BYTES_MAX: usize = 4_095;
/// One name in a path of a layer, as file systems have it.
pub const LAYER_NAME_BYTES_MAX: usize = 255;
/// One extension header of a layer: longer names and extended attributes.
pub const LAYER_EXTENSION_BYTES_MAX: u64 = 1 << 20;
/// Names that are kept while a layer is unpacked: of directories, for their times.
pub const LAYER_KEPT_BYTES_MAX: usize = 64 << 20;
/// Names of a layer's directories that hide those below.
pub const LAYER_OPAQUE_BYTES_MAX: usize = 4 << 20;
/// What the decoder of a layer may look back on.
pub const LAYER_WINDOW_BYTES_MAX: u64 = 128 << 20;
/// Read and written at once.
pub const LAYER_BUFFER_BYTES: usize = 256 << 10;
/// Address space of the process that unpacks a layer.
pub const LAYER_MEMORY_BYTES_MAX: u64 = 1 << 30;
/// From the start of unpacking one layer until its end.
pub const LAYER_MS_MAX: u64 = 900_000;
/// Processes that unpack or delete layers at once.
pub const LAYER_JOBS_MAX: usize = 16;
/// What such a process reports.
pub const LAYER_REPORT_BYTES_MAX: usize = 8 << 20;
/// Times that a path is looked up again because something was renamed on the host meanwhile.
pub const LAYER_LOOKUPS_MAX: u32 = 1_000;
/// What a fuzzed layer may become when it is unpacked.
#[cfg(fuzzing)]
pub const FUZZED_BYTES_MAX: u64 = 1 << 20;

/// An archive with an image, without its compression.
pub const ARCHIVE_BYTES_MAX: u64 = 64 << 30;
/// Parts of an archive that may belong to an image.
pub const ARCHIVE_PARTS_MAX: usize = 10_000;
/// Links from one part of an archive to the next, and indexes that name others.
pub const ARCHIVE_LINKS_MAX: usize = 4;
/// A manifest, an index or a configuration.
pub const IMAGE_DOCUMENT_BYTES_MAX: u64 = 4 << 20;
/// Times that layers are unpacked again because they were deleted meanwhile.
pub const IMAGE_ATTEMPTS_MAX: u32 = 3;
/// From one piece of a registry's answer to the next.
pub const REGISTRY_READ_MS_MAX: u64 = 60_000;
/// From the request for a manifest until it is there, and for anything else until its answer
/// begins.
pub const REGISTRY_MANIFEST_MS_MAX: u64 = 120_000;
/// Redirects on the way to one answer.
pub const REGISTRY_REDIRECTS_MAX: u32 = 5;
/// What a registry gives as its token, with all that it says beside.
pub const REGISTRY_TOKEN_BYTES_MAX: u64 = 64 << 10;
/// Times that a blob is asked for before a lost connection is an error.
pub const REGISTRY_ATTEMPTS_MAX: u32 = 5;
/// Between two requests for a blob.
pub const REGISTRY_PAUSE_MS: u64 = 500;
/// Messages that are read of a guest in one turn of the spawner.
pub const GUEST_MESSAGES_MAX: usize = 16;
/// Events that the spawner takes at once.
pub const EVENTS_MAX: usize = 64;
/// Groups that a guest makes in its own: of running commands, of what they left, and spare ones.
pub const GROUPS_MAX: u32 = 1_024;
/// How much all sandboxes together weigh where processors are short, in hundredths of a
/// process of the host's.
pub const SANDBOXES_WEIGHT_PERCENT: u64 = 800;
