//! Builds a small archive in memory, for workspaces that do not come from a directory.

/// Builds a workspace's archive in memory.
pub struct Builder(tar::Builder<Vec<u8>>);

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Builder").field(&self.0.get_ref().len()).finish()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self(tar::Builder::new(Vec::new()))
    }
}

impl Builder {
    /// Adds a file. `path` is relative and at most 100 bytes long.
    pub fn file(&mut self, path: &str, contents: &[u8], executable: bool) {
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(if executable { 0o755 } else { 0o644 });
        header.set_mtime(0);
        self.0.append_data(&mut header, path, contents).expect("memory takes every write");
    }

    /// The archive.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0.into_inner().expect("memory takes every write")
    }
}
