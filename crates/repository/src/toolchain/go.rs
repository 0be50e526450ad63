//! Go: what it downloaded, and what it compiled.
//!
//! Owns how a build cache is shared without being copied: a layer of links to the person's own
//! files, which the sandbox is shown read-only. What is compiled in the sandbox stands beside
//! them. Each file's name is a digest, so that a link says what is behind it for good.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_beneath::Dir;
use outrigger_sandbox::EntryKind;
use sha2::{Digest, Sha256};

use super::search::Search;
use crate::hex::hex;
use crate::{Error, FileLayer, TooLarge, limits};

/// Where a sandbox is shown the files.
pub const GO_CACHE: &str = "/var/outrigger/go-build";
/// Where Go looks for them, from the root.
const INSIDE: &str = "home/agent/.cache/go-build";

/// Go finds its own tools from where it is; what it downloaded lies elsewhere.
pub(super) fn find(search: &mut Search<'_>) {
    if !search.tools.path.iter().any(|dir| dir.join("go").is_file()) {
        return;
    }
    let workspace = search.shell.dir("GOPATH", "go");
    let modules = search.shell.vars.get("GOMODCACHE").map(PathBuf::from);
    let modules = modules.unwrap_or_else(|| workspace.join("pkg/mod"));
    if search.show(&modules) {
        search.set("GOMODCACHE", modules.display().to_string());
    }
    search.set("GOPROXY", "off");
    search.set("GOTOOLCHAIN", "local");
    let caches = search.shell.dir("XDG_CACHE_HOME", ".cache");
    let cache = search.shell.vars.get("GOCACHE").map_or(caches.join("go-build"), PathBuf::from);
    // It says itself what it is, so that no other directory is taken for one.
    let is_one = cache.is_absolute() && cache.join("README").is_file() && cache.join("00").is_dir();
    search.tools.go_cache = Some(cache).filter(|_| is_one);
}

/// What Go compiled on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoCache {
    files: BTreeSet<PathBuf>,
    /// Names what is in it: another one for other files.
    pub version: String,
}

impl GoCache {
    /// Looks at a cache, and reads no file of it.
    ///
    /// # Errors
    /// If it can't be read, or has more than [`limits::GO_CACHE_FILES_MAX`] files.
    pub fn look(dir: &Path) -> Result<Self, Error> {
        let opened = Dir::open(dir).map_err(Error::directory(dir))?;
        let mut files = BTreeSet::new();
        for number in 0..=u8::MAX {
            let folder = PathBuf::from(format!("{number:02x}"));
            let names = match opened.dir(&folder).and_then(|folder| folder.names()) {
                Ok(names) => names,
                Err(error) if error.is_absent() => continue,
                Err(error) => return Err(Error::unreadable(dir, &folder)(error)),
            };
            let names = names.flatten().filter(|name| is_name(name.as_encoded_bytes()));
            files.extend(names.map(|name| folder.join(name)));
            if files.len() > limits::GO_CACHE_FILES_MAX {
                let most = limits::GO_CACHE_FILES_MAX as u64;
                return Err(Error::TooLarge(TooLarge::Files(most)));
            }
        }
        let mut hasher = Sha256::new();
        files.iter().for_each(|path| hasher.update(path.as_os_str().as_encoded_bytes()));
        Ok(Self { files, version: hex(hasher.finalize()) })
    }

    /// A layer of links to its files as the sandbox is shown them, of the user `owner`.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn archive(&self, owner: u64, scratch: &Path, now_s: i64) -> io::Result<File> {
        let inside = Path::new(INSIDE);
        let mut layer = FileLayer::new(scratch, owner, &[Path::new("home/agent/.cache")], now_s)?;
        for path in &self.files {
            let contents = Path::new(GO_CACHE).join(path).into_os_string().into_encoded_bytes();
            let link = crate::File { kind: EntryKind::Link, executable: false, contents };
            layer.add(&inside.join(path), &link)?;
        }
        // Go removes what is old where it did not lately.
        let contents = now_s.to_string().into_bytes();
        let trimmed = crate::File { kind: EntryKind::File, executable: false, contents };
        layer.add(&inside.join("trim.txt"), &trimmed)?;
        layer.finish()
    }
}

/// 64 hexadecimal digits, and whether it is an action or an output.
fn is_name(name: &[u8]) -> bool {
    let digits = name.strip_suffix(b"-a").or_else(|| name.strip_suffix(b"-d"));
    digits.is_some_and(|digits| digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_cache_becomes_links_to_its_files() {
        let (cache, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |path: &str| {
            let path = cache.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        };
        let name = format!("{}-a", "0a".repeat(32));
        write(&format!("0a/{name}"));
        let before = GoCache::look(cache.path()).unwrap();
        for other in ["0a/0a-a", "fuzz/x", "README", "0b/../../x"] {
            write(&format!("{other}-d"));
        }
        assert_eq!(GoCache::look(cache.path()).unwrap(), before);
        let mut archive = Vec::new();
        before.archive(7, scratch.path(), 99).unwrap().read_to_end(&mut archive).unwrap();
        let mut read = tar::Archive::new(archive.as_slice());
        let mut entries = Vec::new();
        for entry in read.entries().unwrap() {
            let entry = entry.unwrap();
            let link = entry.link_name().unwrap().map(|it| it.display().to_string());
            entries.push(format!("{} {link:?}", entry.path().unwrap().display()));
        }
        let inside = |rest: &str| format!("home/agent/.cache{rest}");
        assert_eq!(
            entries,
            [
                inside(" None"),
                inside("/go-build None"),
                inside("/go-build/0a None"),
                inside(&format!("/go-build/0a/{name} Some(\"{GO_CACHE}/0a/{name}\")")),
                inside("/go-build/trim.txt None"),
            ]
        );
        write(&format!("ff/{}-d", "ff".repeat(32)));
        assert_ne!(GoCache::look(cache.path()).unwrap().version, before.version);
    }
}
