//! The entries that a session sees, as a tree.

use async_trait::async_trait;
use outrigger_agent::{EntryChange, Seq};
use outrigger_policy::{MemoryKind, Scope};
use outrigger_sandbox::{
    ExpectedRevision, FileError, FileErrorKind, Node, Tree, TreeEntry, TreeOp, TreeReply,
};
use outrigger_store::entries::{
    Attribution, ChangeRequest, Entries, EntryAddress, EntryFile, EntryPath, EntryPrecondition,
    EntryStat, EntryState, Error as EntryError, NewProposal, Reviews, Via,
};
use outrigger_tools::namespace::{SeenRevisions, canonical};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::{absent, error, refusal};
use super::labels::SessionLabels;
use super::recorder::{self, MemoryRecorder};
use super::rights::{Act, Judgement, Right};
use super::scope::{self, ResolvedPath};
use crate::limits;

/// What a program is told that reaches for what a person has to be asked about.
const ASKS: &str = "a person has to be asked: write it with a file tool, which asks";
/// What a tool is told where the rules began to ask after it was begun.
const ASKS_NOW: &str = "a person has to be asked by now: call again, which asks";
/// What a program is told that writes to a memory scope that needs reviews.
const REVIEWED: &str = "changes of it are reviewed: write it with a file tool, which proposes it";

/// The entries that a session sees. One for all its sandboxes and tools.
#[derive(Debug)]
pub(crate) struct MemoryTree {
    pub(super) entries: Arc<dyn Entries>,
    reviews: Arc<dyn Reviews>,
    pub(super) scope: Scope,
    pub(super) labels: SessionLabels,
    /// Those of the last effects: the next one mostly knows nothing else.
    judgements: Mutex<Vec<Arc<Judgement>>>,
    recorder: Mutex<MemoryRecorder>,
    /// What its tools have read.
    pub(crate) seen: Arc<SeenRevisions>,
}

/// Where an operation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A program in a sandbox.
    Sandbox,
    /// A file tool, by the effect that was granted.
    Tool(Seq),
    /// Nobody's of the session: a person looks at what an effect would change.
    Preview,
}

/// The tree for one origin.
#[derive(Debug)]
pub(crate) struct MemoryView {
    pub(crate) tree: Arc<MemoryTree>,
    origin: Origin,
    judgement: Arc<Judgement>,
    /// The labels of what a tool looked through and showed nobody yet, by path.
    looked: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryTree {
    /// The tree of a session, as its person sees it.
    pub(super) fn new(
        entries: &Arc<dyn Entries>,
        reviews: &Arc<dyn Reviews>,
        scope: Scope,
        labels: SessionLabels,
    ) -> Self {
        Self {
            entries: Arc::clone(entries),
            reviews: Arc::clone(reviews),
            scope,
            labels,
            judgements: Mutex::default(),
            recorder: Mutex::default(),
            seen: Arc::default(),
        }
    }

    /// The tree for one origin, whose paths are judged like that.
    pub(super) fn view(self: &Arc<Self>, origin: Origin, judgement: Judgement) -> MemoryView {
        let tree = Arc::clone(self);
        let mut kept = locked(&self.judgements);
        let known = kept.iter().find(|known| known.is_same(&judgement)).map(Arc::clone);
        let judgement = known.unwrap_or_else(|| {
            let new = Arc::new(judgement);
            kept.truncate(limits::JUDGEMENTS_MAX - 1);
            kept.insert(0, Arc::clone(&new));
            new
        });
        MemoryView { tree, origin, judgement, looked: Mutex::default() }
    }

    /// What happened since this was asked last.
    pub(super) fn take(&self) -> MemoryRecorder {
        std::mem::take(&mut *locked(&self.recorder))
    }

    /// What programs did under an earlier driver, after it had looked last, is this one's to
    /// tell. The labels of what they read are in the journal.
    pub(super) fn take_over(&self, before: &Self) {
        let MemoryRecorder { refused, unseen, more, changed, labels: _ } = before.take();
        let mut recorder = locked(&self.recorder);
        recorder.refused.extend(refused);
        recorder.unseen.extend(unseen);
        recorder.more += more;
        recorder.changed |= changed;
    }

    /// What the session wrote behind a version of the store. What is too much at once is left
    /// to be told.
    pub(super) async fn unnoted(&self, mut after: u64) -> Result<Vec<EntryChange>, EntryError> {
        let mut changes: Vec<EntryChange> = Vec::new();
        while changes.len() < limits::TOUCHED_CHANGES_MAX {
            let versions = self.entries.changes_of(&self.labels.session, after).await?;
            let Some(last) = versions.last() else { return Ok(changes) };
            after = last.number;
            changes.extend(versions.iter().map(recorder::change));
        }
        self.changed();
        Ok(changes)
    }

    /// There is more to be told.
    pub(super) fn changed(&self) {
        locked(&self.recorder).changed = true;
    }

    /// Whether an effect of the session wrote at a path, and a crash hid it.
    pub(crate) async fn wrote(&self, path: &str, effect: Seq) -> bool {
        let Ok(ResolvedPath::At(place)) =
            canonical(path).map(|path| scope::resolve(&path, &self.scope))
        else {
            return false;
        };
        let history = self.entries.history(&self.scope, &place, None).await;
        let session = Some(&self.labels.session);
        let ours = |by: &Attribution| by.session.as_ref() == session && by.seq == Some(effect);
        history.is_ok_and(|versions| versions.iter().any(|version| ours(&version.by)))
    }
}

/// A folder that is always there, and that nobody changes.
const FIXED: Node = Node {
    folder: true,
    bytes: 0,
    revision: 0,
    modified_ms: 0,
    writable: false,
    executable: false,
};

impl MemoryView {
    fn right(&self, act: Act, path: &str) -> Right {
        let labels = &self.tree.labels;
        self.judgement.of(act, path, &labels.all(), labels.clock.now_ms())
    }

    /// Why a path is not seen, if it is not.
    pub(super) fn unseen(&self, path: &str) -> Option<String> {
        match self.right(Act::Read, path) {
            Right::Permitted => None,
            Right::Asked => Some("a person has to be asked before it is read".to_owned()),
            Right::Forbidden(why) => Some(format!("the rules forbid to read it. {why}")),
        }
    }

    fn node(&self, path: &str, node: &EntryStat) -> Node {
        Node {
            folder: node.folder,
            bytes: node.bytes,
            // Trees have none for folders.
            revision: if node.folder { 0 } else { node.revision },
            modified_ms: node.modified_ms,
            writable: self.may_write(path).is_ok(),
            executable: node.executable,
        }
    }

    /// What the rules say of a change. What was asked about the effect of a tool counts for
    /// all that it does; a program can't be waited for.
    pub(super) fn may_write(&self, path: &str) -> Result<(), FileError> {
        let denied = |detail: &str| error(FileErrorKind::PermissionDenied, path, detail);
        match (self.right(Act::Write, path), self.origin) {
            (Right::Permitted, _) => Ok(()),
            (Right::Asked, Origin::Tool(_)) => Err(denied(ASKS_NOW)),
            (Right::Asked, Origin::Sandbox | Origin::Preview) => Err(denied(ASKS)),
            (Right::Forbidden(why), _) => Err(denied(&format!("the rules forbid it. {why}"))),
        }
    }

    /// What these labels are on is about to be used.
    pub(super) async fn learn(
        &self,
        path: &str,
        labels: &BTreeSet<String>,
    ) -> Result<(), FileError> {
        if labels.is_empty() {
            return Ok(());
        }
        let learnt = self.tree.labels.learn(labels).await;
        learnt.map_err(|failed| refusal(path, EntryError::Store(failed)))?;
        locked(&self.tree.recorder).labels.extend(labels.iter().cloned());
        Ok(())
    }

    /// Something was read, or its name: a program has it at once, a tool shows it or not.
    async fn came_upon(&self, path: &str, labels: BTreeSet<String>) -> Result<(), FileError> {
        match self.origin {
            Origin::Sandbox => self.learn(path, &labels).await,
            Origin::Tool(_) if labels.is_empty() => Ok(()),
            Origin::Tool(_) => {
                locked(&self.looked).entry(path.to_owned()).or_default().extend(labels);
                Ok(())
            }
            Origin::Preview => Ok(()),
        }
    }

    fn by(&self) -> Attribution {
        let (via, seq) = match self.origin {
            Origin::Sandbox | Origin::Preview => (Via::Sandbox, None),
            Origin::Tool(seq) => (Via::Tool, Some(seq)),
        };
        Attribution {
            via,
            at_ms: self.tree.labels.clock.now_ms(),
            agent: Some(self.judgement.agent().to_owned()),
            session: Some(self.tree.labels.session.clone()),
            seq,
            labels: self.tree.labels.all().clone(),
            message: None,
        }
    }

    async fn act(&self, path: &str, op: TreeOp) -> Result<TreeReply, FileError> {
        use ResolvedPath::{At, Groups, Mount, Nowhere};
        let scope = &self.tree.scope;
        let resolved = scope::resolve(path, scope);
        let why = match resolved {
            Nowhere if scope::is_of_group(path) => {
                Some("it is in no memory scope of this person's".to_owned())
            }
            Nowhere | Mount(_) | Groups(_) | At(_) => self.unseen(path),
        };
        if let Some(why) = why {
            let said = absent(path);
            if self.origin != Origin::Preview {
                locked(&self.tree.recorder).unseen(&said, &why);
            }
            return Err(said);
        }
        match (op, resolved) {
            (_, Nowhere) => Err(absent(path)),
            (TreeOp::Stat { .. }, At(place)) => self.stat(path, &place).await,
            (TreeOp::Stat { .. }, Mount(_) | Groups(_)) => Ok(TreeReply::Node(FIXED)),
            (TreeOp::List { after, .. }, At(place)) => self.list(path, &place, after).await,
            (TreeOp::List { after, .. }, Mount(_)) => {
                Ok(fixed(scope::owners(scope).into_iter(), after.as_deref()))
            }
            (TreeOp::List { after, .. }, Groups(_)) => {
                Ok(fixed(scope::groups(scope).map(String::as_str), after.as_deref()))
            }
            (TreeOp::Read { .. }, At(place)) => self.read(path, &place).await,
            (TreeOp::Read { .. }, Mount(_) | Groups(_)) => {
                Err(error(FileErrorKind::IsDirectory, path, "it is a folder"))
            }
            (TreeOp::MayChange { .. }, At(_)) => self.may_write(path).map(|()| TreeReply::Done),
            (op, At(place)) => self.change(path, place, op).await,
            (TreeOp::MakeFolder { .. }, Mount(_) | Groups(_)) => {
                Err(error(FileErrorKind::AlreadyExists, path, "the folder is there"))
            }
            (_, Mount(_) | Groups(_)) => {
                let detail = "this folder is always there, and nothing else can be in it";
                Err(error(FileErrorKind::ReadOnly, path, detail))
            }
        }
    }

    async fn stat(&self, path: &str, place: &EntryAddress) -> Result<TreeReply, FileError> {
        let node = self.tree.entries.stat(&self.tree.scope, place).await;
        let node = node.map_err(|failed| refusal(path, failed))?;
        Ok(TreeReply::Node(self.node(path, &node)))
    }

    /// A page with something in it, unless nothing is left.
    async fn list(
        &self,
        path: &str,
        place: &EntryAddress,
        after: Option<String>,
    ) -> Result<TreeReply, FileError> {
        let MemoryTree { entries, scope, .. } = &*self.tree;
        let within = |name: &str| {
            if place.path.is_root() { name.to_owned() } else { format!("{}/{name}", place.path) }
        };
        let mut after = match after.map(|name| EntryPath::parse(&within(&name))) {
            Some(Err(fault)) => {
                return Err(error(FileErrorKind::InvalidPath, path, fault.to_string()));
            }
            Some(Ok(after)) => Some(after),
            None => None,
        };
        loop {
            let page = entries.list(scope, place, false, after.as_ref()).await;
            let mut page = page.map_err(|failed| refusal(path, failed))?;
            after = page.entries.last().map(|(path, _)| path.clone());
            let mut entries = Vec::with_capacity(page.entries.len());
            for (entry, node) in page.entries {
                let path = format!("{path}/{}", entry.name());
                if self.unseen(&path).is_some() {
                    continue;
                }
                if let Some(labels) = page.labels.remove(&entry) {
                    self.came_upon(&path, labels).await?;
                }
                let node = self.node(&path, &node);
                entries.push(TreeEntry { name: entry.name().to_owned(), node });
            }
            if !entries.is_empty() || !page.more || after.is_none() {
                return Ok(TreeReply::Listed { entries, more: page.more });
            }
        }
    }

    async fn read(&self, path: &str, place: &EntryAddress) -> Result<TreeReply, FileError> {
        let MemoryTree { entries, scope, .. } = &*self.tree;
        let read = entries.read(scope, place, None).await;
        let read = read.map_err(|failed| refusal(path, failed))?;
        let version = &read.version;
        self.came_upon(path, version.labels_for(&scope.person())).await?;
        let executable = matches!(version.state, EntryState::File { executable: true, .. });
        let node = Node {
            folder: false,
            bytes: read.bytes.len() as u64,
            revision: version.revision,
            modified_ms: version.by.at_ms,
            writable: self.may_write(path).is_ok(),
            executable,
        };
        Ok(TreeReply::Contents { node, contents: read.bytes })
    }

    async fn change(
        &self,
        path: &str,
        at: EntryAddress,
        op: TreeOp,
    ) -> Result<TreeReply, FileError> {
        self.may_write(path)?;
        let (target, change) = match op {
            TreeOp::Write { expected, contents, .. } => {
                let executable = self.is_executable(&at, expected).await;
                let file = EntryFile { executable, ..EntryFile::of(contents) };
                let expected = expects(expected);
                (None, ChangeRequest::Write { at: at.clone(), expected, file })
            }
            TreeOp::MakeFolder { .. } => (None, ChangeRequest::MakeFolder { at: at.clone() }),
            TreeOp::Remove { expected: revision, .. } => {
                (None, ChangeRequest::Remove { at: at.clone(), revision })
            }
            TreeOp::RemoveFolder { .. } => (None, ChangeRequest::RemoveFolder { at: at.clone() }),
            TreeOp::Rename { revision, to, expected, .. } => {
                let to = canonical(&to)?;
                self.may_write(&to)?;
                let ResolvedPath::At(target) = scope::resolve(&to, &self.tree.scope) else {
                    return Err(absent(&to));
                };
                self.carry(path, &at, &to).await?;
                let change = ChangeRequest::Move {
                    from: at.clone(),
                    revision: (revision > 0).then_some(revision),
                    to: target.clone(),
                    expected: expects(expected),
                };
                (Some((to, target)), change)
            }
            TreeOp::Stat { .. }
            | TreeOp::List { .. }
            | TreeOp::Read { .. }
            | TreeOp::MayChange { .. } => {
                return Err(error(FileErrorKind::InvalidArgument, path, "it changes nothing"));
            }
        };
        let gone =
            matches!(change, ChangeRequest::Remove { .. } | ChangeRequest::RemoveFolder { .. });
        let MemoryTree { entries, scope, .. } = &*self.tree;
        let made = entries.change(scope, change.clone(), self.by()).await;
        match made {
            Ok(_) => {}
            Err(EntryError::NeedsReview) => return Err(self.reviewed(path, change).await),
            Err(failed) => return Err(refusal(path, failed)),
        }
        self.tree.changed();
        if gone {
            return Ok(TreeReply::Done);
        }
        let (path, place) = target.as_ref().map_or((path, &at), |(path, place)| (path, place));
        self.stat(path, place).await
    }

    /// Scripts of skills stay programs when they are written again.
    async fn is_executable(&self, at: &EntryAddress, expected: ExpectedRevision) -> bool {
        if at.memory_scope.kind != MemoryKind::Skills || expected == ExpectedRevision::Absent {
            return false;
        }
        let node = self.tree.entries.stat(&self.tree.scope, at).await;
        node.is_ok_and(|node| node.executable)
    }

    /// Puts a change of a tool up for review; a program is told to use one.
    async fn reviewed(&self, path: &str, change: ChangeRequest) -> FileError {
        let denied = |detail: String| error(FileErrorKind::PermissionDenied, path, detail);
        let Origin::Tool(_) = self.origin else { return denied(REVIEWED.to_owned()) };
        let MemoryTree { entries, scope, .. } = &*self.tree;
        let proposed = match NewProposal::of(&**entries, scope, change).await {
            Ok(Some(proposed)) => proposed,
            Ok(None) => {
                return denied("changes of it are reviewed, and only files can be proposed".into());
            }
            Err(failed) => return refusal(path, failed),
        };
        match self.tree.reviews.propose(scope, proposed, self.by()).await {
            Ok(id) => denied(format!(
                "nothing is changed yet: changes of it are reviewed, and this one waits as \
                 proposal {id} for somebody to accept it (`outrigger memory proposals`)"
            )),
            Err(failed) => refusal(path, failed),
        }
    }
}

fn expects(expected: ExpectedRevision) -> EntryPrecondition {
    match expected {
        ExpectedRevision::Absent => EntryPrecondition::Absent,
        ExpectedRevision::Revision(revision) => EntryPrecondition::Revision(revision),
    }
}

/// The page of a folder that is always there.
fn fixed<'a>(names: impl Iterator<Item = &'a str>, after: Option<&str>) -> TreeReply {
    let names = names.filter(|name| after.is_none_or(|after| *name > after));
    let entries = names.map(|name| TreeEntry { name: name.to_owned(), node: FIXED }).collect();
    TreeReply::Listed { entries, more: false }
}

#[async_trait]
impl Tree for MemoryView {
    async fn perform(&self, op: TreeOp) -> Result<TreeReply, FileError> {
        let path = canonical(op.path())?;
        let changes =
            !matches!(op, TreeOp::Stat { .. } | TreeOp::List { .. } | TreeOp::Read { .. });
        let done = self.act(&path, op).await;
        if let Err(refused) = &done
            && changes
        {
            locked(&self.tree.recorder).refused(refused);
        }
        done
    }

    async fn show(&self, paths: &[&str]) -> Result<(), FileError> {
        let labels: BTreeSet<String> = {
            let looked = locked(&self.looked);
            let above = |path: &str| {
                let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
                ends.filter_map(|end| looked.get(&path[..end])).flatten().cloned().collect()
            };
            // A path also shows the names of the folders above.
            paths.iter().flat_map(|path| -> Vec<String> { above(path) }).collect()
        };
        self.learn(paths.first().copied().unwrap_or_default(), &labels).await
    }
}
