//! Commits that were made in a sandbox, given to the person's repository as a branch.
//!
//! Owns the judgement of them, object by object, and the three files that are written: a pack,
//! its index, and a branch of ours. What comes is hostile: a name counts by its contents, a
//! commit by what it stands on, and a path as in a patch. Runs no git, reads no setting, and
//! must never touch the work tree, the index, HEAD, or a branch that is not ours.

mod answer;
mod branch;
mod diff;
mod object;
mod pack_file;
mod problem;
mod stored;
mod work_file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use outrigger_beneath::Dir;

pub use self::answer::ObjectSet;
pub use self::branch::{Branch, BranchOutcome};
use self::diff::TreeDiff;
use self::object::CommitHeader;
pub use self::object::ObjectId;
use self::pack_file::{PackFile, io_error};
pub use self::problem::CommitProblem;
use self::stored::StoredObjects;
pub use self::work_file::WorkFile;
use crate::git::Git;
use crate::git::inside::refs;
use crate::hazard::{Grade, Hazard, hazards};
use crate::{Error, limits};

/// A person's repository that can be given commits.
#[derive(Debug)]
pub struct CommitTarget {
    git: Git,
    dir: Dir,
    refs: BTreeMap<String, Vec<u8>>,
    /// Where the person stands.
    head: Option<ObjectId>,
    /// Where the person's own history ends.
    tips: BTreeSet<ObjectId>,
    stored: StoredObjects,
}

/// What one look at a sandbox's commits came to.
#[derive(Debug)]
pub enum CommitReview {
    /// The sandbox has to be asked for these before more can be said.
    Wanted(BTreeSet<ObjectId>),
    /// It has no commit beyond the person's history.
    Nothing,
    /// They can be taken.
    Fit(NewCommits),
}

/// Commits that can be taken.
#[derive(Debug)]
pub struct NewCommits {
    tip: ObjectId,
    ids: BTreeSet<ObjectId>,
    objects: BTreeSet<ObjectId>,
    /// What in them programs run or obey by themselves.
    pub hazards: Vec<Hazard>,
    /// What the session changed and did not commit, or not as it is now.
    pub uncommitted: Vec<String>,
}

impl NewCommits {
    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ids.len()
    }
}

impl CommitTarget {
    /// The repository whose top a directory is; if it can't be given any, why.
    ///
    /// # Errors
    /// If a file of it can't be read.
    pub fn open(dir: &Path) -> Result<Result<Self, String>, Error> {
        let why = |text: &str| Ok(Err(text.to_owned()));
        let Some(git) = Git::find(dir)?.filter(|git| git.top == dir) else {
            return why("the directory is not the top of a git repository");
        };
        if let Some(unsuited) = git.unsuited() {
            return why(unsuited);
        }
        if !git.is_of_top() {
            return why("its `.git` leads to what does not know the directory as a checkout");
        }
        let Some(refs) = refs(&git)? else {
            return why("it has too many references");
        };
        let head = git.read(&git.own, "HEAD", limits::GIT_FILE_BYTES_MAX)?.unwrap_or_default();
        let head = head.trim_ascii_end();
        let named = refs.iter().filter(|(name, _)| !name.starts_with("refs/heads/outrigger/"));
        let named = named.map(|(_, value)| value.as_slice()).chain([head]);
        let (mut tips, mut is_long) = (BTreeSet::new(), false);
        for value in named {
            is_long |= value.len() == 64 && value.iter().all(u8::is_ascii_hexdigit);
            tips.extend(ObjectId::parse(value));
        }
        if is_long {
            return why("its objects are named by SHA-256, which is not supported yet");
        }
        if tips.is_empty() {
            return why("it has no commit yet");
        }
        let branch = head.strip_prefix(b"ref: ").and_then(|it| refs.get(str::from_utf8(it).ok()?));
        let head = ObjectId::parse(branch.map_or(head, Vec::as_slice));
        // A branch of ours that the person works on is theirs.
        tips.extend(head);
        let objects = git.common.dir(Path::new("objects"));
        let objects =
            objects.map_err(Error::unreadable(&git.common_place, Path::new("objects")))?;
        let stored = StoredObjects::open(objects, &git.common_place.join("objects"))?;
        let dir = Dir::open(dir).map_err(Error::directory(dir))?;
        Ok(Ok(Self { git, dir, refs, head, tips, stored }))
    }

    /// Where the person's own history ends, which is to be left out.
    #[must_use]
    pub fn known(&self) -> &BTreeSet<ObjectId> {
        &self.tips
    }

    /// Looks at what a sandbox gave, and at what the session changed. Pure, but for what is
    /// looked up in the repository: the same again, with what was wanted, goes on.
    ///
    /// # Errors
    /// If something can't be taken, with the reason; then nothing is.
    pub fn review(&self, objects: &ObjectSet, work: &[WorkFile]) -> Result<CommitReview, Error> {
        let commits = self.new_commits(objects).map_err(Error::Commits)?;
        let Some(tip) = commits.get(&objects.head) else { return Ok(CommitReview::Nothing) };
        let mut diff = TreeDiff::new(objects, &self.stored);
        let mut whole = TreeDiff::new(objects, &self.stored);
        let mut uncommitted = Vec::new();
        let mut look = || -> Result<(), CommitProblem> {
            for commit in commits.values() {
                compare(commit, &commits, objects, &mut diff)?;
            }
            // They may stand on what another session gave, which the person was told of then.
            if let Some(head) = self.head {
                let on_head = CommitHeader { parents: vec![head], ..tip.clone() };
                compare(&on_head, &commits, objects, &mut whole)?;
            }
            for file in work {
                if file.is_in(tip.tree, &mut diff)? == Some(false) {
                    uncommitted.push(file.path.clone());
                }
            }
            Ok(())
        };
        look().map_err(Error::Commits)?;
        let TreeDiff { mut wanted, reached, changes, mut refused, .. } = diff;
        wanted.extend(whole.wanted);
        if !wanted.is_empty() {
            return Ok(CommitReview::Wanted(wanted));
        }
        let (denied, mut named): (Vec<_>, Vec<_>) = hazards(Some(&self.dir), &changes)
            .into_iter()
            .partition(|hazard| hazard.grade == Grade::Refused);
        refused.extend(denied);
        let beyond = hazards(Some(&self.dir), &whole.changes);
        named.extend(beyond.into_iter().filter(|hazard| hazard.grade == Grade::Named));
        let mut paths = BTreeSet::new();
        named.retain(|hazard| paths.insert(hazard.path.clone()));
        if !refused.is_empty() {
            return Err(Error::Hazards(refused));
        }
        let ids: BTreeSet<ObjectId> = commits.keys().copied().collect();
        let all = ids.iter().chain(&reached).filter(|id| !self.stored.has(id));
        Ok(CommitReview::Fit(NewCommits {
            tip: objects.head,
            objects: all.copied().collect(),
            ids,
            hazards: named,
            uncommitted,
        }))
    }

    /// The commits from HEAD back to the person's history, which all of them must come to.
    fn new_commits(
        &self,
        objects: &ObjectSet,
    ) -> Result<BTreeMap<ObjectId, CommitHeader>, CommitProblem> {
        let (mut commits, mut next) = (BTreeMap::new(), vec![objects.head]);
        while let Some(id) = next.pop() {
            if commits.contains_key(&id) || self.tips.contains(&id) {
                continue;
            }
            if !objects.offered.contains(&id) {
                if self.stored.has(&id) {
                    continue;
                }
                return Err(CommitProblem::Missing(id));
            }
            let commit = objects.commit(&id)?.filter(|commit| commit.is_plain);
            let commit = commit.ok_or(CommitProblem::Commit(id))?;
            if commit.parents.is_empty() {
                return Err(CommitProblem::Root(id));
            }
            next.extend(&commit.parents);
            commits.insert(id, commit);
            if commits.len() > limits::COMMITS_MAX {
                let most = limits::COMMITS_MAX as u64;
                return Err(CommitProblem::TooMuch { most, what: "commits" });
            }
        }
        Ok(commits)
    }

    /// Writes commits that fit, and the branch of a session at the last of them.
    ///
    /// # Errors
    /// What the disk says. Then there is no branch, and no pack that was not there before.
    pub fn write(
        &self,
        objects: &ObjectSet,
        commits: &NewCommits,
        session: &str,
    ) -> Result<Branch, Error> {
        let place = self.git.common_place.join("objects/pack");
        let failed = |source| Error::Write { path: place.display().to_string(), source };
        let folder = self.git.common.make_dirs(Path::new("objects/pack"), 0o777);
        let folder = folder.map_err(|error| failed(io_error(error)))?;
        let packed: Vec<_> =
            commits.objects.iter().filter_map(|id| Some((*id, objects.get(id)?))).collect();
        let pack = (!packed.is_empty()).then(|| PackFile::of(&packed));
        if let Some(pack) = &pack {
            pack.write(&folder).map_err(failed)?;
        }
        let is_before = |id: &ObjectId| commits.ids.contains(id);
        let branch = branch::place(&self.git, &self.refs, (session, &commits.tip), is_before);
        if let (Err(_), Some(pack)) = (&branch, &pack) {
            pack.remove(&folder);
        }
        branch
    }
}

/// Compares a commit with its parents, as far as they are known.
fn compare(
    commit: &CommitHeader,
    new: &BTreeMap<ObjectId, CommitHeader>,
    objects: &ObjectSet,
    diff: &mut TreeDiff<'_>,
) -> Result<(), CommitProblem> {
    let mut before = Vec::new();
    for parent in &commit.parents {
        match new.get(parent).map(|it| it.tree) {
            Some(tree) => before.push(tree),
            None => match objects.commit(parent)? {
                Some(commit) => before.push(commit.tree),
                None => return diff.want(*parent),
            },
        }
    }
    diff.compare(commit.tree, before)
}
