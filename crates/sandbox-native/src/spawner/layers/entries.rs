//! Writing the entries of a layer into an empty directory.
//!
//! Owns where an entry goes and what is left out of it. Every path is looked up below
//! the directory by the kernel (openat2(2) with `RESOLVE_IN_ROOT`), so a layer's own
//! links work and none leads out; nothing is written through what is there already.
//!
//! Left out: device nodes and FIFOs (the sandbox has its own /dev), set-id bits of
//! files, extended attributes. Refused: paths that are absolute or climb, hard links to
//! what the layer does not hold, owners above 65535, whatever is above a limit.
//! Whiteouts (OCI image spec, "Whiteouts") become those of overlayfs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RawMode, ResolveFlags, Timespec, Timestamps, Uid,
};
use rustix::io::Errno;

use crate::image::tar::{self, Entry, Kind};
use crate::limits;
use crate::spawner::tree::remove;

/// Why a layer is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The layer's fault.
    #[error("`{path}`: {reason}")]
    Refused { path: String, reason: &'static str },
    /// The layer's fault: the stream can't be read.
    #[error(transparent)]
    Stream(#[from] tar::Error),
    /// The host's fault.
    #[error("cannot write `{path}`: {source}")]
    Write { path: String, source: io::Error },
}

/// Who owns what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owners {
    /// Those of the layer, as they are.
    Layer,
    /// Those of the layer, as the subordinate ids that stand for them.
    Shifted,
    /// This process, which can be no other.
    Caller,
}

/// The directory.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Rc<OwnedFd>,
    owners: Owners,
    /// The directory of the last entry.
    last: Option<(Vec<u8>, Rc<OwnedFd>)>,
    /// Directories whose times are set when nothing changes in them any more.
    times: Vec<(Vec<u8>, (i64, i64))>,
    /// Bytes of their names.
    kept: usize,
    /// Directories that hide those below.
    pub(crate) opaque: Vec<Vec<u8>>,
    hiding: usize,
    entries: u64,
    /// Device nodes and FIFOs that were left out.
    pub(crate) skipped: u64,
    buffer: Vec<u8>,
}

type Parts<'a> = Vec<&'a [u8]>;

const NOFOLLOW: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

fn refused<T>(path: &[u8], reason: &'static str) -> Result<T, Error> {
    Err(Error::Refused { path: String::from_utf8_lossy(path).into_owned(), reason })
}

fn write<T, E: Into<io::Error>>(path: &[u8], result: Result<T, E>) -> Result<T, Error> {
    let path = || String::from_utf8_lossy(path).into_owned();
    result.map_err(|error| Error::Write { path: path(), source: error.into() })
}

/// The names in a path, if it is one that stays below.
fn parts<'a>(path: &'a [u8], of: &[u8]) -> Result<Parts<'a>, Error> {
    if path.len() > limits::LAYER_PATH_BYTES_MAX {
        return refused(&of[..of.len().min(80)], "the path is too long");
    }
    if path.starts_with(b"/") {
        return refused(of, "the path is absolute");
    }
    let parts: Parts<'_> =
        path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&&b".."[..]) {
        return refused(of, "the path climbs");
    }
    if parts.iter().any(|part| part.len() > limits::LAYER_NAME_BYTES_MAX) {
        return refused(of, "a name is too long");
    }
    if parts.len() > limits::LAYER_DEPTH_MAX {
        return refused(of, "the path is too deep");
    }
    Ok(parts)
}

impl Tree {
    pub(crate) fn new(root: OwnedFd, owners: Owners) -> Self {
        Self {
            root: Rc::new(root),
            owners,
            last: None,
            times: Vec::new(),
            kept: 0,
            opaque: Vec::new(),
            hiding: 0,
            entries: 0,
            skipped: 0,
            buffer: vec![0; limits::LAYER_BUFFER_BYTES],
        }
    }

    /// Writes every entry of an archive.
    pub(crate) fn unpack<R: Read>(&mut self, archive: &mut tar::Reader<R>) -> Result<(), Error> {
        while let Some(entry) = archive.next()? {
            self.entries += 1;
            if self.entries > limits::LAYER_ENTRIES_MAX {
                return refused(&entry.path, "there are too many entries");
            }
            self.apply(&entry, archive)?;
        }
        for (path, time) in std::mem::take(&mut self.times).into_iter().rev() {
            // It may have been replaced since.
            if let Ok(dir) = self.look_up(&path) {
                write(&path, rustix::fs::utimensat(&dir, "", &times(time), AtFlags::EMPTY_PATH))?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, entry: &Entry, data: &mut impl Read) -> Result<(), Error> {
        let mut parts = parts(&entry.path, &entry.path)?;
        let Some(name) = parts.pop() else {
            return match entry.kind {
                Kind::Directory => self.dress_directory(&Rc::clone(&self.root), b"", entry),
                _ => refused(&entry.path, "the path is empty"),
            };
        };
        if entry.kind == Kind::Special {
            self.skipped += 1;
            return Ok(());
        }
        let above = parts.join(&b'/');
        if let Some(hidden) = name.strip_prefix(b".wh.") {
            return self.white_out(&parts, &above, hidden, entry);
        }
        let parent = self.parent(&parts, &above)?;
        let path = if above.is_empty() { name.to_vec() } else { [&above, name].join(&b'/') };
        match entry.kind {
            Kind::File => self.file(&parent, name, entry, data),
            Kind::Directory => {
                self.last = None;
                self.make_directory(&parent, name, &path)?;
                let dir = write(&path, open(&parent, name))?;
                self.dress_directory(&dir, &path, entry)
            }
            Kind::Symlink => {
                self.last = None;
                self.symlink(&parent, name, entry)
            }
            Kind::Hard => self.hard_link(&parent, name, entry),
            Kind::Special => Ok(()),
        }
    }

    /// A directory by its path inside, through the layer's own links.
    fn look_up(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        if path.is_empty() {
            return rustix::io::dup(&self.root);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            // What is renamed elsewhere on the host can keep the kernel from being sure.
            match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries < limits::LAYER_LOOKUPS_MAX => tries += 1,
                done => return done,
            }
        }
    }

    /// The directory of an entry, made where it is missing.
    fn parent(&mut self, parts: &[&[u8]], path: &[u8]) -> Result<Rc<OwnedFd>, Error> {
        if let Some((last, dir)) = &self.last
            && last == path
        {
            return Ok(Rc::clone(dir));
        }
        let dir = match self.look_up(path) {
            Ok(dir) => Rc::new(dir),
            Err(Errno::NOENT | Errno::NOTDIR) => self.make_parents(parts)?,
            Err(Errno::LOOP) => return refused(path, "its links go in a circle"),
            Err(error) => return write(path, Err(error)),
        };
        self.last = Some((path.to_vec(), Rc::clone(&dir)));
        Ok(dir)
    }

    fn make_parents(&mut self, parts: &[&[u8]]) -> Result<Rc<OwnedFd>, Error> {
        let mut dir = Rc::clone(&self.root);
        for (depth, name) in parts.iter().enumerate() {
            let path = parts[..=depth].join(&b'/');
            dir = match self.look_up(&path) {
                Ok(found) => Rc::new(found),
                Err(Errno::NOENT) if kind(&dir, name) == Ok(FileType::Symlink) => {
                    return refused(&path, "a link on the way leads nowhere");
                }
                Err(Errno::NOENT | Errno::NOTDIR) => {
                    if !matches!(kind(&dir, name), Err(_) | Ok(FileType::CharacterDevice)) {
                        return refused(&path, "something on the way is no directory");
                    }
                    self.make_directory(&dir, name, &path)?;
                    Rc::new(write(&path, open(&dir, name))?)
                }
                Err(error) => return write(&path, Err(error)),
            };
        }
        Ok(dir)
    }

    /// Makes a directory, or takes the one that is there.
    fn make_directory(&mut self, parent: &OwnedFd, name: &[u8], path: &[u8]) -> Result<(), Error> {
        let found = kind(parent, name);
        if found == Ok(FileType::Directory) {
            return Ok(());
        }
        self.clear(parent, name)?;
        write(path, rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)))?;
        // What was hidden below stays hidden.
        if found == Ok(FileType::CharacterDevice) { self.hide(path) } else { Ok(()) }
    }

    fn hide(&mut self, path: &[u8]) -> Result<(), Error> {
        self.hiding += path.len() + 8;
        if self.hiding > limits::LAYER_OPAQUE_BYTES_MAX {
            return refused(path, "too many directories hide those below");
        }
        self.opaque.push(path.to_vec());
        Ok(())
    }

    fn dress_directory(&mut self, dir: &OwnedFd, path: &[u8], entry: &Entry) -> Result<(), Error> {
        self.own(dir, b"", entry, AtFlags::EMPTY_PATH)?;
        let dir = write(path, open(dir, b"."))?;
        write(
            path,
            rustix::fs::fchmod(&dir, Mode::from_raw_mode(entry.mode as RawMode & !0o4000)),
        )?;
        self.kept += path.len() + 64;
        if self.kept > limits::LAYER_KEPT_BYTES_MAX {
            return refused(path, "there are too many directories");
        }
        self.times.push((path.to_vec(), entry.mtime));
        Ok(())
    }

    /// Takes away what an earlier entry put there.
    fn clear(&mut self, parent: &OwnedFd, name: &[u8]) -> Result<(), Error> {
        let text = std::ffi::CString::new(name).or_else(|_| refused(name, "a name holds a NUL"))?;
        if kind(parent, name).is_ok() {
            self.last = None;
        }
        write(name, remove::remove(parent.as_fd(), &text))
    }

    fn own(&self, dir: &OwnedFd, name: &[u8], entry: &Entry, flags: AtFlags) -> Result<(), Error> {
        let id = |id: u64| u16::try_from(id).ok().map(u32::from);
        let (Some(uid), Some(gid)) = (id(entry.uid), id(entry.gid)) else {
            return refused(&entry.path, "its owner is above 65535");
        };
        let first = match self.owners {
            Owners::Layer => 0,
            Owners::Shifted if uid.max(gid) < limits::SHARED_IDS => limits::SHARED_ID_FIRST,
            Owners::Shifted => return refused(&entry.path, "its owner is above 65534"),
            Owners::Caller => return Ok(()),
        };
        let (uid, gid) = (Some(Uid::from_raw(first + uid)), Some(Gid::from_raw(first + gid)));
        write(&entry.path, rustix::fs::chownat(dir, name, uid, gid, flags))
    }

    fn file(
        &mut self,
        parent: &OwnedFd,
        name: &[u8],
        entry: &Entry,
        data: &mut impl Read,
    ) -> Result<(), Error> {
        if entry.size > limits::LAYER_FILE_BYTES_MAX {
            return refused(&entry.path, "the file is too large");
        }
        let path = &entry.path;
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = match rustix::fs::openat(parent, name, flags, mode) {
            Err(Errno::EXIST) => {
                self.clear(parent, name)?;
                rustix::fs::openat(parent, name, flags, mode)
            }
            done => done,
        };
        let mut file = File::from(write(path, file)?);
        loop {
            let got = data.read(&mut self.buffer).map_err(tar::Error::Read)?;
            if got == 0 {
                break;
            }
            write(path, file.write_all(&self.buffer[..got]))?;
        }
        let file = OwnedFd::from(file);
        self.own(&file, b"", entry, AtFlags::EMPTY_PATH)?;
        // Nothing of an image may run as another user, here or on the host.
        let mode = Mode::from_raw_mode(entry.mode as RawMode & 0o1777);
        write(path, rustix::fs::fchmod(&file, mode))?;
        write(path, rustix::fs::futimens(&file, &times(entry.mtime)))
    }

    fn symlink(&mut self, parent: &OwnedFd, name: &[u8], entry: &Entry) -> Result<(), Error> {
        let (path, link) = (&entry.path, entry.link.as_slice());
        if link.is_empty() || link.len() > limits::LAYER_PATH_BYTES_MAX {
            return refused(path, "the target of the link is empty or too long");
        }
        self.clear(parent, name)?;
        write(path, rustix::fs::symlinkat(link, parent, name))?;
        self.own(parent, name, entry, NOFOLLOW)?;
        write(path, rustix::fs::utimensat(parent, name, &times(entry.mtime), NOFOLLOW))
    }

    fn hard_link(&mut self, parent: &OwnedFd, name: &[u8], entry: &Entry) -> Result<(), Error> {
        let path = &entry.path;
        let mut link = parts(&entry.link, path)?;
        let Some(target) = link.pop() else {
            return refused(path, "the link has no target");
        };
        let absent = "it links to what this layer does not hold";
        let Ok(dir) = self.look_up(&link.join(&b'/')) else { return refused(path, absent) };
        let found = match rustix::fs::statat(&dir, target, NOFOLLOW) {
            Ok(found) => found,
            Err(_) => return refused(path, absent),
        };
        if !matches!(
            FileType::from_raw_mode(found.st_mode),
            FileType::RegularFile | FileType::Symlink
        ) {
            return refused(path, "it links to what is no file");
        }
        let there = rustix::fs::statat(parent, name, NOFOLLOW);
        if there.is_ok_and(|there| (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino)) {
            return Ok(());
        }
        self.clear(parent, name)?;
        write(path, rustix::fs::linkat(&dir, target, parent, name, AtFlags::empty()))
    }

    /// Hides what lower layers have there. What this layer itself holds stays.
    fn white_out(
        &mut self,
        parts: &[&[u8]],
        above: &[u8],
        hidden: &[u8],
        entry: &Entry,
    ) -> Result<(), Error> {
        if hidden == b".wh..opq" {
            self.parent(parts, above)?;
            return self.hide(above);
        }
        if hidden.starts_with(b".wh.") {
            // Bookkeeping of aufs.
            return Ok(());
        }
        if matches!(hidden, b"" | b"." | b"..") {
            return refused(&entry.path, "it hides nothing that could be");
        }
        let parent = self.parent(parts, above)?;
        let path = if above.is_empty() { hidden.to_vec() } else { [above, hidden].join(&b'/') };
        match kind(&parent, hidden) {
            Ok(FileType::Directory) => self.hide(&path),
            Ok(_) => Ok(()),
            Err(_) => {
                let (kind, mode) = (FileType::CharacterDevice, Mode::empty());
                write(&path, rustix::fs::mknodat(&*parent, hidden, kind, mode, 0))
            }
        }
    }
}

/// What is there, links not followed.
fn kind(dir: &OwnedFd, name: &[u8]) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::statat(dir, name, NOFOLLOW)?.st_mode))
}

/// Opens a directory that is right there.
fn open(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

fn times((tv_sec, tv_nsec): (i64, i64)) -> Timestamps {
    let time = Timespec { tv_sec, tv_nsec };
    Timestamps { last_access: time, last_modification: time }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tar::tests::{RawHeader, build, raw};
    use expect_test::expect;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    fn unpack(archive: &[u8], to: &Path) -> Result<Tree, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(to, flags, Mode::empty()).unwrap();
        let mut tree = Tree::new(root, Owners::Caller);
        tree.unpack(&mut tar::Reader::new(archive)).map(|()| tree)
    }

    /// Everything below, with what it is.
    fn show(dir: &Path) -> String {
        let mut lines = Vec::new();
        let mut left = vec![dir.to_owned()];
        while let Some(at) = left.pop() {
            for entry in std::fs::read_dir(&at).unwrap().flatten() {
                let (path, found) = (entry.path(), entry.metadata().unwrap());
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                let mode = found.mode() & 0o7777;
                lines.push(if found.is_symlink() {
                    format!("{name} -> {}", std::fs::read_link(&path).unwrap().display())
                } else if found.is_dir() {
                    left.push(path);
                    format!("{name}/ {mode:o}")
                } else if found.is_file() {
                    format!("{name} {mode:o} {:?}", std::fs::read_to_string(&path).unwrap())
                } else {
                    format!("{name} whiteout {}", found.rdev())
                });
            }
        }
        lines.sort();
        lines.join("\n")
    }

    #[test]
    fn entries_go_where_the_layer_means_them() {
        let dir = tempfile::tempdir().unwrap();
        let modes = |mode, entry: RawHeader<'static>| RawHeader { mode, ..entry };
        let archive = build(&[
            modes(0o755, raw(b'5', "./", "")),
            modes(0o755, raw(b'5', "usr/bin/", "")),
            raw(b'2', "bin", "usr/bin"),
            raw(b'2', "sbin", "/usr/bin"),
            modes(0o4755, raw(b'0', "bin/su", "su")),
            modes(0o600, raw(b'0', "sbin/init", "init")),
            modes(0o3777, raw(b'5', "tmp", "")),
            raw(b'0', "made/on/the/way", "x"),
            raw(b'1', "same", "bin/su"),
            raw(b'3', "dev/null", ""),
            raw(b'6', "pipe", ""),
            raw(b'0', "twice", "first"),
            raw(b'0', "twice", "second"),
            raw(b'2', "link", "/etc/passwd"),
            raw(b'0', "link", "no link any more"),
            raw(b'0', "tree/in/the/way", "x"),
            raw(b'0', "tree", "file"),
            raw(b'0', "gone/.wh.old", ""),
            raw(b'0', "opaque/.wh..wh..opq", ""),
            raw(b'0', "opaque/new", "new"),
            raw(b'0', ".wh.replaced", ""),
            raw(b'5', "replaced/", ""),
            raw(b'0', ".wh.kept", ""),
            raw(b'0', "kept", "kept"),
            raw(b'0', "here", "here"),
            raw(b'0', ".wh.here", ""),
            raw(b'0', ".wh..wh.plnk", ""),
        ]);
        let tree = unpack(&archive, dir.path()).unwrap();
        expect![[r#"
            bin -> usr/bin
            gone/ 755
            gone/old whiteout 0
            here 644 "here"
            kept 644 "kept"
            link 644 "no link any more"
            made/ 755
            made/on/ 755
            made/on/the/ 755
            made/on/the/way 644 "x"
            opaque/ 755
            opaque/new 644 "new"
            replaced/ 644
            same 755 "su"
            sbin -> /usr/bin
            tmp/ 3777
            tree 644 "file"
            twice 644 "second"
            usr/ 755
            usr/bin/ 755
            usr/bin/init 600 "init"
            usr/bin/su 755 "su""#]]
        .assert_eq(&show(dir.path()));
        let opaque: Vec<_> = tree.opaque.iter().map(|path| String::from_utf8_lossy(path)).collect();
        assert_eq!((opaque.join(" ").as_str(), tree.skipped), ("opaque replaced", 2));
        let inode = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().ino();
        assert_eq!(inode("same"), inode("usr/bin/su"));
        assert_eq!(std::fs::metadata(dir.path().join("usr/bin")).unwrap().mtime(), 1_000_000);
    }

    /// Layers that are up to something, by what it is.
    fn hostile() -> Vec<(&'static str, Vec<u8>)> {
        let long = "n".repeat(99);
        let deep = "d/".repeat(49) + "f";
        vec![
            ("absolute", build(&[raw(b'0', "/etc/passwd", "x")])),
            ("climbing", build(&[raw(b'0', "a/../../out", "x")])),
            ("climbing link", build(&[raw(b'2', "up", "../.."), raw(b'0', "up/out", "x")])),
            ("absolute link", build(&[raw(b'2', "up", "/OUT"), raw(b'0', "up/out", "x")])),
            (
                "link chain",
                build(&[
                    raw(b'2', "a", "."),
                    raw(b'2', "a/b", "a/.."),
                    raw(b'2', "c", "b/../.."),
                    raw(b'0', "c/out", "x"),
                ]),
            ),
            ("loop", build(&[raw(b'2', "a", "b"), raw(b'2', "b", "a"), raw(b'0', "a/x", "x")])),
            ("through a file", build(&[raw(b'0', "a", ""), raw(b'0', "a/x", "x")])),
            ("hard link out", build(&[raw(b'1', "a", "../outside/secret")])),
            ("hard link absolute", build(&[raw(b'1', "a", "/etc/passwd")])),
            (
                "hard link through link",
                build(&[raw(b'2', "l", "../outside"), raw(b'1', "a", "l/secret")]),
            ),
            ("hard link to directory", build(&[raw(b'5', "d", ""), raw(b'1', "a", "d")])),
            ("hard link absent", build(&[raw(b'1', "a", "b")])),
            ("owner", build(&[RawHeader { uid: 70_000, ..raw(b'0', "a", "") }])),
            ("no name", build(&[raw(b'0', "./", "")])),
            ("file as root", build(&[raw(b'2', ".", "x")])),
            ("hides nothing", build(&[raw(b'0', ".wh...", "")])),
            ("empty link", build(&[raw(b'2', "a", "")])),
            ("sparse claim", build(&[RawHeader { size: Some(20 << 30), ..raw(b'0', "a", "") }])),
            ("cut", build(&[RawHeader { size: Some(4096), ..raw(b'0', "a", "x") }])),
            ("fine", build(&[raw(b'0', &long, ""), raw(b'0', &deep, "")])),
        ]
    }

    #[test]
    fn hostile_entries_are_refused_and_nothing_is_outside() {
        let mut said = String::new();
        for (name, archive) in hostile() {
            let dir = tempfile::tempdir().unwrap();
            let (inside, outside) = (dir.path().join("in"), dir.path().join("outside"));
            for dir in [&inside, &outside] {
                std::fs::create_dir(dir).unwrap();
            }
            std::fs::write(outside.join("secret"), "secret").unwrap();
            let done = unpack(&archive, &inside).err().map(|error| error.to_string());
            said.push_str(&format!("{name}: {}\n", done.as_deref().unwrap_or("taken")));
            let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
            assert_eq!(left.len(), 2, "{name}: {left:?}");
            assert_eq!(show(&outside), "secret 644 \"secret\"", "{name}");
            assert_eq!(std::fs::metadata(outside.join("secret")).unwrap().nlink(), 1, "{name}");
        }
        expect![[r#"
            absolute: `/etc/passwd`: the path is absolute
            climbing: `a/../../out`: the path climbs
            climbing link: taken
            absolute link: `up`: a link on the way leads nowhere
            link chain: taken
            loop: `a`: its links go in a circle
            through a file: `a`: something on the way is no directory
            hard link out: `a`: the path climbs
            hard link absolute: `a`: the path is absolute
            hard link through link: `a`: it links to what this layer does not hold
            hard link to directory: `a`: it links to what is no file
            hard link absent: `a`: it links to what this layer does not hold
            owner: `a`: its owner is above 65535
            no name: taken
            file as root: `.`: the path is empty
            hides nothing: `.wh...`: it hides nothing that could be
            empty link: `a`: the target of the link is empty or too long
            sparse claim: `a`: the file is too large
            cut: cannot read: the archive was cut inside an entry
            fine: taken
        "#]]
        .assert_eq(&said);
        // As long as a path is, and deeper than one may be.
        let path = "d/".repeat(limits::LAYER_DEPTH_MAX + 1);
        parts(path.as_bytes(), b"").unwrap_err();
        parts("x".repeat(5000).as_bytes(), b"").unwrap_err();
        parts("x".repeat(256).as_bytes(), b"").unwrap_err();
    }

    #[test]
    fn a_directory_that_forbids_itself_is_still_filled() {
        let dir = tempfile::tempdir().unwrap();
        let locked = RawHeader { mode: 0, ..raw(b'5', "locked", "") };
        unpack(&build(&[locked, raw(b'0', "locked/file", "x")]), dir.path()).unwrap();
        let mode = std::fs::metadata(dir.path().join("locked")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0);
    }

    proptest::proptest! {
        #[test]
        fn no_order_of_entries_leaves_the_directory(
            entries in proptest::collection::vec(
                (0_usize..7, "(a|b|c|\\.\\.|\\.wh\\.a|\\.wh\\.\\.wh\\.\\.opq)(/(a|b|c|\\.\\.)){0,3}",
                 "(/|\\.\\./)?(a|b|c|\\.\\.)(/(a|b|\\.\\.)){0,2}"), 1..14),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let inside = dir.path().join("in");
            std::fs::create_dir(&inside).unwrap();
            for name in ["a", "b", "c"] {
                std::fs::write(dir.path().join(name), name).unwrap();
            }
            let entries: Vec<RawHeader<'_>> = entries
                .iter()
                .map(|(kind, path, rest)| raw(b"0125356"[*kind], path, if b"012"[(*kind).min(2)] == b'0' || *kind == 1 || *kind == 2 { rest } else { "" }))
                .collect();
            let archive = build(&entries);
            // One that is refused ends the layer; each alone is tried too.
            let _ = unpack(&archive, &inside);
            for entry in entries {
                let _ = unpack(&build(&[entry]), &inside);
            }
            let mut left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
            left.sort();
            proptest::prop_assert_eq!(left, ["a", "b", "c", "in"]);
            for name in ["a", "b", "c"] {
                let path = dir.path().join(name);
                proptest::prop_assert_eq!(std::fs::read_to_string(&path).unwrap(), name);
                proptest::prop_assert_eq!(std::fs::metadata(&path).unwrap().nlink(), 1);
            }
        }
    }
}
