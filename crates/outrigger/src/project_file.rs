//! The files by which a repository speaks to agents, as they lie in its directory.
//!
//! Owns how they are read: beneath the directory, through no link, so far as they are not too
//! long. Whether anybody trusts them is for `trust` to say.

use outrigger_agent::{Author, Digest, Message, TrustedFile};
use outrigger_beneath::Dir;
use outrigger_repository::WorkTree;
use std::io::Read;
use std::path::Path;

use crate::config::mcp_json;
use crate::limits;

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is told to agents.
    Guide,
    /// It names servers of tools.
    Servers,
    /// Sandboxes are made of it.
    Image,
}

/// What guides an agent: the first of these that is there.
const GUIDES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// A file of a repository, as it was read just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectFile {
    pub(crate) name: String,
    pub(crate) purpose: Purpose,
    /// As an agent is told it.
    pub(crate) text: String,
    /// Of its contents, byte for byte.
    pub(crate) digest: Digest,
    /// Whether it goes on behind what was read: then nobody saw what would be trusted.
    pub(crate) is_cut: bool,
}

impl ProjectFile {
    /// The file of that name, if it is there and can be read.
    fn read(dir: &Path, name: &str, purpose: Purpose) -> Option<Self> {
        let file = Dir::open(dir).ok()?.file(Path::new(name)).ok()?;
        let mut bytes = Vec::new();
        file.take(limits::GUIDE_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
        let most = usize::try_from(limits::GUIDE_BYTES_MAX).unwrap_or(usize::MAX);
        let is_cut = bytes.len() > most;
        bytes.truncate(most);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if is_cut {
            text.push_str("\n[cut here: the rest is in the file]\n");
        }
        let (name, digest) = (name.to_owned(), Digest::of(&bytes));
        Some(Self { name, purpose, text, digest, is_cut })
    }

    /// What the authors of a folder of the repository say to any agent: AGENTS.md, or CLAUDE.md
    /// where there is none.
    fn guide(tree: &WorkTree, folder: &Path) -> Option<Self> {
        let path = |name| folder.join(name).to_str().map(str::to_owned);
        let mut paths = GUIDES.into_iter().filter_map(path);
        paths.find_map(|path| Self::read(&tree.top, &path, Purpose::Guide))
    }

    /// What guides an agent where the person works, that of the whole first.
    pub(crate) fn guides(tree: &WorkTree) -> Vec<Self> {
        let mut guides: Vec<_> =
            tree.folders().filter_map(|folder| Self::guide(tree, folder)).collect();
        guides.reverse();
        guides
    }

    /// What names servers of tools, if it names any.
    pub(crate) fn servers(dir: &Path) -> Option<Self> {
        let file = Self::read(dir, mcp_json::FILE, Purpose::Servers)?;
        (!mcp_json::described(&file.text).is_empty()).then_some(file)
    }

    /// What sandboxes are made of: a `devcontainer.json` or a Dockerfile.
    pub(crate) fn image(dir: &Path, path: &Path) -> Option<Self> {
        Self::read(dir, path.to_str()?, Purpose::Image)
    }

    /// All by which the repository speaks to agents.
    pub(crate) fn all(tree: &WorkTree) -> Vec<Self> {
        Self::guides(tree).into_iter().chain(Self::servers(&tree.top)).collect()
    }

    /// What it says to an agent, as the word of nobody.
    pub(crate) fn untrusted(self) -> Message {
        Message::new(Author::Untrusted(self.name), self.text)
    }

    /// What it says to an agent, vouched for by a person.
    pub(crate) fn trusted_by(self, person: &str) -> Message {
        let Self { name, text, digest, .. } = self;
        let file = TrustedFile { name, digest, by: person.to_owned() };
        Message::new(Author::Trusted(file), text)
    }
}
