//! Takes a folder in, at home or at a server.
//!
//! Writes what is new, removes what is gone; SKILL.md last, so that what is half there is not yet a
//! skill, and saying it again goes on where it ended.

use outrigger_agent::Digest;
use outrigger_api::EntryInfo;
use outrigger_skills::{SKILL_FILE, SkillFile, SkillFiles};
use serde_json::json;
use std::collections::BTreeMap;

use super::{Import, folder};
use crate::exit::{Failure, Kind, Outcome};
use crate::show::{self, Screen, Tone};

/// Where skills are kept: the store of this machine, or a server. Paths are as sessions see them.
pub(crate) trait SkillHome {
    /// What is in a folder; nothing if there is none, or it is not theirs to see.
    async fn list(&self, path: &str, recursive: bool) -> Outcome<Option<Vec<EntryInfo>>>;

    /// Whether such a file can be kept at all.
    fn takes(&self, path: &str, file: &SkillFile) -> Outcome;

    /// Writes a file in place of this revision, 0 for none. The number of the proposal, where it has
    /// to be reviewed.
    async fn write(&self, path: &str, revision: u64, file: &SkillFile) -> Outcome<Option<u64>>;

    /// Removes a file that is at this revision.
    async fn remove(&self, path: &str, revision: u64) -> Outcome<Option<u64>>;
}

pub(crate) async fn import(home: &impl SkillHome, keys: &[[u8; 32]], asked: Import) -> Outcome {
    let Import { folder: path, to, replace, output } = asked;
    let (name, files) = folder::valid(&path, keys)?;
    for (path, file) in &files {
        home.takes(path, file)?;
    }
    let (root, before) = before(home, &to, &name, replace).await?;
    let proposed = put(home, &root, &files, &before).await?;
    let digest = Digest::from_sha256(outrigger_skills::digest(&files));
    if output.json.is_some() {
        return show::line(
            &json!({ "type": "imported", "path": root, "digest": digest, "proposals": proposed }),
        );
    }
    let text = match proposed.as_slice() {
        [] => format!("● {root} has {}; {digest}", show::count(files.len() as u64, "file")),
        some => format!(
            "● {} proposed: `outrigger memory proposals ls` lists what waits",
            show::count(some.len() as u64, "file")
        ),
    };
    Screen::new(output).note(Tone::Good, text);
    Ok(())
}

/// The folder of a skill in a memory scope that somebody names, and the files that are there, by
/// their paths in it.
async fn before(
    home: &impl SkillHome,
    to: &str,
    name: &str,
    replace: bool,
) -> Outcome<(String, BTreeMap<String, EntryInfo>)> {
    let top = match to {
        "user" | "organisation" => format!("/skills/{to}"),
        group => format!("/skills/group/{}", group.strip_prefix("group/").unwrap_or(group)),
    };
    let beside = home.list(&top, false).await?.ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("there is no memory scope `{to}` for you"))
            .hint("`user`, `organisation`, or the name of a group that you are in.")
    })?;
    let root = format!("{top}/{name}");
    if !beside.iter().any(|it| it.path == root) {
        return Ok((root, BTreeMap::new()));
    }
    if !replace {
        return Err(Failure::new(Kind::Conflict, format!("{root} is there already"))
            .hint("`--replace` lets the new one take its place; the old versions stay."));
    }
    let found = home.list(&root, true).await?.unwrap_or_default();
    let files = found.into_iter().filter(|it| !it.folder).filter_map(|it| {
        let within = it.path.strip_prefix(&root)?.strip_prefix('/')?.to_owned();
        Some((within, it))
    });
    let files = files.collect();
    Ok((root, files))
}

async fn put(
    home: &impl SkillHome,
    root: &str,
    files: &SkillFiles,
    before: &BTreeMap<String, EntryInfo>,
) -> Outcome<Vec<u64>> {
    let mut proposed = Vec::new();
    for (path, it) in before.iter().filter(|(path, _)| !files.contains_key(*path)) {
        proposed.extend(home.remove(&format!("{root}/{path}"), it.revision).await?);
    }
    let last = |path: &str| path.eq_ignore_ascii_case(SKILL_FILE);
    let (heads, rest): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| last(path));
    for (path, file) in rest.into_iter().chain(heads) {
        let there = before.get(path);
        if !there.is_some_and(|there| is_same(there, file)) {
            let revision = there.map_or(0, |there| there.revision);
            proposed.extend(home.write(&format!("{root}/{path}"), revision, file).await?);
        }
    }
    Ok(proposed)
}

fn is_same(there: &EntryInfo, file: &SkillFile) -> bool {
    let digest = Digest::of(&file.bytes);
    there.digest.as_deref() == Some(digest.as_str()) && there.executable == file.executable
}
