//! Plans changes: from what is there to the versions that come of it, or a refusal.
//!
//! Nothing is written here, so that a refusal leaves nothing behind.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use outrigger_policy::Scope;

use super::draft::{Body, Draft, Source, What};
use super::look::{EntryLookup, ResolvedPath, content, look, origin};
use super::read;
use super::rows::{Columns, wrong};
use crate::entries::{
    Attribution, ContentState, EntryAddress, EntryFile, EntryPrecondition, EntryState, Error,
};
use crate::limits;
use crate::sql::integer::number;

/// Who changes something, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Editor<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) by: &'a Attribution,
}

impl Editor<'_> {
    pub(crate) fn draft(&self, at: EntryAddress, revision: u64, what: What) -> Draft {
        let (author, by) = (self.scope.person(), self.by.clone());
        let (replaces, accepted_by, derived_from, review_by_ms) = (None, None, None, None);
        Draft { at, revision, what, replaces, author, by, accepted_by, derived_from, review_by_ms }
    }

    /// In the place of what is there.
    pub(crate) fn draft_at(&self, resolved: &ResolvedPath, what: What) -> Draft {
        let draft = self.draft(resolved.at.clone(), resolved.revision + 1, what);
        Draft { replaces: resolved.origin.clone(), ..draft }
    }

    /// The folders that are missing above a path, and then what comes there.
    pub(crate) async fn onto(
        &self,
        connection: &mut DatabaseConnection,
        resolved: &ResolvedPath,
        what: What,
    ) -> Result<Vec<Draft>, Error> {
        let draft = |at, revision, what| self.draft(at, revision, what);
        let mut drafts = resolved.folders(connection, draft).await?;
        drafts.push(self.draft_at(resolved, what));
        Ok(drafts)
    }

    pub(crate) async fn write(
        &self,
        connection: &mut DatabaseConnection,
        at: &EntryAddress,
        expected: EntryPrecondition,
        file: EntryFile,
    ) -> Result<Vec<Draft>, Error> {
        let resolved = look(connection, self.scope, at).await?;
        resolved.direct()?;
        Error::within("an entry (bytes)", file.bytes.len(), limits::ENTRY_BYTES_MAX)?;
        resolved.expect(connection, expected).await?;
        origin(connection, self.scope, file.derived_from.as_ref()).await?;
        let body = Body::new(file.bytes, file.executable);
        let mut drafts = self.onto(connection, &resolved, What::File(body)).await?;
        if let Some(draft) = drafts.last_mut() {
            (draft.derived_from, draft.review_by_ms) = (file.derived_from, file.review_by_ms);
        }
        Ok(drafts)
    }

    pub(crate) async fn edit(
        &self,
        connection: &mut DatabaseConnection,
        at: &EntryAddress,
        old: &str,
        new: &str,
    ) -> Result<Vec<Draft>, Error> {
        let resolved = look(connection, self.scope, at).await?;
        resolved.direct()?;
        let (body, review_by_ms) = resolved.file()?;
        if let Some(redaction) = body.redaction() {
            return Err(Error::Redacted(Box::new(redaction.clone())));
        }
        let bytes = content(connection, body).await?.unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|_| Error::NotText)?;
        let places = occurrences(&text, old);
        let [at] = places[..] else {
            return Err(resolved.conflict(connection, Some(places.len() as u64)).await?);
        };
        let text = [&text[..at], new, &text[at + old.len()..]].concat();
        Error::within("an entry (bytes)", text.len(), limits::ENTRY_BYTES_MAX)?;
        let body = Body::new(text.into_bytes(), body.executable);
        let mut draft = self.draft_at(&resolved, What::File(body));
        draft.review_by_ms = review_by_ms;
        Ok(vec![draft])
    }

    pub(crate) async fn remove(
        &self,
        connection: &mut DatabaseConnection,
        at: &EntryAddress,
        revision: u64,
    ) -> Result<Vec<Draft>, Error> {
        let resolved = look(connection, self.scope, at).await?;
        resolved.file()?;
        resolved.direct()?;
        resolved.expect(connection, EntryPrecondition::Revision(revision)).await?;
        Ok(vec![self.draft_at(&resolved, What::Gone)])
    }

    pub(crate) async fn make_folder(
        &self,
        connection: &mut DatabaseConnection,
        at: &EntryAddress,
    ) -> Result<Vec<Draft>, Error> {
        let resolved = look(connection, self.scope, at).await?;
        resolved.direct()?;
        match resolved.found {
            EntryLookup::Nothing => self.onto(connection, &resolved, What::Folder).await,
            EntryLookup::Folder | EntryLookup::File { .. } => Err(Error::Exists),
        }
    }

    pub(crate) async fn remove_folder(
        &self,
        connection: &mut DatabaseConnection,
        at: &EntryAddress,
    ) -> Result<Vec<Draft>, Error> {
        let resolved = look(connection, self.scope, at).await?;
        match resolved.found {
            EntryLookup::Nothing => return Err(Error::Absent),
            EntryLookup::File { .. } => return Err(Error::NotFolder),
            EntryLookup::Folder if at.path.is_root() => return Err(Error::Root),
            EntryLookup::Folder => resolved.direct()?,
        }
        if !resolved.is_empty(connection).await? {
            return Err(Error::NotEmpty);
        }
        Ok(vec![self.draft_at(&resolved, What::Gone)])
    }

    pub(crate) async fn revert(
        &self,
        connection: &mut DatabaseConnection,
        at: &EntryAddress,
        to: u64,
        expected: EntryPrecondition,
    ) -> Result<Vec<Draft>, Error> {
        let resolved = look(connection, self.scope, at).await?;
        resolved.direct()?;
        resolved.expect(connection, expected).await?;
        let body = old(connection, self.scope, at, to).await?;
        let mut drafts = self.onto(connection, &resolved, What::File(body)).await?;
        if let Some(draft) = drafts.last_mut() {
            draft.derived_from = Some((at.clone(), to));
        }
        Ok(drafts)
    }
}

/// An old version's file, whose content can be shared.
async fn old(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    at: &EntryAddress,
    revision: u64,
) -> Result<Body, Error> {
    const TEXT: &str =
        "SELECT content FROM versions WHERE scope = $1 AND path = $2 AND revision = $3";
    // Reading says why it can't be had.
    let read = read::read(connection, scope, at, Some(revision)).await?;
    let query =
        sql::query(TEXT).bind(at.memory_scope.to_string()).bind(at.path.as_str().to_owned());
    let row = query.bind(number(revision)).fetch_one(connection).await.map_err(wrong)?;
    let content: i64 = Columns::of(&row).take()?;
    let EntryState::File { executable, .. } = read.version.state else { return Err(Error::Absent) };
    debug_assert_eq!(read.version.kept, ContentState::Whole, "else it could not be read");
    let known = Source::Known(content);
    Ok(Body { source: known, ..Body::new(read.bytes, executable) })
}

/// Where a text is in another one, also where it overlaps itself; two places are enough to
/// know that there is not one, but how many there are is told.
fn occurrences(text: &str, part: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(part)) {
        found.push(from + at);
        let step = text[from + at..].chars().next().map_or(1, char::len_utf8);
        from += at + step;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_overlaps_itself_is_there_twice() {
        for (text, part, expected) in [
            ("aaa", "aa", vec![0, 1]),
            ("abc", "b", vec![1]),
            ("\u{e9}\u{e9}", "\u{e9}", vec![0, 2]),
            ("", "", vec![0]),
            ("a", "", vec![0, 1]),
            ("", "x", vec![]),
        ] {
            assert_eq!(occurrences(text, part), expected, "{part} in {text}");
        }
    }
}
