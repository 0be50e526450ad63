//! Unpacking one layer: a process that may be wrong, and one that watches it.
//!
//! Owns what the first has: a directory as its root, the blob, a pipe, four
//! capabilities and no network. It parses what is hostile, so it must be able to harm
//! nothing but that directory. The second reads no byte of the layer; it marks what the
//! first names, syncs, and gives the layer its name, so that one that is seen is whole.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant};

use outrigger_sandbox::Error;
use rustix::fs::{CWD, Gid, Mode, OFlags, ResolveFlags, Uid, XattrFlags};
use rustix::mount::{
    MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount_change, move_mount,
    open_tree, unmount,
};
use rustix::process::{Resource, Rlimit, Signal, pidfd_send_signal, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use super::LayerRecord;
use super::entries::{self, Owners, Tree};
use super::layer::Layer;
use crate::image::request::{ImageAnswer, UnpackRequest};
use crate::image::stream::{BoundedReader, Decoder, FileSlice};
use crate::image::{HashingReader, ImageDigest, tar};
use crate::limits::{self, SHARED_ID_FIRST};
use crate::spawner::names::random_name;
use crate::spawner::record::{self, Durability};
use crate::spawner::store::{Store, private};
use crate::spawner::sys::{self, Fork};
use crate::spawner::tree::remove;

/// What the unpacking process says at its end.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    skipped: u64,
    opaque: Vec<Vec<u8>>,
}

fn backend(what: &str, error: impl Into<io::Error>) -> Error {
    Error::Backend(format!("cannot {what}: {}", error.into()))
}

/// Unpacks a layer and gives it its name. To be called in a process of its own with
/// one thread, which has the rights of the spawner.
pub(crate) fn unpack(
    store: &Store,
    owners: Owners,
    request: &UnpackRequest,
    blob: &OwnedFd,
) -> Result<ImageAnswer, Error> {
    let name = random_name().map_err(|error| backend("name the layer", error))?;
    let dir = store.incoming().join(&name);
    let done = unpack_in(store, &dir, owners, request, blob);
    // What stays is deleted by the next spawner.
    let _ = delete(store, &name);
    done.map(|left_out| ImageAnswer::Unpacked { left_out })
}

fn delete(store: &Store, name: &str) -> io::Result<()> {
    let incoming = fs::File::open(store.incoming())?;
    remove::remove(incoming.as_fd(), &CString::new(name).map_err(io::Error::other)?)
}

fn unpack_in(
    store: &Store,
    dir: &Path,
    owners: Owners,
    request: &UnpackRequest,
    blob: &OwnedFd,
) -> Result<u64, Error> {
    let tree = dir.join("tree");
    let made = private(dir).and_then(|()| fs::DirBuilder::new().mode(0o755).create(&tree));
    let owned = made.and_then(|()| match owners {
        Owners::Shifted => {
            let (uid, gid) = (Uid::from_raw(SHARED_ID_FIRST), Gid::from_raw(SHARED_ID_FIRST));
            Ok(rustix::fs::chown(&tree, Some(uid), Some(gid))?)
        }
        Owners::Layer | Owners::Caller => Ok(()),
    });
    owned.map_err(|error| backend("make the directory of the layer", error))?;
    let report = apart(&store.staging(), &tree, owners, request, blob)?;
    mark_opaque(&tree, owners, &report.opaque)
        .map_err(|error| backend("mark what a layer hides", error))?;
    publish(store, dir, owners, &request.diff).map_err(|error| backend("keep the layer", error))?;
    Ok(report.skipped)
}

/// Runs the unpacking process and waits for what it says, with a limit.
fn apart(
    staging: &Path,
    tree: &Path,
    owners: Owners,
    request: &UnpackRequest,
    blob: &OwnedFd,
) -> Result<Report, Error> {
    let (reads, writes) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|error| backend("make a pipe", error))?;
    let namespaces = libc::CLONE_NEWNS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWPID;
    // SAFETY: this process has one thread, as `unpack` demands.
    match unsafe { sys::fork(namespaces) }.map_err(|error| backend("start a process", error))? {
        Fork::Child => {
            // A panic must not unwind into what was copied from the spawner.
            let run = || confined(staging, tree, owners, request, blob, &writes);
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            sys::leave(i32::from(!ran.is_ok_and(|sent| sent.is_ok())))
        }
        Fork::Parent { pid, pidfd } => {
            drop(writes);
            let said = hear(reads);
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            sys::wait(pid);
            let said = said.map_err(|error| backend("unpack the layer", error))?;
            postcard::from_bytes::<Result<Report, Error>>(&said).unwrap_or_else(|_| {
                Err(Error::Backend("the process that unpacks the layer ended early".to_owned()))
            })
        }
    }
}

/// Reads the pipe to its end.
fn hear(reads: OwnedFd) -> io::Result<Vec<u8>> {
    let end = Instant::now() + Duration::from_millis(limits::LAYER_MS_MAX);
    let mut said = Vec::new();
    let mut file = fs::File::from(reads);
    let mut buffer = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis();
        if left == 0 {
            return Err(io::Error::other("it takes too long"));
        }
        let mut fds = [sys::pollfd(&file)];
        sys::poll(&mut fds, i32::try_from(left).unwrap_or(i32::MAX))?;
        if fds[0].revents == 0 {
            continue;
        }
        match file.read(&mut buffer)? {
            0 => return Ok(said),
            got if said.len() + got > limits::LAYER_REPORT_BYTES_MAX => {
                return Err(io::Error::other("its report is too long"));
            }
            got => said.extend_from_slice(&buffer[..got]),
        }
    }
}

/// The unpacking process.
fn confined(
    staging: &Path,
    tree: &Path,
    owners: Owners,
    request: &UnpackRequest,
    blob: &OwnedFd,
    writes: &OwnedFd,
) -> io::Result<()> {
    let prepared = sys::settle()
        .and_then(|()| sys::keep_only(&[blob.as_fd(), writes.as_fd()]))
        .and_then(|()| enter(staging, tree))
        .map(|()| match owners {
            // What no entry of the layer is for belongs to its root.
            Owners::Shifted => sys::write_files_as(SHARED_ID_FIRST),
            Owners::Layer | Owners::Caller => {}
        })
        .and_then(|()| give_up());
    let report = match prepared {
        Ok(()) => read(owners, request, blob.as_fd()),
        Err(error) => Err(backend("confine the process that unpacks the layer", error)),
    };
    let report = postcard::to_allocvec(&report).map_err(io::Error::other)?;
    fs::File::from(writes.try_clone()?).write_all(&report)
}

/// Makes the layer's directory the root, and leaves the host's behind.
fn enter(staging: &Path, tree: &Path) -> io::Result<()> {
    const NOSUID: u64 = 2;
    const NODEV: u64 = 4;
    const NOEXEC: u64 = 8;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(CWD, tree, flags)?;
    sys::restrict_mount(mount.as_fd(), NOSUID | NODEV | NOEXEC)?;
    move_mount(&mount, "", CWD, staging, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    drop(mount);
    rustix::process::chdir(staging)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

/// Keeps the rights to write files of any owner, and nothing else. Whiteouts need no
/// right to make devices (Linux 5.8 and later).
fn give_up() -> io::Result<()> {
    let limit =
        |resource, most| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    limit(Resource::As, limits::LAYER_MEMORY_BYTES_MAX)?;
    limit(Resource::Fsize, limits::LAYER_FILE_BYTES_MAX)?;
    limit(Resource::Nofile, 256)?;
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID;
    sys::bound_capabilities(kept)?;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Reads the whole blob and writes what it holds.
fn read(owners: Owners, request: &UnpackRequest, blob: BorrowedFd<'_>) -> Result<Report, Error> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open("/", flags, Mode::empty());
    let root = root.map_err(|error| backend("open the layer's directory", error))?;
    write_layer(root, owners, request, blob).map_err(|error| match error {
        entries::Error::Write { .. } => {
            Error::Backend(format!("the layer was not unpacked: {error}"))
        }
        entries::Error::Refused { .. } | entries::Error::Stream(_) => {
            Error::Invalid(format!("the layer was refused: {error}"))
        }
    })
}

fn write_layer(
    root: OwnedFd,
    owners: Owners,
    request: &UnpackRequest,
    blob: BorrowedFd<'_>,
) -> Result<Report, entries::Error> {
    let wrong = |reason| entries::Error::Refused { path: ".".to_owned(), reason };
    let failed = |error: io::Error| entries::Error::Stream(tar::Error::Read(error));
    if request.length > limits::LAYER_BLOB_BYTES_MAX {
        return Err(wrong("the blob is too large"));
    }
    let source = HashingReader::new(FileSlice::new(blob, request.offset, request.length));
    let decoded = Decoder::new(source).map_err(failed)?;
    let bounded = BoundedReader::new(decoded, request.length, limits::LAYER_BYTES_MAX);
    let mut archive = tar::Reader::new(HashingReader::new(bounded));
    let mut tree = Tree::new(root, owners);
    tree.unpack(&mut archive)?;
    let (bounded, diff) = archive.drain().map_err(failed)?.finish();
    let mut rest = bounded.into_inner().into_source();
    io::copy(&mut rest, &mut io::sink()).map_err(failed)?;
    let source = rest.into_inner();
    let whole = source.count() == request.length;
    let (_, found) = source.finish();
    if request.blob.is_some_and(|blob| blob != found) {
        return Err(wrong("its bytes do not match their digest"));
    }
    if !whole || request.diff != diff {
        return Err(wrong("what is in it does not match its digest"));
    }
    Ok(Report { skipped: tree.skipped, opaque: tree.opaque })
}

/// Marks directories that hide those below them (overlayfs, "whiteouts and opaque
/// directories"). The tree is hostile: its links may only lead to itself.
fn mark_opaque(tree: &Path, owners: Owners, paths: &[Vec<u8>]) -> io::Result<()> {
    let root = fs::File::open(tree)?;
    let name = match owners {
        Owners::Layer => "trusted.overlay.opaque",
        Owners::Shifted | Owners::Caller => "user.overlay.opaque",
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    for path in paths {
        let path = if path.is_empty() { b"." } else { path.as_slice() };
        // What was replaced by something else in the meantime hides nothing.
        if let Ok(dir) = rustix::fs::openat2(&root, path, flags, Mode::empty(), resolve) {
            rustix::fs::fsetxattr(&dir, name, b"y", XattrFlags::empty())?;
        }
    }
    Ok(())
}

/// Gives a layer its name, when all of it is on disk. Another one of that name has the
/// same content.
fn publish(store: &Store, dir: &Path, owners: Owners, diff: &ImageDigest) -> io::Result<()> {
    let first_id = match owners {
        Owners::Layer => Some(0),
        Owners::Shifted | Owners::Caller => None,
    };
    let record = LayerRecord { first_id, fingerprint: None };
    record::write(&dir.join("about"), &record, Durability::Power)?;
    rustix::fs::syncfs(fs::File::open(dir)?)?;
    let named = store.layer(&Layer::of_image(diff)?);
    match fs::rename(dir, &named) {
        Err(_) if named.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => fs::File::open(store.layers())?.sync_all(),
    }
}
