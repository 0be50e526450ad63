//! The call that takes room on a disk without writing anything; the requests of ioctl(2)
//! that do it too are not among those of `uses`.
//!
//! It takes gigabytes in a moment, and a disk is watched, not divided: it would be full
//! before anybody has looked. Commands are told that the file system has no such thing,
//! which they are ready for: the C library's `posix_fallocate` writes instead, and what is
//! written takes its time and is seen. To give room back is allowed.

use seccompiler::BpfProgram;

use super::program::{IF_EQUAL, LOAD, RETURN, instruction};

/// Offsets of the number and of the second argument in `struct seccomp_data`, of which
/// calls look at the lower half.
const NUMBER: u32 = 0;
const SECOND: u32 = 24;

/// The one use of fallocate(2) that is allowed.
const FREE: u32 = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE).unsigned_abs();

const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP.unsigned_abs();

/// A program that refuses it and leaves all else to what comes behind it.
pub(super) fn refuse() -> BpfProgram {
    let number = u32::try_from(libc::SYS_fallocate).expect("system calls are few");
    vec![
        instruction(LOAD, 0, 0, NUMBER),
        instruction(IF_EQUAL, 0, 3, number),
        instruction(LOAD, 0, 0, SECOND),
        instruction(IF_EQUAL, 1, 0, FREE),
        instruction(RETURN, 0, 0, REFUSE),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program says of a call. `None`: it leaves it to others.
    fn answer(call: libc::c_long, second: u32) -> Option<u32> {
        let program = refuse();
        let (mut at, mut value) = (0, 0);
        while let Some(step) = program.get(at) {
            at += 1;
            match step.code {
                LOAD if step.k == NUMBER => value = u32::try_from(call).unwrap(),
                LOAD => value = second,
                IF_EQUAL => at += usize::from(if value == step.k { step.jt } else { step.jf }),
                _ => return Some(step.k),
            }
        }
        assert_eq!(at, program.len(), "a jump leads behind the end");
        None
    }

    #[test]
    fn room_is_given_back_and_not_taken() {
        let table = [
            (libc::SYS_fallocate, 0, Some(REFUSE)),
            (libc::SYS_fallocate, libc::FALLOC_FL_KEEP_SIZE.unsigned_abs(), Some(REFUSE)),
            (libc::SYS_fallocate, libc::FALLOC_FL_ZERO_RANGE.unsigned_abs(), Some(REFUSE)),
            (libc::SYS_fallocate, FREE, None),
            (libc::SYS_read, 0, None),
        ];
        for (call, second, expected) in table {
            assert_eq!(answer(call, second), expected, "{call} {second:#x}");
        }
    }
}
