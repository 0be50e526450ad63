//! Unpacks an archive that [`pack`](crate::pack) made elsewhere.
//!
//! What comes is hostile: everything is made beneath one handle, nothing is followed or replaced,
//! and what is neither file, link nor folder is refused. Of git's own data only the history of
//! the directory is taken, and never unpacked here.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use outrigger_beneath::{self as beneath, Dir, Draft};

use crate::error::{Error, TooLarge};
use crate::{DirectoryArchive, Limits, history, is_git, limits, pack};

/// Unpacks an archive into an empty directory, which is there already, and packs what is there
/// then as [`pack`](crate::pack) would. `scratch` is where that is built.
///
/// # Errors
/// If it is no archive of files, links and folders, or has more than the limits allow. What was
/// made is left there.
pub fn unpack(
    archive: File,
    into: &Path,
    scratch: &Path,
    most: Limits,
) -> Result<DirectoryArchive, Error> {
    let dir = Dir::open(into).map_err(Error::directory(into))?;
    let (mut count, mut bytes) = (0, 0);
    let (mut files, mut links) = (BTreeSet::new(), BTreeMap::new());
    let (again, mut has_git) = (archive.try_clone().map_err(Error::Archive)?, false);
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(Error::Archive)? {
        let mut entry = entry.map_err(Error::Archive)?;
        let Some(path) = plain(&entry.path_bytes())? else { continue };
        count += 1;
        bytes += entry.size();
        if count > most.files_max {
            return Err(Error::TooLarge(TooLarge::Files(most.files_max)));
        }
        if bytes > most.bytes_max {
            return Err(Error::TooLarge(TooLarge::Bytes(most.bytes_max)));
        }
        if path.iter().any(|part| part.to_str().is_some_and(is_git)) {
            has_git = true;
            continue;
        }
        match entry.header().entry_type() {
            tar::EntryType::Regular => {
                let executable = entry.header().mode().map_err(Error::Archive)? & 0o100 != 0;
                write(&dir, &path, executable, &mut entry)
                    .map_err(Error::unreadable(into, &path))?;
                files.insert(path);
            }
            // Another name of a file that came before becomes a file like it.
            tar::EntryType::Link => {
                let target = plain(&entry.link_name_bytes().unwrap_or_default())?;
                let target = target.filter(|target| files.contains(target));
                let target = target.ok_or_else(|| refused(&path, "a link to no file before it"))?;
                let opened = dir.file(&target).map_err(Error::unreadable(into, &target))?;
                let stat = opened.metadata().map_err(Error::Archive)?;
                bytes += stat.len();
                if bytes > most.bytes_max {
                    return Err(Error::TooLarge(TooLarge::Bytes(most.bytes_max)));
                }
                let executable = stat.permissions().mode() & 0o100 != 0;
                write(&dir, &path, executable, opened).map_err(Error::unreadable(into, &path))?;
                files.insert(path);
            }
            // Those that nothing is in are in no workspace.
            tar::EntryType::Directory => {}
            tar::EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                links.insert(path, PathBuf::from(OsStr::from_bytes(&target)));
            }
            other => return Err(refused(&path, &format!("an entry of the kind {other:?}"))),
        }
    }
    // Last, so that nothing is made through one.
    for (path, target) in &links {
        let made = above(&dir, path).and_then(|()| dir.link(target, path));
        made.map_err(Error::unreadable(into, path))?;
    }
    files.extend(links.into_keys());
    let files: Vec<_> = files.into_iter().collect();
    let mut packed = pack::archive(into, (&dir, &files), Vec::new(), most, scratch)?;
    if has_git {
        history::take_over(again, &mut packed)?;
    }
    Ok(packed)
}

fn above(dir: &Dir, path: &Path) -> Result<(), beneath::Error> {
    match path.parent().filter(|it| !it.as_os_str().is_empty()) {
        Some(parent) => dir.make_dirs(parent, 0o755).map(drop),
        None => Ok(()),
    }
}

fn write(
    dir: &Dir,
    path: &Path,
    executable: bool,
    mut contents: impl io::Read,
) -> Result<(), beneath::Error> {
    let io = |source| beneath::Error::Io { path: path.to_owned(), source };
    above(dir, path)?;
    let mut draft = Draft::begin(dir, path, executable)?;
    io::copy(&mut contents, draft.file()).map_err(io)?;
    draft.put_new()
}

/// A path of names alone, of a length that any file system has; nothing for the directory itself.
fn plain(bytes: &[u8]) -> Result<Option<PathBuf>, Error> {
    let said = Path::new(OsStr::from_bytes(bytes));
    let parts = said.components().filter(|part| *part != Component::CurDir);
    let path: PathBuf = parts.clone().collect();
    let is_plain = bytes.len() <= limits::PATH_BYTES_MAX
        && parts.into_iter().all(|part| matches!(part, Component::Normal(_)));
    match is_plain {
        true => Ok(Some(path).filter(|path| !path.as_os_str().is_empty())),
        false => Err(refused(said, "a path that leads out of it")),
    }
}

fn refused(path: &Path, what: &str) -> Error {
    let text = format!("`{}`: {what} is not taken", path.display());
    Error::Archive(io::Error::new(io::ErrorKind::InvalidData, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DependencyPolicy, Rules};
    use std::fs;
    use std::io::{Seek, Write};
    use std::os::unix::fs::symlink;

    const MOST: Limits = Limits { bytes_max: 1 << 20, files_max: 100 };

    fn unpacked(archive: File, to: &Path) -> Result<DirectoryArchive, Error> {
        unpack(archive, to, tempfile::tempdir().unwrap().path(), MOST)
    }

    fn archive(entries: &[(&str, tar::EntryType, &str)]) -> File {
        let mut builder = tar::Builder::new(tempfile::tempfile().unwrap());
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            // As nobody's library would write it.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            let is_link = matches!(kind, tar::EntryType::Symlink | tar::EntryType::Link);
            let contents = if is_link { "" } else { content };
            if is_link {
                header.set_link_name(content).unwrap();
            }
            header.set_size(contents.len() as u64);
            header.set_cksum();
            builder.append(&header, contents.as_bytes()).unwrap();
        }
        let mut file = builder.into_inner().unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn what_was_packed_is_there_again() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(from.path().join("src")).unwrap();
        fs::write(from.path().join("src/a.rs"), "a").unwrap();
        fs::write(from.path().join("run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.path().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("src/a.rs", from.path().join("link")).unwrap();
        let top = fs::canonicalize(from.path()).unwrap();
        let policy = DependencyPolicy::Content;
        let packed = crate::pack(&top, scratch.path(), &Rules::default(), MOST, policy).unwrap();
        let again = unpacked(packed.archive, to.path()).unwrap();
        assert_eq!((again.files, again.bytes), (3, 11));
        let names = |archive| -> Vec<_> {
            let mut archive = tar::Archive::new(archive);
            archive.entries().unwrap().map(|it| it.unwrap().path().unwrap().into_owned()).collect()
        };
        assert_eq!(names(again.archive), ["link", "run", "src/a.rs"].map(PathBuf::from));
        assert_eq!(fs::read(to.path().join("link")).unwrap(), b"a");
        let mode = fs::metadata(to.path().join("run")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
    }

    #[test]
    fn nothing_is_made_elsewhere_or_through_a_link() {
        use tar::EntryType::{Char, Link, Regular, Symlink};
        let out = tempfile::tempdir().unwrap();
        let outside = out.path().to_str().unwrap();
        for entries in [
            vec![("../a", Regular, "a")],
            vec![("/tmp/a", Regular, "a")],
            vec![("a", Regular, "a"), ("a", Regular, "b")],
            vec![("a", Link, "b")],
            vec![("a", Char, "")],
        ] {
            let to = tempfile::tempdir().unwrap();
            assert!(unpacked(archive(&entries), to.path()).is_err(), "{entries:?}");
        }
        // As `tar -C DIR .` writes them.
        let to = tempfile::tempdir().unwrap();
        let usual = [("./", tar::EntryType::Directory, ""), ("./a/b", Regular, "b")];
        assert_eq!(unpacked(archive(&usual), to.path()).unwrap().files, 1);
        assert_eq!(fs::read(to.path().join("a/b")).unwrap(), b"b");
        // A file of two names is two files.
        let to = tempfile::tempdir().unwrap();
        let two = [("./a", Regular, "a"), ("b", Link, "./a")];
        assert_eq!(unpacked(archive(&two), to.path()).unwrap().files, 2);
        assert_eq!(fs::read(to.path().join("b")).unwrap(), b"a");
        // Links come last, whatever order they stand in: the file is beneath a folder.
        let to = tempfile::tempdir().unwrap();
        let both = [("a", Symlink, outside), ("a/b", Regular, "b")];
        assert!(unpacked(archive(&both), to.path()).is_err());
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
        let mut broken = tempfile::tempfile().unwrap();
        broken.write_all(&[7; 2_000]).unwrap();
        broken.rewind().unwrap();
        assert!(unpacked(broken, to.path()).is_err());
    }

    #[test]
    fn of_git_only_the_history_is_taken_and_settings_are_written_anew() {
        use tar::EntryType::{Regular, Symlink};
        let to = tempfile::tempdir().unwrap();
        let object = format!(".git/objects/ab/{}", "0".repeat(38));
        let settings = "[core]\n\tfsmonitor = evil\n[remote \"o\"]\n\turl = https://x.y/z\n";
        let packed = unpacked(
            archive(&[
                ("file", Regular, "f"),
                (".git/HEAD", Regular, "ref: refs/heads/main\n"),
                (".git/config", Regular, settings),
                (".git/hooks/pre-commit", Regular, "evil"),
                (".git/logs/HEAD", Regular, "log"),
                (".git/objects/info/alternates", Regular, "/etc"),
                (&object, Regular, "object"),
                (".git/objects/pack/pack-0f.pack", Regular, "pack"),
                (".git/objects/pack/evil", Regular, "evil"),
                (".git/refs/heads/main", Regular, "hash"),
                (".git/index", Symlink, "/etc/passwd"),
                ("sub/.git/HEAD", Regular, "ref: refs/heads/main\n"),
                (".GIT/config", Regular, "evil"),
            ]),
            to.path(),
        )
        .unwrap();
        assert!(packed.has_history);
        assert_eq!((packed.files, packed.bytes), (1, 1));
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1, "nothing of it is made here");
        let mut archive = tar::Archive::new(packed.archive);
        let (mut names, mut config) = (Vec::new(), String::new());
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            if path == ".git/config" {
                std::io::Read::read_to_string(&mut entry, &mut config).unwrap();
            }
            if entry.header().entry_type().is_file() {
                names.push(path);
            }
        }
        let taken = [
            "file",
            ".git/HEAD",
            ".git/config",
            &object,
            ".git/objects/pack/pack-0f.pack",
            ".git/refs/heads/main",
        ];
        assert_eq!(names, taken);
        assert!(config.contains("url = https://x.y/z") && !config.contains("evil"), "{config}");
    }

    #[test]
    fn what_is_too_much_is_refused() {
        use tar::EntryType::Regular;
        let to = tempfile::tempdir().unwrap();
        let few = Limits { files_max: 1, ..MOST };
        let two = [("a", Regular, "a"), ("b", Regular, "b")];
        let refused = unpack(archive(&two), to.path(), to.path(), few).unwrap_err();
        assert!(matches!(refused, Error::TooLarge(TooLarge::Files(1))), "{refused}");
        let to = tempfile::tempdir().unwrap();
        let small = Limits { bytes_max: 1, ..MOST };
        let refused =
            unpack(archive(&[("a", Regular, "ab")]), to.path(), to.path(), small).unwrap_err();
        assert!(matches!(refused, Error::TooLarge(TooLarge::Bytes(1))), "{refused}");
    }
}
