//! Here-documents: their texts stand behind the line that announces them.
//!
//! Owns those that were announced and not read yet. What would run inside of one is not
//! followed.

use super::cursor::{Cursor, Unread};
use crate::limits::DOCUMENTS_MAX;

/// A here-document whose text begins after the next line break.
pub(super) struct HereDocument {
    /// The line that ends it.
    pub(super) end: String,
    /// Whether tabs before that line are left out.
    pub(super) tabs: bool,
    /// Whether its text is taken as it stands.
    pub(super) quoted: bool,
}

/// The here-documents whose texts are still to come, in order.
#[derive(Default)]
pub(super) struct HereDocuments(Vec<HereDocument>);

impl HereDocuments {
    /// Whether every text was read.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One more is announced.
    pub(super) fn announce(&mut self, document: HereDocument) -> Result<(), Unread> {
        if self.0.len() == DOCUMENTS_MAX {
            return Err(Unread);
        }
        self.0.push(document);
        Ok(())
    }

    /// Reads the texts of all that were announced, after a line break.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Unread> {
        std::mem::take(&mut self.0).into_iter().try_for_each(|document| document.read(cursor))
    }
}

impl HereDocument {
    fn read(&self, cursor: &mut Cursor<'_>) -> Result<(), Unread> {
        loop {
            let rest = cursor.rest();
            let (line, next) = match rest.find('\n') {
                Some(end) => (&rest[..end], end + 1),
                None => (rest, rest.len()),
            };
            if line == self.end || (self.tabs && line.trim_start_matches('\t') == self.end) {
                // The line break is the separator of what follows.
                cursor.skip(line.len());
                return Ok(());
            }
            // What runs inside of it is not followed.
            if !self.quoted
                && (line.contains("$(")
                    || line.contains('`')
                    || line.contains("${")
                    || line.contains("$[")
                    || line.ends_with('\\'))
            {
                return Err(Unread);
            }
            if rest.is_empty() {
                return Err(Unread);
            }
            cursor.skip(next);
        }
    }
}
