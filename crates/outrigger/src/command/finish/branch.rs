//! What a session committed in its sandbox, as a branch of the person's repository.
//!
//! Owns the conversation with git in the sandbox, which is asked for objects until all that the
//! judgement needs is there, or one limit is reached. Whether they fit is judged in
//! `repository`, and no git runs on this machine.

use outrigger_agent::SessionId;
use outrigger_repository::{
    Branch, BranchOutcome, Change, CommitReview, CommitTarget, Error, Hazard, NewCommits,
    ObjectSet, WorkFile,
};
use outrigger_sandbox::{Command, End, ExecId, Execute, Sandbox};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

use crate::exit::{Failure, Kind, Outcome};
use crate::show::{self, Screen, Tone};
use crate::{limits, repository};

/// HEAD, and the objects that it has beyond those on standard input.
const FIRST: &str = "git rev-parse --quiet --verify 'HEAD^{commit}' && git rev-list --objects \
    --no-object-names --ignore-missing --stdin HEAD | git cat-file --batch";
/// The objects on standard input.
const MORE: &str = "git cat-file --batch";

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

/// Makes the branch. Nothing, and a line for the person, if there is nothing to make it of.
pub(super) async fn give(
    session: &SessionId,
    sandbox: Option<&dyn Sandbox>,
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
    let taken = match sandbox {
        Some(sandbox) => taken(sandbox, &target, &work, dir).await?,
        None => None,
    };
    let Some((objects, commits)) = taken else {
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
    Ok(Some(CommittedWork { branch, commits: count, hazards, uncommitted }))
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
    pub(super) fn tell(&self, screen: &Screen) {
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
    sandbox: &dyn Sandbox,
    target: &CommitTarget,
    work: &[WorkFile],
    dir: &Path,
) -> Outcome<Option<(ObjectSet, NewCommits)>> {
    let refused = |error: Error| repository::failed(dir, &error);
    let begun = Instant::now();
    let first = asked(sandbox, FIRST, target.known(), begun).await?;
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
                let wanted: String = wanted.iter().map(|id| format!("{id}\n")).collect();
                let more = asked(sandbox, MORE, wanted.into_bytes(), begun).await?;
                objects.add(&more).map_err(|it| refused(Error::Commits(it)))?;
            }
        }
    }
    let text = "git in the sandbox did not give what it was asked for";
    Err(Failure::new(Kind::Denied, text).hint("All changes are in the patch."))
}

/// What git in the sandbox prints for a line. All questions since `begun` have one deadline.
async fn asked(
    sandbox: &dyn Sandbox,
    line: &str,
    stdin: Vec<u8>,
    begun: Instant,
) -> Outcome<Vec<u8>> {
    let id = format!("commits-{}", uuid::Uuid::new_v4().simple());
    let id = ExecId::new(id).map_err(|error| failed(&error))?;
    // What has no end ends there; without that it would go on until the deadline.
    let end = limits::COMMITS_OUTPUT_BYTES_MAX + 1;
    let line = format!("{{ {line}; }} | head -c {end}");
    let mut request = Execute::new(id, Command::Shell(line));
    request.stdin = stdin;
    let passed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    request.deadline_ms = limits::COMMITS_MS_MAX.saturating_sub(passed_ms).max(1);
    request.stdout_bytes_max = limits::COMMITS_OUTPUT_BYTES_MAX;
    request.stderr_bytes_max = 0;
    let done = sandbox.execute(request, &()).await.map_err(|error| failed(&error))?;
    let mib = limits::COMMITS_OUTPUT_BYTES_MAX >> 20;
    let text = match (done.end, done.stdout_dropped_bytes) {
        (End::Exited(_), 0) => return Ok(done.stdout),
        (End::Exited(_), _) => format!("the commits of the sandbox have more than {mib} MiB"),
        (End::Deadline, _) => {
            let seconds = limits::COMMITS_MS_MAX / 1_000;
            format!("git in the sandbox did not give its commits within {seconds} s")
        }
        _ => "git in the sandbox was killed while it gave its commits".to_owned(),
    };
    Err(Failure::new(Kind::Denied, text).hint("No branch was made. All changes are in the patch."))
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::from_error(Kind::SandboxUnavailable, error)
}
