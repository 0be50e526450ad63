//! A new process that borrows this one's memory until it executes or ends.
//!
//! Owns the stack that it runs on meanwhile. Copying the memory map, as fork(2) does,
//! is most of what a small command would cost. This thread stands still in between
//! (`CLONE_VFORK`), others go on, so the new process may neither allocate nor lock.

use std::arch::asm;
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::limits;
use crate::sys::CLONE_INTO_CGROUP;

/// What becomes of this process's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// The new process borrows it, and this thread stands still until it no longer
    /// does. Only where no other command lives, which could stop the new process,
    /// being of the same user, and with it this one.
    Borrowed,
    /// The new process has a copy, and nobody waits.
    Copied,
}

/// What the new process does; it must end in an exec or an exit.
pub(crate) type ChildMain = unsafe extern "C" fn(*const c_void) -> !;

/// What the new process runs on, never two at once.
#[derive(Debug)]
pub(crate) struct Stack(Vec<u8>);

impl Stack {
    pub(crate) fn new() -> Self {
        // Reserved, not touched: its pages come as they are used.
        Self(Vec::with_capacity(limits::CHILD_STACK_BYTES))
    }

    /// Its lower end, and its size, both of which the processor wants even.
    fn span(&mut self) -> (usize, usize) {
        let start = self.0.as_mut_ptr() as usize;
        let bottom = start.next_multiple_of(16);
        (bottom, (start + self.0.capacity() - bottom) & !15)
    }
}

/// Makes a process, in a cgroup of its own if one is given.
///
/// # Safety
/// What `act` makes of `with` must be sound in a process that shares all memory with
/// this one while this thread stands still: system calls on what was laid out before.
pub(crate) unsafe fn make(
    stack: &mut Stack,
    memory: Memory,
    birthplace: Option<BorrowedFd<'_>>,
    act: ChildMain,
    with: *const c_void,
) -> io::Result<i32> {
    let (bottom, bytes) = stack.span();
    let flags = match memory {
        Memory::Borrowed => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
        Memory::Copied => 0,
    };
    // SAFETY: it consists of numbers, of which zero says that nothing is asked for.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags;
    args.exit_signal = libc::SIGCHLD as u64;
    args.stack = bottom as u64;
    args.stack_size = bytes as u64;
    if let Some(dir) = birthplace {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = dir.as_raw_fd() as u64;
    }
    let given = [(&raw const args) as usize, size_of::<libc::clone_args>()];
    // SAFETY: `args` outlives the call; the stack is
    // a live, exclusive span; the caller vouches for `act`.
    let mut result = unsafe { clone(libc::SYS_clone3, given, act, with) };
    if result == -i64::from(libc::ENOSYS) && birthplace.is_none() {
        // Containers often answer so, because their filters can't look at the flags.
        let given = [flags as usize | libc::SIGCHLD as usize, bottom + bytes];
        // SAFETY: as above, with the older call, which takes the upper end of the stack.
        result = unsafe { clone(libc::SYS_clone, given, act, with) };
    }
    match i32::try_from(result) {
        Ok(pid) if pid > 0 => Ok(pid),
        Ok(error) => Err(io::Error::from_raw_os_error(-error)),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// The call itself. On its new stack the new process has nothing to return to, which
/// no function of a library allows for, so what it does next stands here too.
///
/// # Safety
/// As [`make`], with the arguments of one of the two calls, the others being zero.
#[cfg(target_arch = "x86_64")]
unsafe fn clone(
    number: libc::c_long,
    given: [usize; 2],
    act: ChildMain,
    with: *const c_void,
) -> i64 {
    let result;
    // SAFETY: the kernel keeps every register but those named; in the new process the
    // stack pointer is a multiple of 16, as a call demands, and `act` does not return.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") number => result,
            in("rdi") given[0],
            in("rsi") given[1],
            in("rdx") 0,
            in("r10") 0,
            in("r8") 0,
            in("r12") with,
            in("r13") act,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// The call itself, as on the other architecture.
///
/// # Safety
/// As [`make`], with the arguments of one of the two calls, the others being zero.
#[cfg(target_arch = "aarch64")]
unsafe fn clone(
    number: libc::c_long,
    given: [usize; 2],
    act: ChildMain,
    with: *const c_void,
) -> i64 {
    let result;
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            inlateout("x0") given[0] => result,
            in("x1") given[1],
            in("x2") 0,
            in("x3") 0,
            in("x4") 0,
            in("x8") number,
            in("x20") with,
            in("x21") act,
        );
    }
    result
}
