//! The entries that a session sees, as a tree.

use async_trait::async_trait;
use outrigger_agent::{EntryChange, Seq, SessionId, Touched};
use outrigger_policy::{RuleSet, Scope, ShelfKind};
use outrigger_sandbox::{
    Expected, FileError, FileErrorKind, Node, Tree, TreeEntry, TreeOp, TreeReply,
};
use outrigger_store::entries::{
    By, Change, EntryPath, Error as EntryError, Expected as ExpectedEntry, File, Node as EntryNode,
    Place, Proposed, State as EntryState, Via,
};
use outrigger_tools::namespace::{SeenRevisions, canonical};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::layout::{self, Spot};
use super::refusal::{absent, error, refusal};
use super::rights::{Act, Right, Rights};
use super::told::{self, Told};
use super::{Shelves, rights::Who};
use crate::Clock;

/// What a program is told that reaches for what a person has to be asked about.
const ASKS: &str = "a person has to be asked: write it with a file tool, which asks";
/// What a program is told that writes to a shelf that needs reviews.
const REVIEWED: &str = "changes of it are reviewed: write it with a file tool, which proposes it";

/// The entries that a session sees. One for all its sandboxes and tools.
#[derive(Debug)]
pub(crate) struct SessionTree {
    shelves: Shelves,
    rules: Arc<RuleSet>,
    clock: Arc<dyn Clock>,
    scope: Scope,
    session: SessionId,
    rights: Mutex<Rights>,
    told: Mutex<Told>,
    /// What its tools have read.
    pub(crate) seen: Arc<SeenRevisions>,
}

/// Through what an operation comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hand {
    /// A program in a sandbox.
    Sandbox,
    /// A file tool, by the effect that was granted.
    Tool(Seq),
}

/// The tree in one hand.
#[derive(Debug)]
pub(crate) struct Handled {
    pub(crate) tree: Arc<SessionTree>,
    pub(crate) hand: Hand,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionTree {
    /// The tree of a session, unless its principal is no person.
    pub(crate) fn new(
        shelves: &Shelves,
        rules: &Arc<RuleSet>,
        clock: &Arc<dyn Clock>,
        session: &SessionId,
        principal: &str,
        sandbox: &str,
    ) -> Option<Self> {
        let scope = shelves.people.authenticate(&principal.parse().ok()?)?;
        Some(Self {
            shelves: shelves.clone(),
            rules: Arc::clone(rules),
            clock: Arc::clone(clock),
            scope,
            session: session.clone(),
            rights: Mutex::new(Rights::new(sandbox.to_owned())),
            told: Mutex::default(),
            seen: Arc::default(),
        })
    }

    /// Who acts from now on.
    pub(crate) fn set(&self, who: Who) {
        locked(&self.rights).set(who);
    }

    /// What was refused since this was asked last, the labels of what was read, and whether
    /// anything was changed.
    pub(crate) fn take(&self) -> (Touched, BTreeSet<String>, bool) {
        locked(&self.told).take()
    }

    /// What the session wrote behind a version of the store.
    pub(crate) async fn untold(&self, after: u64) -> Result<Vec<EntryChange>, EntryError> {
        let versions = self.shelves.entries.changes_of(&self.session, after).await?;
        Ok(versions.iter().map(told::change).collect())
    }

    /// Whether an effect of the session wrote at a path, and a crash hid it.
    pub(crate) async fn wrote(&self, path: &str, effect: Seq) -> bool {
        let Ok(Spot::At(place)) = canonical(path).map(|path| layout::spot(&path, &self.scope))
        else {
            return false;
        };
        let history = self.shelves.entries.history(&self.scope, &place, None).await;
        let ours = |by: &By| by.session.as_ref() == Some(&self.session) && by.seq == Some(effect);
        history.is_ok_and(|versions| versions.iter().any(|version| ours(&version.by)))
    }

    fn right(&self, act: Act, path: &str) -> Right {
        locked(&self.rights).of(act, path, &self.rules, self.clock.now_ms())
    }

    fn sees(&self, path: &str) -> bool {
        self.right(Act::Read, path) == Right::Permitted
    }

    fn node(&self, path: &str, node: &EntryNode, hand: Hand) -> Node {
        Node {
            folder: node.folder,
            bytes: node.bytes,
            revision: node.revision,
            modified_ms: node.modified_ms,
            writable: self.may_write(path, hand).is_ok(),
            executable: node.executable,
        }
    }

    /// What the rules say of a change. What they ask was asked about the effect of a tool.
    fn may_write(&self, path: &str, hand: Hand) -> Result<(), FileError> {
        let denied = |detail: &str| error(FileErrorKind::PermissionDenied, path, detail);
        match (self.right(Act::Write, path), hand) {
            (Right::Permitted, _) | (Right::Asked, Hand::Tool(_)) => Ok(()),
            (Right::Asked, Hand::Sandbox) => Err(denied(ASKS)),
            (Right::Forbidden(why), _) => Err(denied(&format!("the rules forbid it. {why}"))),
        }
    }

    fn by(&self, hand: Hand) -> By {
        let who = locked(&self.rights).who().clone();
        let (via, seq) = match hand {
            Hand::Sandbox => (Via::Sandbox, None),
            Hand::Tool(seq) => (Via::Tool, Some(seq)),
        };
        By {
            via,
            at_ms: self.clock.now_ms(),
            agent: Some(who.agent),
            session: Some(self.session.clone()),
            seq,
            labels: who.labels,
            message: None,
        }
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

impl Handled {
    async fn act(&self, path: &str, op: TreeOp) -> Result<TreeReply, FileError> {
        let SessionTree { scope, .. } = &*self.tree;
        let spot = layout::spot(path, scope);
        if !self.tree.sees(path) {
            return Err(absent(path));
        }
        match (op, spot) {
            (_, Spot::Nowhere) => Err(absent(path)),
            (TreeOp::Stat { .. }, Spot::At(place)) => self.stat(path, &place).await,
            (TreeOp::Stat { .. }, Spot::Mount(_) | Spot::Groups(_)) => Ok(TreeReply::Node(FIXED)),
            (TreeOp::List { after, .. }, Spot::At(place)) => self.list(path, &place, after).await,
            (TreeOp::List { after, .. }, Spot::Mount(_)) => {
                Ok(fixed(layout::owners(scope).into_iter(), after.as_deref()))
            }
            (TreeOp::List { after, .. }, Spot::Groups(_)) => {
                Ok(fixed(layout::groups(scope).map(String::as_str), after.as_deref()))
            }
            (TreeOp::Read { .. }, Spot::At(place)) => self.read(path, &place).await,
            (TreeOp::Read { .. }, Spot::Mount(_) | Spot::Groups(_)) => {
                Err(error(FileErrorKind::IsDirectory, path, "it is a folder"))
            }
            (TreeOp::MayChange { .. }, Spot::At(_)) => {
                self.tree.may_write(path, self.hand).map(|()| TreeReply::Done)
            }
            (op, Spot::At(place)) => self.change(path, place, op).await,
            (TreeOp::MakeFolder { .. }, Spot::Mount(_) | Spot::Groups(_)) => {
                Err(error(FileErrorKind::AlreadyExists, path, "the folder is there"))
            }
            (_, Spot::Mount(_) | Spot::Groups(_)) => {
                let detail = "this folder is always there, and nothing else can be in it";
                Err(error(FileErrorKind::ReadOnly, path, detail))
            }
        }
    }

    async fn stat(&self, path: &str, place: &Place) -> Result<TreeReply, FileError> {
        let node = self.tree.shelves.entries.stat(&self.tree.scope, place).await;
        let node = node.map_err(|failed| refusal(path, failed))?;
        Ok(TreeReply::Node(self.tree.node(path, &node, self.hand)))
    }

    /// A page with something in it, unless nothing is left.
    async fn list(
        &self,
        path: &str,
        place: &Place,
        after: Option<String>,
    ) -> Result<TreeReply, FileError> {
        let SessionTree { shelves, scope, .. } = &*self.tree;
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
            let page = shelves.entries.list(scope, place, false, after.as_ref()).await;
            let page = page.map_err(|failed| refusal(path, failed))?;
            after = page.entries.last().map(|(path, _)| path.clone());
            let entries: Vec<TreeEntry> = page
                .entries
                .into_iter()
                .map(|(entry, node)| (format!("{path}/{}", entry.name()), entry, node))
                .filter(|(path, _, _)| self.tree.sees(path))
                .map(|(path, entry, node)| TreeEntry {
                    name: entry.name().to_owned(),
                    node: self.tree.node(&path, &node, self.hand),
                })
                .collect();
            if !entries.is_empty() || !page.more || after.is_none() {
                return Ok(TreeReply::Listed { entries, more: page.more });
            }
        }
    }

    async fn read(&self, path: &str, place: &Place) -> Result<TreeReply, FileError> {
        let SessionTree { shelves, scope, told, .. } = &*self.tree;
        let read = shelves.entries.read(scope, place, None).await;
        let read = read.map_err(|failed| refusal(path, failed))?;
        let version = &read.version;
        locked(told).read(version, scope);
        let executable = matches!(version.state, EntryState::File { executable: true, .. });
        let node = Node {
            folder: false,
            bytes: read.bytes.len() as u64,
            revision: version.revision,
            modified_ms: version.by.at_ms,
            writable: self.tree.may_write(path, self.hand).is_ok(),
            executable,
        };
        Ok(TreeReply::Contents { node, contents: read.bytes })
    }

    async fn change(&self, path: &str, at: Place, op: TreeOp) -> Result<TreeReply, FileError> {
        self.tree.may_write(path, self.hand)?;
        let (target, change) = match op {
            TreeOp::Write { expected, contents, .. } => {
                let executable = self.is_executable(&at, expected).await;
                let file = File { executable, ..File::of(contents) };
                let expected = expects(expected);
                (None, Change::Write { at: at.clone(), expected, file })
            }
            TreeOp::MakeFolder { .. } => (None, Change::MakeFolder { at: at.clone() }),
            TreeOp::Remove { expected: revision, .. } => {
                (None, Change::Remove { at: at.clone(), revision })
            }
            TreeOp::RemoveFolder { .. } => (None, Change::RemoveFolder { at: at.clone() }),
            TreeOp::Rename { revision, to, expected, .. } => {
                let to = canonical(&to)?;
                self.tree.may_write(&to, self.hand)?;
                let Spot::At(target) = layout::spot(&to, &self.tree.scope) else {
                    return Err(absent(&to));
                };
                let change = Change::Move {
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
        let gone = matches!(change, Change::Remove { .. } | Change::RemoveFolder { .. });
        let SessionTree { shelves, scope, told, .. } = &*self.tree;
        let made = shelves.entries.change(scope, change.clone(), self.tree.by(self.hand)).await;
        match made {
            Ok(_) => {}
            Err(EntryError::NeedsReview) => return Err(self.reviewed(path, change).await),
            Err(failed) => return Err(refusal(path, failed)),
        }
        locked(told).changed();
        if gone {
            return Ok(TreeReply::Done);
        }
        let (path, place) = target.as_ref().map_or((path, &at), |(path, place)| (path, place));
        self.stat(path, place).await
    }

    /// Scripts of skills stay programs when they are written again.
    async fn is_executable(&self, at: &Place, expected: Expected) -> bool {
        if at.shelf.kind != ShelfKind::Skills || expected == Expected::Absent {
            return false;
        }
        let node = self.tree.shelves.entries.stat(&self.tree.scope, at).await;
        node.is_ok_and(|node| node.executable)
    }

    /// Puts a change of a tool up for review; a program is told to use one.
    async fn reviewed(&self, path: &str, change: Change) -> FileError {
        let denied = |detail: String| error(FileErrorKind::PermissionDenied, path, detail);
        let Hand::Tool(_) = self.hand else { return denied(REVIEWED.to_owned()) };
        let SessionTree { shelves, scope, .. } = &*self.tree;
        let proposed = match Proposed::of(&*shelves.entries, scope, change).await {
            Ok(Some(proposed)) => proposed,
            Ok(None) => {
                return denied("changes of it are reviewed, and only files can be proposed".into());
            }
            Err(failed) => return refusal(path, failed),
        };
        match shelves.reviews.propose(scope, proposed, self.tree.by(self.hand)).await {
            Ok(id) => denied(format!(
                "nothing is changed yet: changes of it are reviewed, and this one waits as \
                 proposal {id} for somebody to accept it (`outrigger memory proposals`)"
            )),
            Err(failed) => refusal(path, failed),
        }
    }
}

fn expects(expected: Expected) -> ExpectedEntry {
    match expected {
        Expected::Absent => ExpectedEntry::Absent,
        Expected::Revision(revision) => ExpectedEntry::Revision(revision),
    }
}

/// The page of a folder that is always there.
fn fixed<'a>(names: impl Iterator<Item = &'a str>, after: Option<&str>) -> TreeReply {
    let names = names.filter(|name| after.is_none_or(|after| *name > after));
    let entries = names.map(|name| TreeEntry { name: name.to_owned(), node: FIXED }).collect();
    TreeReply::Listed { entries, more: false }
}

#[async_trait]
impl Tree for Handled {
    async fn perform(&self, op: TreeOp) -> Result<TreeReply, FileError> {
        let path = canonical(op.path())?;
        let changes =
            !matches!(op, TreeOp::Stat { .. } | TreeOp::List { .. } | TreeOp::Read { .. });
        let done = self.act(&path, op).await;
        if let Err(refused) = &done
            && changes
        {
            locked(&self.tree.told).refused(refused);
        }
        done
    }
}
