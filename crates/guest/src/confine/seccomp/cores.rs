//! The limit of core dumps, which commands keep as they were given it.
//!
//! Where the host hands cores to a program, the kernel starts that as root for every crash,
//! whatever the limit: only a limit of exactly one byte stops it (`do_coredump` of
//! fs/coredump.c). To lower it needs no right, and would let the program be started again,
//! so the filter keeps it. Programs that hold secrets set it to 0 and some end where they
//! may not (gpg), so they are told that it is done: they get what they want by it, no core.

use seccompiler::BpfProgram;

use super::program::{IF_EQUAL, LOAD, RETURN, instruction};

/// What is answered: that it is done.
const DONE: u32 = libc::SECCOMP_RET_ERRNO;
/// Offset of the first argument in `struct seccomp_data`, and from one to the next.
const ARGUMENTS: (u32, u32) = (16, 8);

/// Calls that set the limit, with the arguments by which they are told, from 0.
const CALLS: &[(libc::c_long, &[(u32, u32)])] = &[
    // Of this process, without asking what the limit was.
    (libc::SYS_prlimit64, &[(0, 0), (1, libc::RLIMIT_CORE), (3, 0)]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_setrlimit, &[(0, libc::RLIMIT_CORE)]),
];

/// A program that answers those calls and leaves all others to what comes behind it. What
/// is spelled otherwise is refused there.
pub(super) fn pretend() -> BpfProgram {
    let mut program = Vec::new();
    for (call, arguments) in CALLS {
        let number = (0, u32::try_from(*call).expect("numbers of system calls are small"));
        let (first, step) = ARGUMENTS;
        let halves = arguments.iter().flat_map(|(index, value)| {
            let at = first + step * index;
            [(at, *value), (at + 4, 0)]
        });
        let tests: Vec<(u32, u32)> = std::iter::once(number).chain(halves).collect();
        for (index, (offset, value)) in tests.iter().enumerate() {
            // To behind the answer.
            let rest = 2 * (tests.len() - index - 1) + 1;
            let rest = u8::try_from(rest).expect("a call has six arguments at most");
            program.push(instruction(LOAD, 0, 0, *offset));
            program.push(instruction(IF_EQUAL, 0, rest, *value));
        }
        program.push(instruction(RETURN, 0, 0, DONE));
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::seccomp::program::outcome;

    #[test]
    fn only_the_limit_of_cores_is_said_to_be_set() {
        let program = pretend();
        let of = |call: libc::c_long, arguments: [u64; 4]| {
            outcome(&program, &|offset| match offset {
                0 => u32::try_from(call).unwrap(),
                offset => {
                    let argument = arguments[usize::try_from((offset - 16) / 8).unwrap()];
                    let half = if (offset - 16).is_multiple_of(8) { 0 } else { 32 };
                    u32::try_from(argument >> half & 0xffff_ffff).unwrap()
                }
            })
        };
        let (core, files) = (u64::from(libc::RLIMIT_CORE), u64::from(libc::RLIMIT_NOFILE));
        let (some, high) = (0x7fff_0000_1000, 1 << 40);
        assert_eq!(of(libc::SYS_prlimit64, [0, core, some, 0]), Some(DONE));
        for others in
            [[1, core, some, 0], [0, files, some, 0], [0, core, some, some], [0, core, some, high]]
        {
            assert_eq!(of(libc::SYS_prlimit64, others), None, "{others:?}");
        }
        assert_eq!(of(libc::SYS_read, [0, core, some, 0]), None);
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(of(libc::SYS_setrlimit, [core, some, 0, 0]), Some(DONE));
            assert_eq!(of(libc::SYS_setrlimit, [files, some, 0, 0]), None);
            assert_eq!(of(libc::SYS_setrlimit, [core | high, some, 0, 0]), None);
        }
    }
}
