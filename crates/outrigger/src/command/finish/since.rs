//! Changes that are written back more than once while a session goes on.

use outrigger_repository::Change;
use std::collections::BTreeMap;

/// The changes as they are beyond what was written back.
pub(crate) fn since(applied: &[Vec<Change>], changes: Vec<Change>) -> Vec<Change> {
    let mut there: BTreeMap<String, Change> = BTreeMap::new();
    for change in applied.iter().flatten() {
        let before = there.get(&change.path).map_or(&change.before, |known| &known.before).clone();
        there.insert(change.path.clone(), Change { before, ..change.clone() });
    }
    let mut left = Vec::new();
    for mut change in changes {
        if let Some(known) = there.remove(&change.path) {
            change.before = known.after;
        }
        if change.before != change.after {
            left.push(change);
        }
    }
    // What was changed back in the sandbox is changed back here.
    left.extend(
        there.into_values().filter(|known| known.before != known.after).map(|known| Change {
            path: known.path,
            before: known.after,
            after: known.before,
        }),
    );
    left
}
