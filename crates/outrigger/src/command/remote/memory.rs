//! `outrigger memory` at a server.

use outrigger_api::{
    AnswerProposal, ChangedEntry, CommentProposal, DerivedVersions, EntryBlame, EntryContent,
    EntryDiff, EntryHistory, EntryHits, EntryList, EntryVersion, EntryVersionState, ProblemCode,
    ProposalAnswer, ProposalDetails, ProposalInfo, ProposalList, RedactEntry, RedactedEntry,
    RevertEntry, WriteEntry,
};
use outrigger_client::{Error, SeenRevision, with_query};
use serde_json::json;

use super::connection::{Remote, not_there};
use crate::command::memory::edit::{EditedFile, Written, edit};
use crate::command::memory::print::{
    print_blame, print_changed, print_contents, print_decided, print_diff, print_entries,
    print_history, print_hits, print_proposal, print_proposals, print_proposed,
};
use crate::command::memory::{Memory, Proposals, given};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::show::{self, Screen, Tone, inert};

pub(super) async fn execute(remote: &Remote, asked: Memory) -> Outcome<u8> {
    let (client, output) = (&remote.client, asked.output());
    match asked {
        Memory::Ls { path, recursive, .. } => {
            let path = path.as_deref().map(place);
            let mut query = vec![("recursive", if recursive { "true" } else { "false" })];
            query.extend(path.as_deref().map(|path| ("path", path)));
            let found: EntryList = client.get(&with_query("/v1/memory", &query)).await?;
            print_entries(&found.data, "nothing is there yet", output)?;
        }
        Memory::Cat { at, revision, .. } => {
            let (version, text) = content(remote, &place(&at.path), revision).await?;
            print_contents(&version, text.into_bytes(), output)?;
        }
        Memory::Edit { at, message, .. } => {
            let keys = Config::of_files(remote.paths.configs())?.notify.keys;
            let file = RemoteFile { remote, path: place(&at.path) };
            edit(&file, (message, &keys), output).await?;
        }
        Memory::Put { review_in: Some(_), .. } => return Err(not_there("--review-in")),
        Memory::Put { at, from, replaces, message, .. } => {
            let path = place(&at.path);
            let text = text_of(&path, given(from.as_deref())?)?;
            let seen = replaces.map_or(SeenRevision::Nothing, SeenRevision::At);
            let said = WriteEntry { text, message, executable: None };
            tell(&client.put_over(&at_content(&path), seen, &said).await?, output)?;
        }
        Memory::Rm { at, .. } => {
            let path = place(&at.path);
            let (version, _) = content_as_it_is(remote, &path, None).await?;
            let seen = SeenRevision::At(version.revision);
            tell(&client.delete_seen(&at_content(&path), seen).await?, output)?;
        }
        Memory::History { at, .. } => {
            let path = place(&at.path);
            let versions = history(remote, &path).await?;
            print_history(&path, &versions, |_| String::new(), output)?;
        }
        Memory::Diff { at, from, to, .. } => {
            let numbers = [("from", from), ("to", to)];
            let path = of_versions("/v1/memory/diff", &place(&at.path), &numbers);
            print_diff(&client.get::<EntryDiff>(&path).await?, output)?;
        }
        Memory::Blame { at, .. } => {
            let path = with_query("/v1/memory/blame", &[("path", &place(&at.path))]);
            print_blame(&client.get::<EntryBlame>(&path).await?, output)?;
        }
        Memory::Revert { at, to, .. } => revert(remote, place(&at.path), to, output).await?,
        Memory::Search { words, limit, .. } => {
            let (words, limit) = (words.join(" "), limit.to_string());
            let query = [("words", words.as_str()), ("limit", &limit)];
            let found: EntryHits = client.get(&with_query("/v1/memory/search", &query)).await?;
            print_hits(&found.data, output)?;
        }
        Memory::Proposals(asked) => proposals(remote, asked, output).await?,
        Memory::Redact { at, revision, derived, why, .. } => {
            let (path, derived) = (place(&at.path), derived.map(DerivedVersions::from));
            redact(remote, RedactEntry { path, revision, derived, why }, output).await?;
        }
        Memory::Prune { .. } | Memory::Stale { .. } | Memory::Scope(_) => {
            return Err(not_there("this command of `memory`"));
        }
    }
    Ok(0)
}

async fn proposals(remote: &Remote, asked: Proposals, output: Output) -> Outcome {
    let client = &remote.client;
    let (number, answer, reason, what) = match asked {
        Proposals::Ls { all, .. } => {
            let found: ProposalList = client.get(&format!("/v1/proposals?all={all}")).await?;
            return print_proposals(&found.data, output);
        }
        Proposals::Show { number, .. } => {
            let found: ProposalDetails = client.get(&format!("/v1/proposals/{number}")).await?;
            return print_proposal(&found, output);
        }
        Proposals::Comment { number, text, .. } => {
            let path = format!("/v1/proposals/{number}/comments");
            let _: ProposalDetails = client.post(&path, &CommentProposal { text }).await?;
            return print_decided(number, "commented", output);
        }
        Proposals::Accept { number, .. } => {
            (number, ProposalAnswer::Accept, String::new(), "accepted")
        }
        Proposals::Reject { number, reason, .. } => {
            (number, ProposalAnswer::Reject, reason, "rejected")
        }
        Proposals::Withdraw { number, .. } => {
            (number, ProposalAnswer::Withdraw, String::new(), "withdrawn")
        }
    };
    let said = AnswerProposal { answer, reason };
    let _: ProposalInfo = client.post(&format!("/v1/proposals/{number}"), &said).await?;
    print_decided(number, what, output)
}

/// A path as sessions see it. One without a slash before it is one of the person's own.
fn place(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/memory/user/{path}") }
}

/// Where something is asked about versions of a file.
fn of_versions(address: &str, path: &str, numbers: &[(&str, Option<u64>)]) -> String {
    let said = numbers.iter().filter_map(|(name, number)| Some((*name, (*number)?.to_string())));
    let said: Vec<(&str, String)> = said.collect();
    let mut query = vec![("path", path)];
    query.extend(said.iter().map(|(name, number)| (*name, number.as_str())));
    with_query(address, &query)
}

pub(super) fn at_content(path: &str) -> String {
    with_query("/v1/memory/content", &[("path", path)])
}

fn text_of(path: &str, bytes: Vec<u8>) -> Outcome<String> {
    String::from_utf8(bytes).map_err(|_| no_text(path))
}

pub(super) fn no_text(path: &str) -> Failure {
    Failure::new(Kind::Usage, format!("{path}: it is no text, and a server takes and gives text"))
}

/// A version of a file, and what it says.
async fn content(
    remote: &Remote,
    path: &str,
    revision: Option<u64>,
) -> Outcome<(EntryVersion, String)> {
    let (version, text) = content_as_it_is(remote, path, revision).await?;
    Ok((version, text.ok_or_else(|| no_text(path))?))
}

async fn content_as_it_is(
    remote: &Remote,
    path: &str,
    revision: Option<u64>,
) -> Result<(EntryVersion, Option<String>), Error> {
    let path = of_versions("/v1/memory/content", path, &[("revision", revision)]);
    let read: EntryContent = remote.client.get(&path).await?;
    Ok((read.version, read.text))
}

/// All versions of a file, newest first.
async fn history(remote: &Remote, path: &str) -> Outcome<Vec<EntryVersion>> {
    let mut versions: Vec<EntryVersion> = Vec::new();
    loop {
        let before = versions.last().map(|last| last.revision);
        let page = of_versions("/v1/memory/history", path, &[("before", before)]);
        let EntryHistory { data, more } = remote.client.get(&page).await?;
        let is_last = !more || data.is_empty();
        versions.extend(data);
        if is_last {
            return Ok(versions);
        }
    }
}

async fn revert(remote: &Remote, path: String, to: u64, output: Output) -> Outcome {
    let newest = history(remote, &path).await?.into_iter().next();
    let newest = newest.filter(|it| it.state != EntryVersionState::Removed);
    let seen = newest.map_or(SeenRevision::Nothing, |it| SeenRevision::At(it.revision));
    let said = RevertEntry { path, to };
    tell(&remote.client.post_over("/v1/memory/revert", seen, &said).await?, output)
}

/// Destroys, and asks about what is no copy and still has a part of it.
async fn redact(remote: &Remote, mut asked: RedactEntry, output: Output) -> Outcome {
    let screen = Screen::new(output);
    let answer = remote.client.post("/v1/memory/redact", &asked).await;
    let made: RedactedEntry = match answer {
        Err(Error::Problem(problem))
            if problem.code == ProblemCode::Conflict
                && asked.derived.is_none()
                && screen.can_ask() =>
        {
            screen.note(Tone::Warning, format!("! {}", inert(&problem.detail)));
            for hint in &problem.hints {
                screen.note(Tone::Plain, format!("  {}", inert(hint)));
            }
            let destroy = screen.ask("Destroy these as well? If not, they are left.").await?;
            asked.derived =
                Some(if destroy { DerivedVersions::Destroy } else { DerivedVersions::Leave });
            remote.client.post("/v1/memory/redact", &asked).await?
        }
        answer => answer?,
    };
    let RedactedEntry { data, unseen, lingers, proposal } = made;
    match proposal {
        Some(number) => print_proposed(number, &asked.path, output),
        None => print_changed(&data, (unseen, lingers), output),
    }
}

/// Says what a change made.
fn tell(made: &ChangedEntry, output: Output) -> Outcome {
    let ChangedEntry { path, revision, proposal } = made;
    if let Some(number) = proposal {
        return print_proposed(*number, path, output);
    }
    if output.json.is_some() {
        let version = json!({ "path": path, "revision": revision });
        let versions = [version];
        return show::line(
            &json!({ "type": "changed", "versions": versions, "unseen": 0, "lingers": false }),
        );
    }
    let said = match revision {
        Some(revision) => format!("● {path} is at revision {revision}"),
        None => format!("● {path} changed"),
    };
    Screen::new(output).note(Tone::Good, said);
    Ok(())
}

/// A file of a server's memory.
pub(super) struct RemoteFile<'a> {
    pub(super) remote: &'a Remote,
    pub(super) path: String,
}

impl EditedFile for RemoteFile<'_> {
    fn path(&self) -> String {
        self.path.clone()
    }

    async fn current(&self) -> Outcome<(u64, Vec<u8>)> {
        match content_as_it_is(self.remote, &self.path, None).await {
            Ok((version, Some(text))) => Ok((version.revision, text.into_bytes())),
            Ok((_, None)) => Err(no_text(&self.path)),
            Err(Error::Problem(problem)) if problem.code == ProblemCode::NotFound => {
                Ok((0, Vec::new()))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn write(&self, base: u64, text: Vec<u8>, message: Option<String>) -> Outcome<Written> {
        let seen = if base == 0 { SeenRevision::Nothing } else { SeenRevision::At(base) };
        let said = WriteEntry { text: text_of(&self.path, text)?, message, executable: None };
        match self.remote.client.put_over(&at_content(&self.path), seen, &said).await {
            Ok(ChangedEntry { proposal: Some(number), .. }) => Ok(Written::Proposed(number)),
            Ok(ChangedEntry { revision, .. }) => Ok(Written::Revision(revision.unwrap_or(base))),
            Err(Error::Problem(problem)) if problem.code == ProblemCode::PreconditionFailed => {
                Ok(Written::Conflict)
            }
            Err(error) => Err(error.into()),
        }
    }
}
