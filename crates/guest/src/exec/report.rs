//! Where a new process says why it does not run its program.
//!
//! Owns one page of memory that both see, whether the new process borrows the rest of
//! this one's or has a copy. It is read when the process ended.

use std::io;

use rustix::mm::{MapFlags, ProtFlags};

/// The step that failed, and its errno.
type StepError = (u8, i32);

/// What a new process says of why its program did not run.
#[derive(Debug)]
pub(crate) struct Report(*mut StepError);

impl Report {
    pub(crate) fn new() -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: no address is asked for, so nothing that is mapped changes.
        let page = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), size_of::<StepError>(), access, flags)
        }?;
        Ok(Self(page.cast()))
    }

    /// Says it. Makes no system call and takes no lock.
    pub(crate) fn say(&self, step: u8, errno: i32) {
        // SAFETY: the page lives as long as this does, and has room and alignment.
        unsafe { self.0.write_volatile((step, errno)) };
    }

    /// What was said; zeros: nothing.
    pub(crate) fn said(&self) -> (u8, i32) {
        // SAFETY: as above; a new page is zeros, which are a valid value.
        unsafe { self.0.read_volatile() }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new` with this length, and nothing else points there.
        let _ = unsafe { rustix::mm::munmap(self.0.cast(), size_of::<StepError>()) };
    }
}
