//! `glob` and `grep` over a served tree.
//!
//! Owns the limits of a search: what is beyond them is left out, and said to be.

use outrigger_sandbox::text::SkipList;
use outrigger_sandbox::{FileError, FileErrorKind, GrepMatch, GrepPattern, limits as door, text};

use super::tree_files::TreeFiles;
use crate::limits;

/// What a search found, and whether there may be more.
#[derive(Debug)]
pub(super) struct SearchResults<T> {
    pub(super) found: Vec<T>,
    pub(super) truncated: bool,
}

/// Files beneath a folder.
#[derive(Debug, Default)]
struct PathListing {
    paths: Vec<String>,
    truncated: bool,
}

impl TreeFiles {
    /// Paths beneath `folder` that match, relative to `root`.
    pub(super) async fn glob(
        &self,
        root: &str,
        folder: &str,
        pattern: &str,
        paths_max: u32,
    ) -> Result<SearchResults<String>, FileError> {
        let matcher = text::Glob::new(pattern)?;
        let node = self.stat(folder).await?;
        if !node.folder {
            let detail = "it is not a directory";
            return Err(super::tree_files::error(FileErrorKind::NotADirectory, folder, detail));
        }
        let PathListing { mut paths, mut truncated } =
            self.walk(folder, matcher.skip_list(folder)).await?;
        paths.retain(|path| matcher.matches(relative(root, path)));
        truncated |= super::cut(&mut paths, paths_max.min(door::ENTRIES_MAX));
        self.show(paths.iter().map(String::as_str)).await?;
        Ok(SearchResults { found: paths, truncated })
    }

    /// Lines beneath `folder`, or in that one file, that match.
    pub(super) async fn grep(
        &self,
        root: &str,
        folder: &str,
        pattern: &GrepPattern,
        glob: Option<&str>,
        matches_max: u32,
    ) -> Result<SearchResults<GrepMatch>, FileError> {
        let matcher = text::GrepMatcher::new(pattern)?;
        let glob = glob.map(text::Glob::new).transpose()?;
        let most = matches_max.min(door::MATCHES_MAX) as usize;
        let skips = match &glob {
            Some(glob) => glob.skip_list(folder),
            None => text::SkipList::beneath(folder),
        };
        let PathListing { paths, mut truncated } = if self.stat(folder).await?.folder {
            self.walk(folder, skips).await?
        } else {
            PathListing { paths: vec![folder.to_owned()], truncated: false }
        };
        let (mut found, mut bytes) = (Vec::new(), 0);
        for path in paths {
            let relative = relative(root, &path);
            let name = if relative.is_empty() { path.rsplit('/').next() } else { Some(relative) };
            if !glob.as_ref().is_none_or(|glob| glob.matches(name.unwrap_or_default())) {
                continue;
            }
            let contents = match self.peek(&path).await {
                Ok(file) => file.contents,
                // It was there a moment ago, or can be seen and not read.
                Err(_) => continue,
            };
            bytes += contents.len();
            if text::is_binary(&contents) {
                continue;
            }
            let lines = matcher.lines(&contents);
            found.extend(lines.map(|(line, text)| GrepMatch { path: path.clone(), line, text }));
            if found.len() > most || bytes > limits::SEARCH_BYTES_MAX {
                truncated = true;
                break;
            }
        }
        truncated |= found.len() > most;
        found.truncate(most);
        self.show(found.iter().map(|found| found.path.as_str())).await?;
        Ok(SearchResults { found, truncated })
    }

    /// Files beneath a folder, sorted by path.
    async fn walk(&self, folder: &str, skips: SkipList) -> Result<PathListing, FileError> {
        let mut walked = PathListing::default();
        let mut folders = vec![folder.to_owned()];
        let mut looked = 0;
        while let Some(folder) = folders.pop() {
            let mut after = None;
            loop {
                let (entries, more) = match self.page(&folder, after).await {
                    Ok(page) => page,
                    // It was there a moment ago, or can be seen and not looked into.
                    Err(_) => break,
                };
                looked += entries.len();
                after = entries.last().map(|entry| entry.name.clone());
                for entry in entries {
                    let path = format!("{folder}/{}", entry.name);
                    match entry.node.folder {
                        true if skips.skips(&entry.name) => {}
                        true => folders.push(path),
                        false => walked.paths.push(path),
                    }
                }
                if looked > limits::SEARCH_ENTRIES_MAX {
                    walked.truncated = true;
                    folders.clear();
                    break;
                }
                if !more || after.is_none() {
                    break;
                }
            }
        }
        walked.paths.sort();
        Ok(walked)
    }
}

/// The path relative to a root, for a path beneath it.
fn relative<'a>(root: &str, path: &'a str) -> &'a str {
    path.strip_prefix(root).unwrap_or(path).trim_start_matches('/')
}
