//! What a session committed in its sandbox, as a branch of the person's repository.
//!
//! Owns that git in the sandbox is asked for objects until all that the judgement needs is there,
//! or one limit is reached. Whether they fit is judged in `repository`, and no git runs on this
//! machine.

use outrigger_agent::SessionId;
use outrigger_api::ReadObjects;
use outrigger_repository::{
    Branch, BranchOutcome, Change, CommitReview, CommitTarget, Error, Hazard, NewCommits, ObjectId,
    ObjectSet, WorkFile,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use crate::exit::{Failure, Kind, Outcome};
use crate::show::{self, Screen, Tone};
use crate::{limits, repository};

/// A branch that was made, and how much of the work is in it.
#[derive(Debug)]
pub(crate) struct CommittedWork {
    branch: Branch,
    commits: usize,
    /// What programs run or obey by themselves, once it is checked out.
    hazards: Vec<Hazard>,
    /// Paths that changed and are not in it as they are now.
    uncommitted: Vec<String>,
}

/// Makes the branch of what `ask` gives of the sandbox, and says so. Nothing, and a line for the
/// person, if there is nothing to make it of.
pub(crate) async fn give(
    session: &SessionId,
    ask: impl AsyncFn(ReadObjects) -> Outcome<Vec<u8>>,
    (dir, changes): (&Path, &[Change]),
    screen: &Screen,
) -> Outcome<Option<CommittedWork>> {
    let target = CommitTarget::open(dir).map_err(|error| repository::failed(dir, &error))?;
    let target = match target {
        Ok(target) => target,
        Err(why) => {
            let text = format!("! no branch was made: {why}");
            screen.note(Tone::Warning, text);
            return Ok(None);
        }
    };
    let work: Vec<WorkFile> = changes.iter().map(WorkFile::of).collect();
    let Some((objects, commits)) = taken(ask, &target, &work, dir).await? else {
        let text = "no branch was made: the sandbox has no commit that your history has not";
        screen.note(Tone::Detail, text);
        return Ok(None);
    };
    for text in show::warnings("in the commits: ", &commits.hazards) {
        screen.note(Tone::Warning, text);
    }
    let branch = target.write(&objects, &commits, session.as_str());
    let branch = branch.map_err(|error| repository::failed(dir, &error))?;
    let count = commits.count();
    let NewCommits { hazards, uncommitted, .. } = commits;
    let made = CommittedWork { branch, commits: count, hazards, uncommitted };
    made.tell(screen);
    Ok(Some(made))
}

impl CommittedWork {
    /// For programs.
    pub(super) fn object(&self) -> serde_json::Value {
        let (name, commits) = (&self.branch.name, self.commits);
        let hazard = |it: &Hazard| json!({ "path": it.path, "why": it.why });
        let hazards: Vec<_> = self.hazards.iter().map(hazard).collect();
        json!({ "name": name, "commits": commits, "hazards": hazards, "uncommitted": self.uncommitted })
    }

    /// Says what came back, and what did not.
    fn tell(&self, screen: &Screen) {
        let Branch { name, outcome } = &self.branch;
        let commits = show::count(self.commits as u64, "commit");
        let text = match outcome {
            BranchOutcome::Created => format!("● {commits} on the new branch {name}"),
            BranchOutcome::Moved => format!("● {commits} on the branch {name}, which went forward"),
            BranchOutcome::Unchanged => format!("● {commits} on the branch {name}, as before"),
        };
        screen.note(Tone::Good, text);
        screen.note(Tone::Detail, format!("look at them with: git log -p HEAD..{name}"));
        if let Some(text) = rest(&self.uncommitted) {
            screen.note(Tone::Warning, text);
        }
    }
}

/// What is not in a branch, in a line.
fn rest(paths: &[String]) -> Option<String> {
    let (told, more) = paths.split_at(paths.len().min(limits::UNCOMMITTED_TOLD_MAX));
    let files = match paths.len() {
        0 => return None,
        1 => "1 file is not committed as it stands".to_owned(),
        count => format!("{count} files are not committed as they stand"),
    };
    // A name could have anything in it, a line break too.
    let list = told.join(", ").escape_debug().to_string();
    let more = if more.is_empty() { "" } else { ", …" };
    Some(format!("! {files}, and in the patch alone: {list}{more}"))
}

/// The commits, if there are any, with all objects that were needed to judge them.
async fn taken(
    ask: impl AsyncFn(ReadObjects) -> Outcome<Vec<u8>>,
    target: &CommitTarget,
    work: &[WorkFile],
    dir: &Path,
) -> Outcome<Option<(ObjectSet, NewCommits)>> {
    let refused = |error: Error| repository::failed(dir, &error);
    let begun = Instant::now();
    let first = ask(ReadObjects { known: names(target.known()), ..ReadObjects::default() }).await?;
    // No repository, no commit in it, or no git.
    if first.is_empty() {
        return Ok(None);
    }
    let mut objects = ObjectSet::first(&first).map_err(|it| refused(Error::Commits(it)))?;
    for _ in 0..limits::COMMIT_ROUNDS_MAX {
        match target.review(&objects, work).map_err(refused)? {
            CommitReview::Nothing => return Ok(None),
            CommitReview::Fit(commits) => return Ok(Some((objects, commits))),
            CommitReview::Wanted(wanted) => {
                if begun.elapsed().as_millis() > u128::from(limits::COMMITS_MS_MAX) {
                    break;
                }
                let asked = ReadObjects { objects: names(&wanted), ..ReadObjects::default() };
                let more = ask(asked).await?;
                objects.add(&more).map_err(|it| refused(Error::Commits(it)))?;
            }
        }
    }
    let text = "git in the sandbox did not give what it was asked for";
    Err(Failure::new(Kind::Denied, text).hint("All changes are in the patch."))
}

fn names(ids: &BTreeSet<ObjectId>) -> Vec<String> {
    ids.iter().map(ObjectId::to_string).collect()
}
