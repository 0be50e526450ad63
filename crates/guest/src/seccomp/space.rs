//! The calls that take room on a disk without writing anything.
//!
//! They take gigabytes in a moment, and a disk is watched, not divided: it would be full
//! before anybody has looked. Commands are told that the file system has no such thing,
//! which they are ready for: the C library's `posix_fallocate` writes instead, and what is
//! written takes its time and is seen. To give room back is allowed.

use seccompiler::{BpfProgram, sock_filter};

use super::{IF_EQUAL, LOAD, RETURN, instruction};

/// Offsets of the number and of the second argument in `struct seccomp_data`, of which
/// calls look at the lower half.
const NUMBER: u32 = 0;
const SECOND: u32 = 24;

/// The one use of fallocate(2) that is allowed.
const FREE: u32 = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE).unsigned_abs();

/// ioctl(2) requests that do the same: `FS_IOC_RESVSP`, `FS_IOC_RESVSP64` and
/// `FS_IOC_ZERO_RANGE` of linux/falloc.h, `XFS_IOC_ALLOCSP` and `XFS_IOC_ALLOCSP64` of
/// older kernels, and `FS_IOC_FSSETXATTR` of linux/fs.h, by which a file asks for so much
/// with its next byte, or counts for another quota.
const REQUESTS: [u32; 6] =
    [0x4030_5828, 0x4030_582a, 0x4030_5839, 0x4030_580a, 0x4030_5824, 0x401c_5820];

const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP.unsigned_abs();

/// A program that refuses those and leaves all else to what comes behind it.
pub(super) fn refuse() -> BpfProgram {
    let number = |call: libc::c_long| u32::try_from(call).expect("system calls are few");
    let mut program = vec![
        instruction(LOAD, 0, 0, NUMBER),
        instruction(IF_EQUAL, 0, 3, number(libc::SYS_fallocate)),
        instruction(LOAD, 0, 0, SECOND),
        instruction(IF_EQUAL, 1, 0, FREE),
        instruction(RETURN, 0, 0, REFUSE),
    ];
    let requests: Vec<sock_filter> = REQUESTS
        .into_iter()
        .flat_map(|request| {
            [instruction(IF_EQUAL, 0, 1, request), instruction(RETURN, 0, 0, REFUSE)]
        })
        .collect();
    let rest = u8::try_from(requests.len() + 1).expect("the requests are few");
    program.push(instruction(LOAD, 0, 0, NUMBER));
    program.push(instruction(IF_EQUAL, 0, rest, number(libc::SYS_ioctl)));
    program.push(instruction(LOAD, 0, 0, SECOND));
    program.extend(requests);
    program
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
            (libc::SYS_ioctl, REQUESTS[0], Some(REFUSE)),
            (libc::SYS_ioctl, REQUESTS[5], Some(REFUSE)),
            (libc::SYS_ioctl, 0, None),
            (libc::SYS_write, REQUESTS[0], None),
            (libc::SYS_read, 0, None),
        ];
        for (call, second, expected) in table {
            assert_eq!(answer(call, second), expected, "{call} {second:#x}");
        }
    }
}
