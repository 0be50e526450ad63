//! From a path as a caller gave it to a place in the sandbox.
//!
//! Owns the rule of the roots: a path belongs to one of them and stays beneath it,
//! through `..` and links alike. Links are followed here, one by one; what comes out
//! has none, and is opened in a way that refuses any, so that one that a command
//! puts there in between is refused too.

use std::os::fd::{AsRawFd, OwnedFd};

use outrigger_sandbox::{FileError, FileErrorKind, is_within, text};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, chmod, openat, openat2, readlinkat,
    statat,
};
use rustix::io::Errno;

use crate::limits;
use crate::paths::{HOME, TMP, WORKSPACE};

/// Beneath these the sandbox's user may write.
pub(super) const WRITABLE: [&str; 3] = [WORKSPACE, TMP, HOME];
/// Beneath these are no files in the sense of file operations.
pub(super) const NO_FILES: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Whether the last part of a path is followed when it is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symlinks {
    Followed,
    AsItIs,
}

/// What is done where the sandbox's user took its own permission to look away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockedPolicy {
    Refused,
    Unlocked,
}

/// A path as it was given, and the absolute one without links that it leads to.
/// What is missing at its end is no error.
#[derive(Debug, Clone)]
pub(super) struct ResolvedPath {
    given: String,
    root: &'static str,
    pub(super) path: String,
}

fn root_of(path: &str) -> &'static str {
    if !path.starts_with('/') {
        return WORKSPACE;
    }
    WRITABLE.into_iter().find(|root| is_within(path, root)).unwrap_or("/")
}

/// Parts in reverse, for a stack.
fn parts(path: &str) -> Vec<String> {
    path.split('/')
        .rev()
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect()
}

fn join(dir: &str, name: &str) -> String {
    if dir == "/" { format!("/{name}") } else { format!("{dir}/{name}") }
}

/// The directory of a path and the name in it.
fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((dir, name)) => (dir, name),
        None => ("/", path),
    }
}

/// Permission bits that the sandbox's user lacks to look at what it owns.
fn missing(stat: &Stat) -> u32 {
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return 0;
    }
    let wanted = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => 0o400,
        FileType::Directory => 0o500,
        _ => 0,
    };
    wanted & !stat.st_mode
}

/// The typed error for what the kernel said.
fn kind(errno: Errno) -> FileErrorKind {
    use FileErrorKind as Kind;
    match errno {
        Errno::NOENT => Kind::FileNotFound,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Kind::PermissionDenied,
        Errno::ISDIR => Kind::IsDirectory,
        Errno::NOTDIR => Kind::NotADirectory,
        Errno::LOOP | Errno::XDEV | Errno::NAMETOOLONG | Errno::NXIO => Kind::InvalidPath,
        Errno::EXIST => Kind::AlreadyExists,
        Errno::FBIG => Kind::TooLarge,
        Errno::NOSPC | Errno::DQUOT => Kind::NoSpace,
        _ => Kind::Io,
    }
}

impl ResolvedPath {
    /// Follows a path.
    pub(super) fn find(given: &str, last: Symlinks) -> Result<Self, FileError> {
        Self::follow(given, last, LockedPolicy::Refused)
    }

    /// Follows a path, through directories too that the sandbox's user closed to itself.
    pub(super) fn find_unlocking(given: &str, last: Symlinks) -> Result<Self, FileError> {
        Self::follow(given, last, LockedPolicy::Unlocked)
    }

    fn follow(given: &str, last: Symlinks, locked: LockedPolicy) -> Result<Self, FileError> {
        text::check_path(given)?;
        let root = root_of(given);
        let start = Self { given: given.to_owned(), root, path: root.to_owned() };
        let mut resolved = start;
        let mut rest = parts(given.strip_prefix(root).unwrap_or(given));
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                if resolved.path == root {
                    return Err(
                        resolved.error(FileErrorKind::InvalidPath, "the path leaves its root")
                    );
                }
                resolved.path = split(&resolved.path).0.to_owned();
                continue;
            }
            let next = join(&resolved.path, &part);
            if rest.is_empty() && last == Symlinks::AsItIs {
                resolved.path = next;
                break;
            }
            let mut read = readlinkat(CWD, &next, Vec::new());
            if read == Err(Errno::ACCESS)
                && locked == LockedPolicy::Unlocked
                && resolved.unlock()?
            {
                read = readlinkat(CWD, &next, Vec::new());
            }
            let target = match read {
                Ok(target) => target.to_string_lossy().into_owned(),
                Err(Errno::INVAL | Errno::NOENT) => {
                    resolved.path = next;
                    continue;
                }
                Err(errno) => return Err(resolved.kernel(errno)),
            };
            links += 1;
            if links > limits::LINKS_MAX {
                let detail = "too many symbolic links; perhaps a loop";
                return Err(resolved.error(FileErrorKind::InvalidPath, detail));
            }
            if target.starts_with('/') {
                if root_of(&target) != root {
                    let detail = "a symbolic link on the path leaves its root";
                    return Err(resolved.error(FileErrorKind::InvalidPath, detail));
                }
                root.clone_into(&mut resolved.path);
            }
            rest.extend(parts(target.strip_prefix(root).unwrap_or(&target)));
        }
        if NO_FILES.iter().any(|dir| is_within(&resolved.path, dir)) {
            return Err(
                resolved.error(FileErrorKind::InvalidPath, "there are no regular files there")
            );
        }
        Ok(resolved)
    }

    /// Where a path leads, for something that is to be changed.
    pub(super) fn find_writable(given: &str, last: Symlinks) -> Result<Self, FileError> {
        let resolved = Self::find(given, last)?;
        resolved.check_writable()?;
        Ok(resolved)
    }

    pub(super) fn check_writable(&self) -> Result<(), FileError> {
        if self.root != "/" && self.path != self.root {
            return Ok(());
        }
        let detail = if self.root == "/" {
            "only what is beneath /workspace, /tmp and /home/agent can be changed"
        } else {
            // A write to it is a mistake about what it is; removing it is not allowed.
            "this directory itself can't be changed"
        };
        Err(self.error(FileErrorKind::PermissionDenied, detail))
    }

    pub(super) fn error(&self, kind: FileErrorKind, detail: &str) -> FileError {
        FileError { kind, path: self.given.clone(), detail: detail.to_owned() }
    }

    /// An error about this place instead of what the caller gave.
    pub(super) fn named(&self, error: FileError) -> FileError {
        FileError { path: self.path.clone(), ..error }
    }

    /// An error of the kernel's, in words.
    pub(super) fn kernel(&self, errno: Errno) -> FileError {
        let detail = match errno {
            Errno::NOENT => "there is nothing at that path".to_owned(),
            Errno::ACCESS | Errno::PERM => "the sandbox's user has no permission".to_owned(),
            Errno::ROFS => "the file system is read-only there".to_owned(),
            Errno::LOOP => "the path changed while it was followed, or loops".to_owned(),
            Errno::NOTDIR => "a part of the path is not a directory".to_owned(),
            Errno::ISDIR => "it is a directory".to_owned(),
            other => std::io::Error::from(other).to_string(),
        };
        FileError { kind: kind(errno), path: self.given.clone(), detail }
    }

    /// An error from the standard library, in words.
    pub(super) fn io(&self, error: &std::io::Error) -> FileError {
        match error.raw_os_error() {
            Some(number) => self.kernel(Errno::from_raw_os_error(number)),
            None => self.error(FileErrorKind::Io, &error.to_string()),
        }
    }

    /// Opens a path without links, waiting for nothing.
    fn open_at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, FileError> {
        let flags = flags | OFlags::CLOEXEC;
        // openat2(2) refuses flags that mean nothing, as these two would.
        let waiting = OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = if flags.contains(OFlags::PATH) { flags } else { flags | waiting };
        let refuse = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(CWD, path, flags, Mode::empty(), refuse).map_err(|errno| self.kernel(errno))
    }

    /// Opens the directory that it stands in; its name there comes along.
    pub(super) fn parent(&self) -> Result<(OwnedFd, &str), FileError> {
        let (dir, name) = split(&self.path);
        Ok((self.open_at(dir, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }

    /// What is there, links not followed. `None`: nothing.
    pub(super) fn stat(&self) -> Result<Option<Stat>, FileError> {
        if self.path == "/" {
            return statat(CWD, "/", AtFlags::empty())
                .map(Some)
                .map_err(|errno| self.kernel(errno));
        }
        let found = self.parent().and_then(|(dir, name)| {
            statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| self.kernel(errno))
        });
        match found {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.kind == FileErrorKind::FileNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The regular file there; what else there is gives its typed error.
    pub(super) fn regular(&self) -> Result<Option<Stat>, FileError> {
        let Some(stat) = self.stat()? else { return Ok(None) };
        self.check_regular(&stat)?;
        Ok(Some(stat))
    }

    fn check_regular(&self, stat: &Stat) -> Result<(), FileError> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(self.error(FileErrorKind::IsDirectory, "it is a directory")),
            _ => Err(self.error(FileErrorKind::InvalidPath, "it is not a regular file")),
        }
    }

    /// Opens the regular file there.
    pub(super) fn open(&self, flags: OFlags) -> Result<(std::fs::File, Stat), FileError> {
        // Opened only when it is known to be regular: opening a device can do something.
        let missing = || self.kernel(Errno::NOENT);
        self.regular()?.ok_or_else(missing)?;
        let file = self.open_at(&self.path, flags | OFlags::NOFOLLOW)?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| self.kernel(errno))?;
        self.check_regular(&stat)?;
        Ok((std::fs::File::from(file), stat))
    }

    /// Opens the regular file there to read it, although its owner closed it to itself.
    pub(super) fn open_unlocking(&self) -> Result<(std::fs::File, Stat), FileError> {
        self.unlocking(|| self.open(OFlags::RDONLY))
    }

    /// Opens the directory there and makes sure that what is in it can be reached,
    /// although its owner closed it to itself.
    pub(super) fn directory_unlocking(&self) -> Result<OwnedFd, FileError> {
        let dir = self.unlocking(|| self.directory())?;
        let stat = rustix::fs::fstat(&dir).map_err(|errno| self.kernel(errno))?;
        if missing(&stat) != 0 {
            self.unlock()?;
        }
        Ok(dir)
    }

    /// Does something, and again if it was forbidden and no longer is.
    pub(super) fn unlocking<T>(
        &self,
        mut act: impl FnMut() -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        match act() {
            Err(error) if error.kind == FileErrorKind::PermissionDenied => match self.unlock() {
                // Perhaps somebody else unlocked it a moment ago.
                Ok(_) => act(),
                // Why it was forbidden says more than why it stays so.
                Err(_) => Err(error),
            },
            done => done,
        }
    }

    /// Gives the sandbox's user back the permission to look at what is there and to
    /// reach it, where a command took it away from what that user owns. For good:
    /// a command may do the same at any time. Says whether anything changed.
    fn unlock(&self) -> Result<bool, FileError> {
        // From the root down, since each opens the way to the next.
        let mut way = vec![self.clone()];
        while let Some(resolved) = way.last().filter(|resolved| resolved.path != resolved.root) {
            way.push(resolved.above());
        }
        let mut changed = false;
        for resolved in way.iter().rev().filter(|resolved| resolved.path != "/") {
            changed |= resolved.unlock_one()?;
        }
        Ok(changed)
    }

    fn unlock_one(&self) -> Result<bool, FileError> {
        let (dir, name) = self.parent()?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(&dir, name, flags, Mode::empty()).map_err(|errno| self.kernel(errno))?;
        let stat = rustix::fs::fstat(&found).map_err(|errno| self.kernel(errno))?;
        let bits = missing(&stat);
        if bits == 0 {
            return Ok(false);
        }
        // By the descriptor's own name, so that nothing that a command puts at the
        // path in between is changed; an O_PATH descriptor takes no fchmod(2). This thread
        // may have a table of descriptors that is its own.
        let mode = Mode::from_raw_mode((stat.st_mode & 0o7777) | bits);
        chmod(format!("/proc/thread-self/fd/{}", found.as_raw_fd()), mode)
            .map_err(|errno| self.kernel(errno))?;
        Ok(true)
    }

    /// Opens the directory there.
    pub(super) fn directory(&self) -> Result<OwnedFd, FileError> {
        self.open_at(&self.path, OFlags::RDONLY | OFlags::DIRECTORY).map_err(|mut error| {
            if error.kind == FileErrorKind::NotADirectory {
                "it is not a directory".clone_into(&mut error.detail);
            }
            error
        })
    }

    /// The place of a directory above.
    pub(super) fn above(&self) -> Self {
        Self { given: self.given.clone(), root: self.root, path: split(&self.path).0.to_owned() }
    }

    /// A place beneath, by a name that is one part.
    pub(super) fn child(&self, name: &str) -> Self {
        Self { given: self.given.clone(), root: self.root, path: join(&self.path, name) }
    }

    /// Makes the directory there and those missing above it.
    pub(super) fn make_dirs(&self) -> Result<(), FileError> {
        match self.open_at(&self.path, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind == FileErrorKind::FileNotFound => {}
            Err(error) => return Err(error),
        }
        // In a loop, because a path can have more parts than a thread's stack has room for.
        let mut absent = vec![self.clone()];
        while let Some(resolved) = absent.last() {
            if resolved.path == resolved.root {
                return Err(self.kernel(Errno::NOENT));
            }
            let above = resolved.above();
            match above.open_at(&above.path, OFlags::PATH | OFlags::DIRECTORY) {
                Ok(_) => break,
                Err(error) if error.kind == FileErrorKind::FileNotFound => absent.push(above),
                Err(error) => return Err(error),
            }
        }
        for resolved in absent.iter().rev() {
            let (dir, name) = resolved.parent()?;
            match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.kernel(errno)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_root_that_it_names() {
        let table = [
            ("a", WORKSPACE),
            ("/workspace", WORKSPACE),
            ("/workspacer", "/"),
            ("/tmp/x", "/tmp"),
            ("/etc", "/"),
        ];
        for (path, root) in table {
            assert_eq!(root_of(path), root, "{path}");
        }
    }

    #[test]
    fn what_leaves_its_root_or_is_no_file_is_refused_whether_it_exists_or_not() {
        for path in
            ["..", "a/../../x", "/tmp/../etc/passwd", "/proc/self/environ", "/dev/zero", "", "a\0"]
        {
            let error = ResolvedPath::find(path, Symlinks::Followed).unwrap_err();
            assert_eq!(error.kind, FileErrorKind::InvalidPath, "{path:?}");
        }
    }
}
