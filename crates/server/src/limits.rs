//! Every limit of the server, with its unit in its name.

/// Of the body of a request.
pub const REQUEST_BYTES_MAX: usize = 2 << 20;
/// Of the body of a message: as many pictures in base64 as a conversation takes
/// (`outrigger_agent::limits::PICTURES_BYTES_MAX`), and what else a request has.
pub const MESSAGE_BYTES_MAX: usize = 21 << 20;
/// Of the name of a picture.
pub const PICTURE_NAME_CHARS_MAX: usize = 255;
/// How often a follower looks for events that another process appended.
pub const FOREIGN_POLL_MS: u64 = 500;
/// How often a stream on which nothing happens says that it is there.
pub const KEEP_ALIVE_MS: u64 = 15_000;
/// How often it is looked whether any session stands otherwise.
pub const LISTING_POLL_MS: u64 = 500;
/// Sessions that are looked at for that, the newest.
pub const LISTING_SESSIONS_MAX: usize = 1_000;
/// Notices that a slow follower may be behind before it reads the journal again.
pub const NOTICES_MAX: usize = 1_024;
/// Of what an effect that is under way put out last, for those who come late.
pub const TAIL_BYTES_MAX: usize = 64 << 10;
/// In so many pieces.
pub const TAIL_PIECES_MAX: usize = 4_096;
/// Sessions of which what a list shows is kept.
pub const LISTED_MAX: usize = 20_000;
/// From its making on, a link logs a browser in.
pub const LINK_MS_MAX: u64 = 15 * 60 * 1_000;
/// From its login on, a browser is let in.
pub const BROWSER_MS_MAX: u64 = 30 * 24 * 3_600 * 1_000;
/// From its making on, a program's key is good where nobody says for how long.
pub const BEARER_MS_DEFAULT: u64 = 90 * 24 * 3_600 * 1_000;
/// Versions that are named where others have a part of what is to be destroyed.
pub const RELATED_NAMED_MAX: usize = 10;
/// Keys of requests that are kept with what was asked for under them.
pub const REQUEST_KEYS_MAX: usize = 10_000;
/// Names with which a session is shared at most.
pub const SHARES_MAX: usize = 50;
/// A stream ends after so long, and whoever follows begins again where it was.
pub const STREAM_MS_MAX: u64 = 3_600_000;
/// How long a program waits for a person who lets it in.
pub const DEVICE_MS_MAX: u64 = 10 * 60 * 1_000;
/// How long it waits between its questions.
pub const DEVICE_POLL_SECONDS: u64 = 2;
/// Programs that wait at once.
pub const DEVICES_MAX: usize = 100;
/// Letters of the code that a program shows: 34 bits, of which somebody who is let in can try some
/// thousands in ten minutes.
pub const DEVICE_CODE_LETTERS: usize = 8;
/// What a key is for.
pub const KEY_LABEL_CHARS_MAX: usize = 100;
/// Bytes of an archive that are read and sent at once.
pub const PIECE_BYTES: usize = 64 << 10;
/// Bytes of a message to a webhook. The whole of it is verified before any is read.
pub const WEBHOOK_BYTES_MAX: usize = 512 << 10;
/// From being asked about until a command counts as running where nobody waits for its end.
pub const EXEC_LOOK_MS: u64 = 50;
/// From a request to write a file until nobody else writes it.
pub const UPLOAD_TURN_MS_MAX: u64 = 10_000;
/// A file, or an archive of files, that is sent into a sandbox.
pub const SANDBOX_UPLOAD_BYTES_MAX: u64 = 4 << 30;
/// Files and links of an archive, either way.
pub const SANDBOX_ARCHIVE_FILES_MAX: usize = 200_000;
/// Longest path in an archive that is sent.
pub const SANDBOX_ARCHIVE_PATH_BYTES_MAX: usize = 4_096;
/// Terminals that are open at once.
pub const TERMINALS_MAX: u32 = 256;
/// What a terminal shows that its browser did not take yet; beyond it what is oldest is dropped.
pub const TERMINAL_QUEUE_BYTES_MAX: usize = 1 << 20;
/// Of what a terminal shows, sent at once.
pub const TERMINAL_FRAME_BYTES_MAX: usize = 64 << 10;
/// How often it is looked whether who follows something, or has a terminal open, still may.
pub const ADMISSION_LOOK_MS: u64 = 10_000;
/// How often it is looked whether who has a terminal open is still there.
pub const TERMINAL_LOOK_MS: u64 = 15_000;
/// Lines and characters of a line that a terminal has at most.
pub const TERMINAL_SIDE_MAX: u16 = 1_000;
/// Of the reason with which a WebSocket is closed (RFC 6455, 5.5).
pub const CLOSE_REASON_BYTES_MAX: usize = 120;
/// From being sent to a provider of logins until a browser has to be back.
pub const SIGN_IN_MS_MAX: u64 = 10 * 60 * 1_000;
/// Of the address of a page that a login leads to: it stands in a cookie.
pub const NEXT_BYTES_MAX: usize = 1_000;
/// How often it is looked what sessions did, for traces and metrics.
pub const TRACES_LOOK_MS: u64 = 500;
/// Sessions that are known for that; beyond it those that wait are forgotten, and read again.
pub const TRACED_SESSIONS_MAX: usize = 20_000;
/// Names of models and tools that make series of metrics; what comes after them is `other`.
pub const METRIC_NAMES_MAX: usize = 200;
/// Of the id of a request that comes with one.
pub const REQUEST_ID_CHARS_MAX: usize = 64;
/// How often a journal is read for a page of what was reached.
pub const EGRESS_READS_MAX: usize = 100;
/// Of the reason for which an account is stopped.
pub const STOP_REASON_CHARS_MAX: usize = 1_000;
/// Sessions that are looked at at once, where an account is stopped.
pub const STOP_PAGE_SESSIONS: usize = 1_000;
