//! A version of an entry, as programs and people read it.

use outrigger_engine::path_of;
use outrigger_policy::Principal;
use outrigger_store::entries::{Version, Via};
use serde_json::{Value, json};

/// A version as programs read it.
pub(super) fn version(version: &Version) -> Value {
    use outrigger_store::entries::{ContentState, EntryState};
    let (state, digest) = match &version.state {
        EntryState::File { digest, .. } => ("file", Some(digest)),
        EntryState::Folder => ("folder", None),
        EntryState::Gone => ("removed", None),
    };
    let redacted = match &version.kept {
        ContentState::Redacted(redaction) => json!(redaction),
        ContentState::Whole | ContentState::Pruned => Value::Null,
    };
    json!({
        "path": path_of(&version.place),
        "revision": version.revision,
        "state": state,
        "digest": digest,
        "author": version.author,
        "via": version.by.via,
        "at_ms": version.by.at_ms,
        "agent": version.by.agent,
        "session": version.by.session,
        "seq": version.by.seq,
        "labels": version.by.labels,
        "message": version.by.message,
        "accepted_by": version.accepted_by,
        "kept": !matches!(version.kept, ContentState::Pruned),
        "redacted": redacted,
    })
}

/// Who wrote a version and through what, in a few words.
pub(super) fn written(version: &Version) -> String {
    let by = &version.by;
    let through = match (&by.session, by.via) {
        (Some(session), Via::Sandbox) => format!(" in a sandbox of session {session}"),
        (Some(session), _) => format!(" in session {session}"),
        (None, Via::Import) => " by import".to_owned(),
        (None, _) => String::new(),
    };
    format!("{}{through}", who(&version.author, by.agent.as_deref()))
}

/// Who wrote something: the agent, where one acted for a person.
pub(super) fn who(author: &Principal, agent: Option<&str>) -> String {
    match agent {
        Some(agent) => format!("{agent} for {author}"),
        None => author.to_string(),
    }
}
