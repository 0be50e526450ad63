//! A tree in memory, for tests of what serves trees and of what asks them.
//!
//! Owns files as [`outrigger_sandbox::TreeOp`] tells of them, and ways to be in the way: what
//! can't be written, what is not to be seen, what is not answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::Notify;

use outrigger_sandbox::limits::{TREE_FILE_BYTES_MAX, TREE_PAGE_ENTRIES_MAX};
use outrigger_sandbox::{
    ExpectedRevision, FileError, FileErrorKind as Kind, Node, SandboxId, Tree, TreeEntry, TreeOp,
    TreeReply, Trees, is_within,
};

#[derive(Debug, Clone)]
enum Item {
    Folder,
    File { revision: u64, contents: Vec<u8>, executable: bool },
}

#[derive(Debug, Default)]
struct State {
    roots: BTreeSet<String>,
    items: BTreeMap<String, Item>,
    /// How writing below a path is refused.
    protected: BTreeMap<String, Kind>,
    hidden: BTreeSet<String>,
    /// Below this path nothing is answered.
    held: Option<String>,
    revisions: u64,
    asked: u64,
    changes: u64,
}

/// A tree whose files are in memory.
#[derive(Debug, Default)]
pub struct FakeTree {
    state: Mutex<State>,
    released: Notify,
}

type Answer = Result<TreeReply, FileError>;

fn refused<T>(kind: Kind, path: &str) -> Result<T, FileError> {
    Err(FileError { kind, path: path.to_owned(), detail: "refused by a tree in memory".to_owned() })
}

impl State {
    fn node(&self, path: &str) -> Result<Node, FileError> {
        let writable = !self.protected.keys().any(|folder| is_within(path, folder));
        let node = Node {
            folder: true,
            bytes: 0,
            revision: 0,
            modified_ms: 0,
            writable,
            executable: false,
        };
        if self.hidden.iter().any(|hidden| is_within(path, hidden)) {
            return refused(Kind::FileNotFound, path);
        }
        match self.items.get(path) {
            Some(Item::File { revision, contents, executable }) => Ok(Node {
                folder: false,
                bytes: contents.len() as u64,
                revision: *revision,
                modified_ms: 1_700_000_000_000 + *revision,
                executable: *executable,
                ..node
            }),
            Some(Item::Folder) => Ok(node),
            None if self.roots.contains(path) => Ok(node),
            None => refused(Kind::FileNotFound, path),
        }
    }

    fn folder(&self, path: &str) -> Result<(), FileError> {
        if self.node(path)?.folder { Ok(()) } else { refused(Kind::NotADirectory, path) }
    }

    /// The folder that something is to be in, which may be written to.
    fn place(&self, path: &str) -> Result<(), FileError> {
        let (folder, _) = path.rsplit_once('/').unwrap_or_default();
        self.folder(folder)?;
        if self.hidden.iter().any(|hidden| is_within(path, hidden)) {
            return refused(Kind::PermissionDenied, path);
        }
        match self.protected.iter().find(|(folder, _)| is_within(path, folder)) {
            Some((_, kind)) => refused(*kind, path),
            None => Ok(()),
        }
    }

    fn expect(&self, path: &str, expected: ExpectedRevision) -> Result<(), FileError> {
        match (self.node(path), expected) {
            (Ok(_), ExpectedRevision::Absent) => refused(Kind::AlreadyExists, path),
            (Ok(node), ExpectedRevision::Revision(_)) if node.folder => {
                refused(Kind::IsDirectory, path)
            }
            (Ok(node), ExpectedRevision::Revision(revision)) if node.revision == revision => Ok(()),
            (Err(_), ExpectedRevision::Absent) => Ok(()),
            (_, ExpectedRevision::Revision(_)) => refused(Kind::Conflict, path),
        }
    }

    fn put(&mut self, path: &str, contents: Vec<u8>, executable: bool) -> u64 {
        self.revisions += 1;
        let revision = self.revisions;
        self.items.insert(path.to_owned(), Item::File { revision, contents, executable });
        revision
    }

    fn children(&self, path: &str) -> impl Iterator<Item = &str> {
        let folder = format!("{path}/");
        let below = self.items.range(folder.clone()..).map(|(name, _)| name.as_str());
        let below = below.take_while({
            let folder = folder.clone();
            move |name| name.starts_with(&folder)
        });
        below.filter_map(move |name| {
            let name = name.get(folder.len()..)?;
            (!name.contains('/')).then_some(name)
        })
    }

    fn list(&self, path: &str, after: Option<&str>) -> Answer {
        self.folder(path)?;
        let names: BTreeSet<&str> = self.children(path).collect();
        let later = names.into_iter().filter(|name| after.is_none_or(|after| *name > after));
        let seen = later.filter_map(|name| {
            let node = self.node(&format!("{path}/{name}")).ok()?;
            Some(TreeEntry { name: name.to_owned(), node })
        });
        let mut entries: Vec<TreeEntry> = seen.take(TREE_PAGE_ENTRIES_MAX + 1).collect();
        let more = entries.len() > TREE_PAGE_ENTRIES_MAX;
        entries.truncate(TREE_PAGE_ENTRIES_MAX);
        Ok(TreeReply::Listed { entries, more })
    }

    fn rename(
        &mut self,
        from: &str,
        revision: u64,
        to: &str,
        expected: ExpectedRevision,
    ) -> Answer {
        let node = self.node(from)?;
        self.place(from)?;
        self.place(to)?;
        if is_within(to, from) {
            return refused(Kind::InvalidPath, to);
        }
        if !node.folder && node.revision != revision {
            return refused(Kind::Conflict, from);
        }
        self.expect(to, expected)?;
        let moved: Vec<String> =
            self.items.keys().filter(|path| is_within(path, from)).cloned().collect();
        for path in moved {
            let Some(item) = self.items.remove(&path) else { continue };
            let place = format!("{to}{}", path.get(from.len()..).unwrap_or_default());
            match item {
                Item::File { contents, executable, .. } => {
                    self.put(&place, contents, executable);
                }
                Item::Folder => drop(self.items.insert(place, Item::Folder)),
            }
        }
        self.node(to).map(TreeReply::Node)
    }

    fn perform(&mut self, op: TreeOp) -> Answer {
        match op {
            TreeOp::Stat { path } => self.node(&path).map(TreeReply::Node),
            TreeOp::List { path, after } => self.list(&path, after.as_deref()),
            TreeOp::Read { path } => {
                let node = self.node(&path)?;
                match self.items.get(&path) {
                    Some(Item::File { contents, .. }) => {
                        Ok(TreeReply::Contents { node, contents: contents.clone() })
                    }
                    Some(Item::Folder) | None => refused(Kind::IsDirectory, &path),
                }
            }
            TreeOp::MayChange { path } => self.place(&path).map(|()| TreeReply::Done),
            TreeOp::Write { path, expected, contents } => {
                self.place(&path)?;
                if contents.len() > TREE_FILE_BYTES_MAX {
                    return refused(Kind::TooLarge, &path);
                }
                self.expect(&path, expected)?;
                let executable = self.node(&path).is_ok_and(|node| node.executable);
                self.put(&path, contents, executable);
                self.node(&path).map(TreeReply::Node)
            }
            TreeOp::MakeFolder { path } => {
                self.place(&path)?;
                self.expect(&path, ExpectedRevision::Absent)?;
                self.items.insert(path.clone(), Item::Folder);
                self.node(&path).map(TreeReply::Node)
            }
            TreeOp::Remove { path, expected } => {
                self.node(&path)?;
                self.place(&path)?;
                self.expect(&path, ExpectedRevision::Revision(expected))?;
                self.items.remove(&path);
                Ok(TreeReply::Done)
            }
            TreeOp::RemoveFolder { path } => {
                self.folder(&path)?;
                self.place(&path)?;
                if self.children(&path).next().is_some() {
                    return refused(Kind::NotEmpty, &path);
                }
                self.items.remove(&path);
                Ok(TreeReply::Done)
            }
            TreeOp::Rename { from, revision, to, expected } => {
                self.rename(&from, revision, &to, expected)
            }
        }
    }
}

impl FakeTree {
    /// An empty tree with these mount points.
    #[must_use]
    pub fn new(roots: &[&str]) -> Self {
        let tree = Self::default();
        tree.state().roots.extend(roots.iter().map(|&root| root.to_owned()));
        tree
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a file as somebody else would, with the folders above it. Gives its revision.
    pub fn put(&self, path: &str, contents: impl Into<Vec<u8>>) -> u64 {
        let mut state = self.state();
        let mut above = path;
        while let Some((folder, _)) = above.rsplit_once('/')
            && !folder.is_empty()
            && !state.roots.contains(folder)
        {
            state.items.insert(folder.to_owned(), Item::Folder);
            above = folder;
        }
        state.put(path, contents.into(), false)
    }

    /// Lets programs be started from a file.
    pub fn make_executable(&self, path: &str) {
        if let Some(Item::File { executable, .. }) = self.state().items.get_mut(path) {
            *executable = true;
        }
    }

    /// The contents of a file and their revision.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<(Vec<u8>, u64)> {
        match self.state().items.get(path)? {
            Item::File { revision, contents, .. } => Some((contents.clone(), *revision)),
            Item::Folder => None,
        }
    }

    /// Every path that there is, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.state().items.keys().cloned().collect()
    }

    /// Removes what is at a path and below it, as somebody else would.
    pub fn remove(&self, path: &str) {
        self.state().items.retain(|other, _| !is_within(other, path));
    }

    /// Refuses every change at a path and below it, in this way.
    pub fn protect(&self, path: &str, kind: Kind) {
        self.state().protected.insert(path.to_owned(), kind);
    }

    /// Has a path and what is below it not be there for whoever asks.
    pub fn hide(&self, path: &str) {
        self.state().hidden.insert(path.to_owned());
    }

    /// Answers nothing about a path and what is below it from now on.
    pub fn hold(&self, path: &str) {
        self.state().held = Some(path.to_owned());
    }

    /// Answers again, also what was asked meanwhile.
    pub fn release(&self) {
        self.state().held = None;
        self.released.notify_waiters();
    }

    /// Operations that were asked so far, held ones among them.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.state().asked
    }

    /// Changes that were made by operations.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state().changes
    }
}

#[async_trait]
impl Tree for FakeTree {
    async fn perform(&self, op: TreeOp) -> Result<TreeReply, FileError> {
        op.check()?;
        self.state().asked += 1;
        loop {
            let released = self.released.notified();
            {
                let mut state = self.state();
                if !state.held.as_ref().is_some_and(|held| is_within(op.path(), held)) {
                    let reads = matches!(
                        op,
                        TreeOp::Stat { .. }
                            | TreeOp::List { .. }
                            | TreeOp::Read { .. }
                            | TreeOp::MayChange { .. }
                    );
                    let answer = state.perform(op);
                    state.changes += u64::from(!reads && answer.is_ok());
                    return answer;
                }
            }
            released.await;
        }
    }
}

/// A tree in memory for each sandbox, empty when it is first asked for.
#[derive(Debug)]
pub struct FakeTrees {
    roots: Vec<String>,
    all: Mutex<BTreeMap<SandboxId, Option<Arc<FakeTree>>>>,
}

impl FakeTrees {
    /// For trees with these mount points.
    #[must_use]
    pub fn new(roots: &[&str]) -> Self {
        let roots = roots.iter().map(|&root| root.to_owned()).collect();
        Self { roots, all: Mutex::default() }
    }

    /// The tree of a sandbox.
    #[must_use]
    pub fn tree(&self, sandbox: &SandboxId) -> Arc<FakeTree> {
        let roots: Vec<&str> = self.roots.iter().map(String::as_str).collect();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = all.entry(sandbox.clone()).or_default();
        Arc::clone(tree.get_or_insert_with(|| Arc::new(FakeTree::new(&roots))))
    }

    /// Has a sandbox served by this tree from now on, or by nobody.
    pub fn set(&self, sandbox: &SandboxId, tree: Option<Arc<FakeTree>>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(sandbox.clone(), tree);
    }
}

impl Trees for FakeTrees {
    fn of(&self, sandbox: &SandboxId) -> Option<Arc<dyn Tree>> {
        let silent = {
            let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            matches!(all.get(sandbox), Some(None))
        };
        (!silent).then(|| self.tree(sandbox) as Arc<dyn Tree>)
    }
}
