//! Trees that are served into the sandbox: files by FUSE whose contents somebody outside
//! answers for.
//!
//! Owns the mounts that the spawner made, as their one server. The kernel's requests
//! become operations on trees, which a host performs over its connection; what was
//! written is kept here until it is written whole. No process may ever wait for this
//! one in vain: every request is answered, if need be with an error, and with the end of
//! this program, which alone holds the devices, all of them fail.
//!
//! Nothing in this program may touch a path of a mount: not this thread, which would wait
//! for itself, and no other that holds the devices, which would outlive the end of this one.

mod answer;
mod change;
mod contents_cache;
mod context;
mod directory;
mod file;
#[cfg(test)]
mod fuzz;
mod header;
mod kernel_requests;
mod mount;
mod mounted_tree;
mod node_cache;
mod nodes;
mod open;
mod open_files;
mod read_history;
mod rename;
mod requests;
mod resize;
mod tasks;
mod tree_ops;
mod writeback;

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use outrigger_sandbox::{FileError, TreeReply, limits as door};

use crate::connection::Connections;
use crate::{limits, sys};
use context::FuseContext;

/// The server of all mounts.
#[derive(Debug, Default)]
pub(crate) struct FuseServer {
    mounts: Vec<mount::Mount>,
    shared: Option<Rc<FuseContext>>,
    buffer: Vec<u8>,
    /// Something was asked or answered.
    asked: bool,
}

impl FuseServer {
    /// Serves these devices, each mounted at its path. `owner` is whose all files seem to be.
    pub(crate) fn new(mounts: Vec<(OwnedFd, String)>, owner: u32) -> Self {
        if mounts.is_empty() {
            return Self::default();
        }
        let shared = Rc::new(FuseContext::new(answer::Owner(owner)));
        let mounts = mounts
            .into_iter()
            .map(|(device, path)| mount::Mount::new(device, path, Rc::clone(&shared)));
        let buffer = vec![0; limits::REQUEST_BYTES_MAX];
        Self { mounts: mounts.collect(), shared: Some(shared), buffer, asked: false }
    }

    /// Whether there is anything to serve.
    pub(crate) fn is_empty(&self) -> bool {
        self.mounts.is_empty()
    }

    /// Adds every device to wait for.
    pub(crate) fn poll(&self, mut add: impl FnMut(libc::pollfd, usize)) {
        if self.shared.as_ref().is_some_and(|shared| shared.requests.is_full()) {
            return;
        }
        for (number, mount) in self.mounts.iter().enumerate() {
            if !mount.is_gone() {
                add(sys::pollfd(mount.device(), libc::POLLIN), number);
            }
        }
    }

    /// Takes what the kernel asks of a mount.
    pub(crate) fn ready(&mut self, number: usize) {
        self.asked = true;
        if let Some(mount) = self.mounts.get(number) {
            mount.read(&mut self.buffer);
        }
    }

    /// Whether anything was asked or answered since this was asked last.
    pub(crate) fn was_asked(&mut self) -> bool {
        std::mem::take(&mut self.asked)
    }

    /// Takes what the kernel asks of all, so that what ended processes closed is known.
    pub(crate) fn drain(&mut self) {
        (0..self.mounts.len()).for_each(|number| self.ready(number));
    }

    /// Something came from a host.
    pub(crate) fn hear(&self) {
        if let Some(shared) = &self.shared {
            shared.requests.hear();
            self.mounts.iter().for_each(|mount| mount.take_back());
        }
    }

    /// A connection answers from now on.
    pub(crate) fn serve(&self, connection: u64) {
        if let Some(shared) = &self.shared {
            shared.requests.serve(connection);
        }
    }

    /// A host answered.
    pub(crate) fn answer(
        &mut self,
        connection: u64,
        number: u64,
        result: Result<TreeReply, FileError>,
    ) {
        if let Some(shared) = &self.shared {
            self.asked = true;
            shared.requests.answer(connection, number, result);
            shared.tasks.run();
        }
    }

    /// Moves on what can be moved on. `impatient`: somebody waits for the end of processes,
    /// which may wait for a host.
    pub(crate) fn step(&self, out: &mut Connections, impatient: bool) {
        let Some(shared) = &self.shared else { return };
        let now = Instant::now();
        let policy = if impatient { limits::INTERRUPTED_MS_MAX } else { door::TREE_MS_MAX };
        for mount in &self.mounts {
            mount.let_go(now);
        }
        // What fails here may be asked once more, and is then older than nothing.
        shared.requests.fail_older(Duration::from_millis(policy), now);
        shared.tasks.run();
        while shared.requests.send(out) {
            out.flush();
            shared.tasks.run();
        }
    }

    /// When to look at the clock again.
    pub(crate) fn wake(&self) -> Option<Duration> {
        let shared = self.shared.as_ref()?;
        let now = Instant::now();
        let limit = Duration::from_millis(door::TREE_MS_MAX);
        let oldest = shared.requests.oldest();
        let due = oldest.map(|since| (since + limit).saturating_duration_since(now));
        self.mounts.iter().filter_map(|mount| mount.let_go(now)).chain(due).min()
    }

    /// Whether files are being written although nobody has them open any more.
    pub(crate) fn is_releasing(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.releasing.get() > 0)
    }
}
