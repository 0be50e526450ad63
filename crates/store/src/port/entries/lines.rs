//! Texts of versions compared line by line: who wrote what stands there.

use imara_diff::sources::lines;
use imara_diff::{Algorithm, Diff, InternedInput};
use outrigger_agent::{Seq, SessionId};
use outrigger_policy::{Principal, Scope};

use super::{
    Attribution, ContentState, Contents, Entries, EntryAddress, EntryState, Error, Version,
};
use crate::limits;

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
    let mut input = InternedInput::default();
    input.update_before(lines(&before));
    input.update_after(lines(text));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let kept = known.into_iter().zip(0..).filter(|(_, at)| !diff.is_removed(*at));
    let mut kept = kept.map(|(line, _)| line);
    let mut written = Vec::new();
    for (line, at) in lines(text).zip(0..) {
        match diff.is_added(at) {
            true => written.push((line.to_owned(), version.clone())),
            false => written.extend(kept.next()),
        }
    }
    written
}
