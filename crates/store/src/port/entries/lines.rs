//! Texts of versions compared line by line: what changed, and who wrote what stands there.

use outrigger_agent::{Seq, SessionId};
use outrigger_policy::{Principal, Scope};
use similar::{ChangeTag, TextDiff};

use super::{
    Attribution, ContentState, Contents, Entries, EntryAddress, EntryState, Error, Version,
};
use crate::limits;

/// What changed from one text to another, as a unified diff; empty where nothing did.
///
/// # Errors
/// [`Error::NotText`].
pub fn diff(before: &[u8], after: &[u8], names: [&str; 2]) -> Result<String, Error> {
    let [before, after] = [before, after].map(std::str::from_utf8);
    let (before, after) = (before.map_err(|_| Error::NotText)?, after.map_err(|_| Error::NotText)?);
    Ok(compare(before, after).unified_diff().header(names[0], names[1]).to_string())
}

fn compare<'a>(before: &'a str, after: &'a str) -> TextDiff<'a, 'a, str> {
    let mut configured = TextDiff::configure();
    configured.timeout(std::time::Duration::from_millis(limits::DIFF_MS_MAX));
    configured.diff_lines(before, after)
}

/// A line, and who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlameLine {
    /// The line, with its end.
    pub line: String,
    /// The place and version in which it appeared.
    pub place: EntryAddress,
    /// Its revision there.
    pub revision: u64,
    /// For whom it was written.
    pub author: Principal,
    /// The agent that wrote it, if one did.
    pub agent: Option<String>,
    /// In which session.
    pub session: Option<SessionId>,
    /// By which effect of it.
    pub seq: Option<Seq>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Who wrote the lines of a file's newest version: the oldest version since which each is
/// there. Goes back to where a file was moved from, as far as the scope sees that, and at
/// most [`limits::BLAME_VERSIONS_MAX`]; contents that are gone are passed over.
///
/// # Errors
/// As [`Entries::read`]; [`Error::NotText`].
pub async fn blame(
    entries: &dyn Entries,
    scope: &Scope,
    at: &EntryAddress,
) -> Result<Vec<BlameLine>, Error> {
    let newest = entries.read(scope, at, None).await?;
    let mut lines: Vec<(String, Version)> = Vec::new();
    for version in past(entries, scope, &newest.version).await?.into_iter().rev() {
        let read = entries.read(scope, &version.place, Some(version.revision)).await;
        let Contents { bytes, .. } = match read {
            // What was pruned or redacted meanwhile is passed over too.
            Err(Error::Redacted(_) | Error::Pruned) => continue,
            other => other?,
        };
        // A version that was no text: what came before it says nothing of the lines.
        let Ok(text) = String::from_utf8(bytes) else {
            lines.clear();
            continue;
        };
        lines = written_over(lines, &text, &version);
    }
    if lines.is_empty() && !newest.bytes.is_empty() {
        return Err(Error::NotText);
    }
    Ok(lines.into_iter().map(|(line, version)| BlameLine::of(line, version)).collect())
}

impl BlameLine {
    fn of(line: String, version: Version) -> Self {
        let Version { place, revision, author, by, .. } = version;
        let Attribution { agent, session, seq, at_ms, .. } = by;
        Self { line, place, revision, author, agent, session, seq, at_ms }
    }
}

/// The versions that a file came from, newest first, of those that have a content.
async fn past(
    entries: &dyn Entries,
    scope: &Scope,
    newest: &Version,
) -> Result<Vec<Version>, Error> {
    let mut found: Vec<Version> = Vec::new();
    let (mut at, mut before) = (newest.place.clone(), newest.revision + 1);
    while found.len() < limits::BLAME_VERSIONS_MAX {
        let page = match entries.history(scope, &at, Some(before)).await {
            // It came from where the scope sees nothing.
            Err(Error::Absent) if !found.is_empty() => break,
            page => page?,
        };
        let Some(last) = page.last().cloned() else { break };
        let mut origin = None;
        for version in page {
            match &version.state {
                // A file that was removed and made again is another one.
                EntryState::Gone | EntryState::Folder => {
                    origin = Some(None);
                    break;
                }
                EntryState::File { .. } => {
                    let moved = version.derived_from.clone().filter(|(from, _)| *from != at);
                    if version.kept == ContentState::Whole {
                        found.push(version);
                    }
                    if moved.is_some() {
                        origin = Some(moved);
                        break;
                    }
                }
            }
        }
        match origin {
            None => before = last.revision,
            Some(None) => break,
            Some(Some((place, revision))) => (at, before) = (place, revision + 1),
        }
    }
    found.truncate(limits::BLAME_VERSIONS_MAX);
    Ok(found)
}

/// The lines of a text, each with the version that it was already in, or this one.
fn written_over(
    known: Vec<(String, Version)>,
    text: &str,
    version: &Version,
) -> Vec<(String, Version)> {
    let before: String = known.iter().map(|(line, _)| line.as_str()).collect();
    let mut known = known.into_iter();
    let mut lines = Vec::new();
    for change in compare(&before, text).iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => lines.extend(known.next()),
            ChangeTag::Delete => drop(known.next()),
            ChangeTag::Insert => lines.push((change.value().to_owned(), version.clone())),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_diff() {
        let shown = diff(b"a\nb\nc\n", b"a\nB\nc\nd", ["notes.md@1", "notes.md@2"]).unwrap();
        expect![[r#"
            --- notes.md@1
            +++ notes.md@2
            @@ -1,3 +1,4 @@
             a
            -b
            +B
             c
            +d
            \ No newline at end of file
        "#]]
        .assert_eq(&shown);
        assert_eq!(diff(b"a", b"a", ["1", "2"]).unwrap(), "");
        assert!(matches!(diff(b"\xff", b"a", ["1", "2"]), Err(Error::NotText)));
    }
}
