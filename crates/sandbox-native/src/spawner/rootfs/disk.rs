//! The tree that a sandbox writes: its parts, and how they come to be.
//!
//! Owns where the parts are, which is the same on the disk and in the root, and the
//! one way to make directories in a tree that others wrote: name by name, never
//! through a link. Runs only while no process of the sandbox does.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid, chownat, fstat, mkdirat, openat, unlinkat,
};
use rustix::io::Errno;

use super::mounts::doing;
use crate::spawner::store::DiskDir;

/// The part of the disk in which commands begin.
pub(super) const WORKSPACE: &str = "workspace";
/// Parts of the disk, and the mode of their directory.
pub(super) const DISK: [(&str, u32); 4] =
    [(WORKSPACE, 0o755), ("tmp", 0o1777), ("home/agent", 0o755), ("var/tmp", 0o1777)];
/// The part of the disk with whole outputs, which commands can read and not change.
pub(super) const OUTPUT: &str = "var/outrigger/output";

/// A tree, by its first directory.
#[derive(Debug)]
pub(super) struct Tree {
    top: OwnedFd,
    /// The id outside of the guest's user.
    owner: u32,
    /// The id outside of the user of commands.
    agent: u32,
}

fn open(dir: impl AsFd, name: impl AsRef<Path>) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name.as_ref(), flags, Mode::empty())
}

fn make(dir: impl AsFd, name: impl AsRef<Path>, mode: u32, owner: u32) -> rustix::io::Result<()> {
    mkdirat(&dir, name.as_ref(), Mode::from_raw_mode(mode))?;
    give(dir, name, owner)
}

fn give(dir: impl AsFd, name: impl AsRef<Path>, owner: u32) -> rustix::io::Result<()> {
    let (uid, gid) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
    chownat(dir, name.as_ref(), uid, gid, AtFlags::SYMLINK_NOFOLLOW)
}

impl Tree {
    /// A tree that is there.
    pub(super) fn open(top: &Path, owner: u32, agent: u32) -> io::Result<Self> {
        Ok(Self { top: doing("open", top, open(CWD, top))?, owner, agent })
    }

    /// A tree, by its first directory.
    pub(super) fn at(top: OwnedFd, owner: u32, agent: u32) -> Self {
        Self { top, owner, agent }
    }

    pub(super) fn top(&self) -> &OwnedFd {
        &self.top
    }

    /// A directory of the tree, made with those above it where it is missing. What is
    /// in its place and no directory goes: a mount over it would be redirected.
    pub(super) fn directory(&self, path: &str, mode: u32, owner: u32) -> io::Result<OwnedFd> {
        let mut dir = doing("open", path, self.top.try_clone())?;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let last = names.peek().is_none();
            let (mode, owner) = if last { (mode, owner) } else { (0o755, self.owner) };
            dir = match open(&dir, name) {
                Ok(found) => found,
                Err(error @ (Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => {
                    if error != Errno::NOENT {
                        doing("replace", path, unlinkat(&dir, name, AtFlags::empty()))?;
                    }
                    doing("make", path, make(&dir, name, mode, owner))?;
                    doing("open", path, open(&dir, name))?
                }
                Err(error) => return doing("open", path, Err(error)),
            };
        }
        Ok(dir)
    }

    /// A file of the tree, made empty where it is missing, as [`Tree::directory`] is.
    pub(super) fn file(&self, path: &str) -> io::Result<OwnedFd> {
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        let dir = self.directory(above, 0o755, self.owner)?;
        let open = |flags| {
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(&dir, name, flags, Mode::from_raw_mode(0o644))
        };
        let there = open(OFlags::PATH);
        let plain = |file: &OwnedFd| {
            fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file())
        };
        match there {
            Ok(file) if plain(&file) => return Ok(file),
            // A link, for the most part, whose target is for who wrote it.
            Ok(_) => doing("replace", path, unlinkat(&dir, name, AtFlags::empty()))?,
            Err(Errno::NOENT) => {}
            Err(error) => return doing("open", path, Err(error)),
        }
        doing("make", path, open(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL))?;
        doing("give away", path, give(&dir, name, self.owner))?;
        doing("open", path, open(OFlags::PATH))
    }

    /// Makes what is missing of the parts. Those with one owner are given to it.
    pub(super) fn complete(&self) -> io::Result<()> {
        let parts = DISK.map(|(part, mode)| (part, mode, self.agent));
        for (part, mode, owner) in parts.into_iter().chain([(OUTPUT, 0o755, self.owner)]) {
            let dir = self.directory(part, mode, owner)?;
            let own = mode == 0o755;
            if own && doing("look at", part, fstat(&dir))?.st_uid != owner {
                let (uid, gid) = (Uid::from_raw(owner), Gid::from_raw(owner));
                let given = chownat(&dir, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH);
                doing("give away", part, given)?;
            }
        }
        Ok(())
    }
}

/// Makes a new tree with the parts. Of one that is there, what is missing is made.
pub(super) fn make_disk(disk_dir: &DiskDir, owner: u32, agent: u32) -> io::Result<()> {
    let (upper, unowned) = (&disk_dir.upper(), &disk_dir.unowned());
    if upper.exists() {
        // It may have been left half made.
        return without_umask(|| Tree::open(upper, owner, agent)?.complete());
    }
    lay(unowned)?;
    hand_over(unowned, owner, agent)?;
    doing("name", upper, std::fs::rename(unowned, upper))
}

/// Makes the tree of a disk that stands on layers, where it is missing: one empty
/// directory, which is seen as the top of all of them. It has its name when it is its
/// owner's, who is taken for that of all that the tree will hold.
pub(crate) fn make_upper(disk_dir: &DiskDir, owner: u32) -> io::Result<()> {
    let (upper, unowned) = (&disk_dir.upper(), &disk_dir.unowned());
    if upper.exists() {
        return Ok(());
    }
    without_umask(|| make_dir(CWD, unowned, 0o755))?;
    doing("give away", unowned, give(CWD, unowned, owner))?;
    doing("name", upper, std::fs::rename(unowned, upper))
}

/// The directories in a tree with the parts: whether they are of the user of commands, and
/// their mode.
fn laid() -> impl Iterator<Item = (&'static str, bool, u32)> {
    let others = ["home", "var", "var/outrigger", OUTPUT].map(|part| (part, false, 0o755));
    others.into_iter().chain(DISK.map(|(part, mode)| (part, true, mode)))
}

/// Makes a directory of the spawner's own, unless it is there already.
fn make_dir(dir: impl AsFd, path: &Path, mode: u32) -> io::Result<()> {
    match mkdirat(dir, path, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) => Ok(()),
        made => doing("make", path, made),
    }
}

/// Makes a tree with the parts, of the spawner's own. What is there of it already is fine.
fn lay(unowned: &Path) -> io::Result<()> {
    without_umask(|| {
        make_dir(CWD, unowned, 0o755)?;
        let top = doing("open", unowned, open(CWD, unowned))?;
        laid().try_for_each(|(part, _, mode)| make_dir(&top, Path::new(part), mode))
    })
}

/// Gives such a tree, which is ours, to those whose it is to be.
fn hand_over(unowned: &Path, owner: u32, agent: u32) -> io::Result<()> {
    let top = doing("open", unowned, open(CWD, unowned))?;
    for (part, agents, _) in laid() {
        doing("give away", part, give(&top, part, if agents { agent } else { owner }))?;
    }
    doing("give away", unowned, give(CWD, unowned, owner))
}

fn without_umask<T>(make: impl FnOnce() -> T) -> T {
    let umask = rustix::process::umask(Mode::empty());
    let made = make();
    rustix::process::umask(umask);
    made
}
