//! Which files that are gone came back under another name, as git judges: by how much of the
//! one is in the other.

use std::collections::HashMap;

use outrigger_sandbox::EntryKind;

use crate::{Change, File, limits};

/// A file with another name than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rename<'a> {
    pub(super) from: &'a Change,
    /// How much of it is the same, of a hundred.
    pub(super) similarity: u64,
}

/// What each new file was before, by its path. Each file that is gone becomes one at most, the
/// one that is most like it.
pub(super) fn renames(changes: &[Change]) -> HashMap<&str, Rename<'_>> {
    let gone: Vec<_> = changes.iter().filter_map(|it| Some((it, side(it, false)?))).collect();
    let new: Vec<_> = changes.iter().filter_map(|it| Some((it, side(it, true)?))).collect();
    let few = gone.len().saturating_mul(new.len()) <= limits::RENAME_PAIRS_MAX;
    let mut pairs = Vec::new();
    for (from, old) in &gone {
        for (to, file) in &new {
            let similarity = match old.contents == file.contents {
                true => 100,
                false if few => similarity(&old.contents, &file.contents),
                false => 0,
            };
            if similarity >= limits::SIMILARITY_PERCENT_MIN {
                let same_name = from.path.rsplit('/').next() == to.path.rsplit('/').next();
                pairs.push((similarity, same_name, *from, to.path.as_str()));
            }
        }
    }
    // Stable: among equals the order of the paths decides.
    pairs.sort_by_key(|(similarity, same_name, ..)| std::cmp::Reverse((*similarity, *same_name)));
    let (mut renames, mut taken) = (HashMap::new(), Vec::new());
    for (similarity, _, from, to) in pairs {
        if !taken.contains(&from.path.as_str()) && !renames.contains_key(to) {
            taken.push(from.path.as_str());
            renames.insert(to, Rename { from, similarity });
        }
    }
    renames
}

/// The file that came, or the one that went. Empty ones are alike without being the same.
fn side(change: &Change, came: bool) -> Option<&File> {
    let file = match (&change.before, &change.after) {
        (None, Some(file)) if came => file,
        (Some(file), None) if !came => file,
        _ => return None,
    };
    (file.kind == EntryKind::File && !file.contents.is_empty()).then_some(file)
}

/// How many of a hundred bytes are in lines that both have.
fn similarity(old: &[u8], new: &[u8]) -> u64 {
    let (shorter, longer) = (old.len().min(new.len()), old.len().max(new.len()));
    // Then no lines can make up for it.
    if longer > limits::RENAME_BYTES_MAX
        || (shorter as u64) * 100 < longer as u64 * limits::SIMILARITY_PERCENT_MIN
    {
        return 0;
    }
    let mut lines: HashMap<&[u8], usize> = HashMap::new();
    for line in old.split_inclusive(|byte| *byte == b'\n') {
        *lines.entry(line).or_default() += 1;
    }
    let mut shared = 0;
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        if let Some(count) = lines.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            shared += line.len() as u64;
        }
    }
    shared * 100 / longer as u64
}
