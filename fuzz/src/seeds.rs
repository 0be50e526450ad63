//! Messages of every kind as first inputs of the targets, so that a short run begins
//! beyond the framing.
//!
//! Owns where they are written: the directory that the variable [`DIRECTORY`] names,
//! by the target itself before it reads its inputs. Must never write elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use outrigger_sandbox::wire::{self, FromGuest, GuestReply, GuestRequest, Stream, ToGuest};
use outrigger_sandbox::{
    Command, ContentDigest, End, Error, ExecId, ExecOutcome, Execute, FileError, FileErrorKind,
    FileOp, FileReply, Generation, GrepPattern, Input, Occurrences, Precondition, TerminalSize,
    WriteMode,
};
use serde::Serialize;

fn id() -> ExecId {
    ExecId::new("e").expect("a valid id")
}

fn path() -> String {
    "a/b".to_owned()
}

fn operations() -> Vec<FileOp> {
    let (contents, digest) = (b"text".to_vec(), Precondition::Digest(ContentDigest([7; 32])));
    let pattern = GrepPattern::Regex("a+".to_owned());
    vec![
        FileOp::List { path: path(), entries_max: 9 },
        FileOp::Stat { path: path() },
        FileOp::Read { path: path(), offset: 1, bytes_max: 9 },
        FileOp::ReadLines { path: path(), first: 1, lines_max: 9, bytes_max: 9 },
        FileOp::Write {
            id: id(),
            path: path(),
            contents: contents.clone(),
            mode: WriteMode::Append,
            executable: Some(true),
            precondition: digest,
        },
        FileOp::Edit {
            id: id(),
            path: path(),
            old: contents.clone(),
            new: contents,
            occurrences: Occurrences::All,
            precondition: Precondition::None,
        },
        FileOp::Link { id: id(), path: path(), target: path() },
        FileOp::MakeDir { id: id(), path: path() },
        FileOp::Remove { id: id(), path: path() },
        FileOp::Glob { root: path(), pattern: "**/*.rs".to_owned(), paths_max: 9 },
        FileOp::Grep { root: path(), pattern, glob: Some("*".to_owned()), matches_max: 9 },
        FileOp::Manifest { root: path(), after: Some(path()), entries_max: 9 },
    ]
}

fn asks() -> Vec<GuestRequest> {
    let size = TerminalSize { rows: 24, columns: 80 };
    let mut execute = Execute::new(id(), Command::Argv(vec![b"echo".to_vec(), b"x".to_vec()]));
    execute.env = BTreeMap::from([("NAME".to_owned(), "value".to_owned())]);
    execute.terminal = Some(size);
    let shell = Execute::new(id(), Command::Shell("echo x".to_owned()));
    let mut asks = vec![
        GuestRequest::Execute(execute),
        GuestRequest::Execute(shell),
        GuestRequest::Kill(id()),
    ];
    asks.push(GuestRequest::Input { id: id(), input: Input::Bytes(b"typed".to_vec()) });
    asks.push(GuestRequest::Input { id: id(), input: Input::Size(size) });
    asks.extend([GuestRequest::Freeze, GuestRequest::Thaw, GuestRequest::Forget]);
    asks.extend(operations().into_iter().map(GuestRequest::Files));
    asks
}

fn replies() -> Vec<GuestReply> {
    let executed = ExecOutcome {
        stdout: Vec::new(),
        stderr: Vec::new(),
        stdout_dropped_bytes: 1,
        stderr_dropped_bytes: 2,
        end: End::Signalled(9),
        spill: Some(path()),
        wall_ms: 3,
        cpu_ms: 4,
        peak_memory_bytes: 5,
    };
    let (kind, detail) = (FileErrorKind::Conflict, "why".to_owned());
    let failed = Error::File(FileError { kind, path: path(), detail });
    let bytes = FileReply::Bytes { bytes: b"text".to_vec(), total_bytes: 9 };
    vec![
        GuestReply::Output { stream: Stream::Stdout, bytes: b"text".to_vec() },
        GuestReply::Output { stream: Stream::Stderr, bytes: b"text".to_vec() },
        GuestReply::Executed(Ok(executed)),
        GuestReply::Executed(Err(Error::Busy { reason: "a command runs".to_owned() })),
        GuestReply::Killed(Ok(())),
        GuestReply::Taken(Err(Error::Invalid("no terminal".to_owned()))),
        GuestReply::Frozen(Ok(())),
        GuestReply::Thawed(Ok(())),
        GuestReply::Files(Ok(bytes)),
        GuestReply::Files(Ok(FileReply::Done)),
        GuestReply::Files(Err(failed)),
    ]
}

/// Variable that names the directory of first inputs.
const DIRECTORY: &str = "OUTRIGGER_FUZZ_SEEDS";

/// Writes one file for each message, with what the target expects before it.
fn write<T: Serialize>(before: &[u8], messages: &[T]) {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    for (number, message) in messages.iter().enumerate() {
        let frame = wire::encode(message).expect("a small message fits into a frame");
        let file = Path::new(&directory).join(format!("seed-{number:02}"));
        std::fs::write(file, [before, &frame].concat()).expect("the seeds can be written");
    }
}

/// Writes one file for each input.
fn write_bytes(inputs: &[Vec<u8>]) {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    for (number, input) in inputs.iter().enumerate() {
        let file = Path::new(&directory).join(format!("seed-{number:02}"));
        std::fs::write(file, input).expect("the seeds can be written");
    }
}

/// For the target that unpacks layers: an archive with an entry of each kind, and with
/// long names, each once as it is and once with checksums that are mended.
pub fn layers() {
    use tar::{Builder, EntryType, Header};
    let entry = |kind: EntryType, size: usize| {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(size as u64);
        header
    };
    let fits = "a small archive fits into memory";
    let mut plain = Builder::new(Vec::new());
    let names = [("d/", EntryType::Directory), ("d/f", EntryType::Regular), ("p", EntryType::Fifo)];
    for (name, kind) in names {
        let data: &[u8] = if kind == EntryType::Regular { b"text" } else { b"" };
        plain.append_data(&mut entry(kind, data.len()), name, data).expect(fits);
    }
    for (name, kind, target) in [
        ("d/s", EntryType::Symlink, "/d"),
        ("out", EntryType::Symlink, "../.."),
        ("out/h", EntryType::Link, "d/f"),
    ] {
        plain.append_link(&mut entry(kind, 0), name, target).expect(fits);
    }
    for name in ["d/.wh.f", "d/.wh..wh..opq"] {
        plain.append_data(&mut entry(EntryType::Regular, 0), name, &b""[..]).expect(fits);
    }
    let mut long = Builder::new(Vec::new());
    let name = format!("{}/x", "n".repeat(200));
    long.append_data(&mut entry(EntryType::Regular, 1), &name, &b"x"[..]).expect(fits);
    let record = b"20 path=d/../../x12\n30 mtime=1.5 SCHILY.xattr.u=v\n";
    long.append_data(&mut entry(EntryType::XHeader, record.len()), "p", &record[..]).expect(fits);
    long.append_data(&mut entry(EntryType::Regular, 0), "short", &b""[..]).expect(fits);
    let archives = [plain, long].map(|archive| archive.into_inner().expect(fits));
    let modes =
        archives.iter().flat_map(|archive| [0, 1].map(|mode| [&[mode], &archive[..]].concat()));
    write_bytes(&modes.collect::<Vec<_>>());
}

/// For the target that reads the documents of images.
pub fn documents() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let part = format!(
        r#"{{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"{digest}","size":9}}"#
    );
    let manifest = format!(r#"{{"schemaVersion":2,"config":{part},"layers":[{part}]}}"#);
    let platform = r#""platform":{"architecture":"amd64","os":"linux"}"#;
    let index = format!(r#"{{"manifests":[{{"digest":"{digest}","size":9,{platform}}},{part}]}}"#);
    let config = format!(
        r#"{{"architecture":"amd64","os":"linux","rootfs":{{"diff_ids":["{digest}"]}},"config":{{"Env":["A=b"],"WorkingDir":"/w"}}}}"#
    );
    let with = |document: &str| [document.as_bytes(), b"\0", config.as_bytes()].concat();
    write_bytes(&[with(&manifest), with(&index)]);
}

/// A part of an input, as the targets take them apart.
fn record(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a seed is small").to_be_bytes();
    [&[number], &length[..], bytes].concat()
}

/// For the target that packs a directory: an index of each version, rules, and files of git's.
pub fn repositories() {
    let entry = |path: &[u8], mode: u32, version: u8| {
        let mut entry = vec![0; 60];
        entry[24..28].copy_from_slice(&mode.to_be_bytes());
        entry.extend(u16::try_from(path.len()).expect("it is short").to_be_bytes());
        if version == 4 {
            entry.push(0);
        }
        entry.extend(path);
        let zeros = if version == 4 { 1 } else { 8 - entry.len() % 8 };
        entry.extend(vec![0; zeros]);
        entry
    };
    let index = |version: u8, entries: &[Vec<u8>]| {
        let count = u8::try_from(entries.len()).expect("they are few");
        let head = [b"DIRC\0\0\0", &[version, 0, 0, 0, count][..]].concat();
        [head, entries.concat(), b"TREE\0\0\0\0".to_vec(), vec![0; 20]].concat()
    };
    let of = |version| {
        let entries = [
            entry(b"a", 0o100_644, version),
            entry(b"b/c", 0o100_755, version),
            entry(b"l/id", 0o100_644, version),
            entry(b"sub", 0o160_000, version),
        ];
        record(0, &index(version, &entries[..if version == 4 { 1 } else { 4 }]))
    };
    let rules = [record(2, b"/b/**\n!b/c\n[a-d]\\ \n"), record(3, b"!d.log\n")].concat();
    let with = |mode: u8, parts: &[Vec<u8>]| [&[mode], &parts.concat()[..]].concat();
    write_bytes(&[
        with(0, &[of(2)]),
        with(0, &[of(3), rules.clone()]),
        with(0, &[of(4), record(1, b"*.log\n")]),
        with(0, &[record(6, b"[core]\nfsmonitor = x\n"), record(7, b"* filter=x\n")]),
        with(0, &[record(5, b"../../kept\n"), record(8, b"gitdir: x\n")]),
        with(1, &[record(4, b"gitdir: ../kept\n"), rules]),
        with(1, &[record(0x84, b"../kept")]),
        with(0, &[record(0x82, b"../beside/id"), record(0x80, b"/dev/zero")]),
    ]);
}

/// For the target that writes changes back: files, links, removals and shapes of repositories.
pub fn changes() {
    let one = |kind: u8, path: &str, contents: &str| {
        let length = u8::try_from(path.len()).expect("it is short") << 3;
        record(length | kind, [path, contents].concat().as_bytes())
    };
    let all = |accept: u8, changes: &[Vec<u8>]| [&[accept], &changes.concat()[..]].concat();
    write_bytes(&[
        all(0, &[one(4, "new/file", "x"), one(4, "file", "y"), one(0, "sub/file", "")]),
        all(1, &[one(4, "v/HEAD", "x"), one(4, "v/objects/x", ""), one(4, "v/refs/x", "")]),
        all(1, &[one(4, "half/HEAD", "x"), one(4, "half/commondir", "..")]),
        all(1, &[one(2, "l", "../beside"), one(2, "sub/m", "../file"), one(2, "n", ".git/x")]),
        all(0, &[one(4, ".envrc", "x"), one(7, "run.sh", "x")]),
        all(1, &[one(4, "under/id", "x"), one(4, "../beside/id", "x"), one(4, "a/.GIT/x", "x")]),
        all(1, &[one(0, "file", ""), one(4, "file/below", "x")]),
    ]);
}

/// For the target that reads what an earlier life handed over.
pub fn kept() {
    write_bytes(&[outrigger_guest::fuzz::seed()]);
}

/// For a target that reads what a host says, in pieces.
pub fn to_guest() {
    let all: Vec<_> = asks().into_iter().map(|ask| ToGuest { request: 1, ask }).collect();
    write(&[64], &all);
}

/// For a target that reads what a guest says; `before` stands before each.
pub fn from_guest(before: &[u8]) {
    let reply = |reply| FromGuest::Reply { request: 1, reply };
    let mut all: Vec<_> = replies().into_iter().map(reply).collect();
    let generation = Generation::new("g").expect("a valid name");
    all.push(FromGuest::Hello { version: wire::VERSION, generation });
    write(before, &all);
}
