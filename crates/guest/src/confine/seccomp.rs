//! The system call filters.
//!
//! Owns which calls a sandbox may make. One filter stands on the guest itself and so
//! on all that it starts: it decides by the call, allows a list, refuses what is known
//! and denied (EPERM), and answers anything else as a kernel that lacks the call would
//! (ENOSYS), so that C libraries fall back; of a few allowed calls it looks at the
//! arguments and refuses some uses. Another stands on commands alone. Everything is
//! compiled once, at the start.
//!
//! The list follows the default profile of Docker (moby `profiles/seccomp`), minus
//! what a sandbox without capabilities has no use for.

mod cores;
mod lists;
mod program;
mod rules;
mod space;
mod uses;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompFilter,
    TargetArch,
};
use std::collections::BTreeSet;

use program::{ASK_FURTHER, IF_EQUAL, LOAD, RETURN, instruction, leave_at_end, search};
use rules::{Rules, rule, when};

/// Why the filters could not be made or installed.
#[derive(Debug, thiserror::Error)]
#[error("the system call filter could not be {step}")]
pub(crate) struct Error {
    step: &'static str,
    #[source]
    source: seccompiler::Error,
}

/// Namespace flags of clone(2): commands make no namespaces.
const CLONE_NEW: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWTIME) as u32 as u64;
/// `CLONE_NEWTIME` shares its bit with the exit signal's byte in clone(2), where it
/// means nothing, so it is left out of the mask for that call.
const CLONE_NEW_LEGACY: u64 = CLONE_NEW & !0xff;

/// ioctl(2) requests that push input into a terminal, or load a line discipline (a
/// driver of the kernel, rarely a good one) beneath it. Cut to the 32 bits that the
/// kernel looks at.
const TERMINAL_ABUSE: [u64; 3] = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];

/// Protocols of the internet families: what the family says, TCP, UDP, ICMP, ICMPv6.
/// Any other makes the kernel load a module for it.
const PROTOCOLS: [i32; 5] =
    [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6];

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
/// `AUDIT_ARCH_X86_64` of linux/audit.h.
#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;
/// `AUDIT_ARCH_AARCH64` of linux/audit.h.
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xc000_00b7;

fn compile(
    rules: Rules,
    otherwise: SeccompAction,
    then: SeccompAction,
) -> Result<BpfProgram, Error> {
    let failed = |source| Error { step: "compiled", source: seccompiler::Error::Backend(source) };
    let filter = SeccompFilter::new(rules, otherwise, then, ARCH).map_err(failed)?;
    filter.try_into().map_err(failed)
}

fn errno(number: i32) -> SeccompAction {
    SeccompAction::Errno(number.unsigned_abs())
}

fn allowed() -> BTreeSet<u32> {
    let numbers = lists::ALLOWED.iter().chain(lists::ALLOWED_HERE);
    numbers.map(|&call| u32::try_from(call).expect("numbers of system calls are small")).collect()
}

/// What is answered to calls that a kernel could lack.
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();

/// A program that allows a set of calls, refuses another and knows no others. Of those of
/// the third set, which are allowed, what comes behind it decides.
///
/// A search by halves, because the kernel runs a filter once for every call that
/// there is when it is installed, and for every call that it can't answer itself.
fn decide(
    allowed: &BTreeSet<u32>,
    refused: &BTreeSet<u32>,
    looked_at: &BTreeSet<u32>,
) -> BpfProgram {
    // Offsets in `struct seccomp_data`.
    let (number, arch) = (0, 4);
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    let mut program = vec![
        instruction(LOAD, 0, 0, arch),
        instruction(IF_EQUAL, 1, 0, AUDIT_ARCH),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD, 0, 0, number),
    ];
    // The first number of each run of calls with the same answer.
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let mut begin = |start: u32, answer: u32| match runs.last_mut() {
        Some((_, last)) if *last == answer => {}
        Some((begun, last)) if *begun == start => *last = answer,
        Some(_) | None => runs.push((start, answer)),
    };
    begin(0, UNKNOWN);
    for &call in allowed.union(refused) {
        let answer = match call {
            call if refused.contains(&call) => refuse,
            call if looked_at.contains(&call) => ASK_FURTHER,
            _ => libc::SECCOMP_RET_ALLOW,
        };
        begin(call, answer);
        let known = |call: &u32| allowed.contains(call) || refused.contains(call);
        if !known(&(call + 1)) {
            begin(call + 1, UNKNOWN);
        }
    }
    search(&runs, &mut program);
    leave_at_end(&mut program);
    program
}

/// The calls that are known and denied.
fn refused() -> BTreeSet<u32> {
    let numbers = lists::DENIED.iter().chain(lists::DENIED_HERE);
    numbers.map(|&call| u32::try_from(call).expect("numbers of system calls are small")).collect()
}

/// The denied uses of allowed calls.
fn denied() -> Rules {
    let mut rules = Rules::new();
    let namespaces = (0..64)
        .map(|bit| 1_u64 << bit)
        .filter(|bit| CLONE_NEW_LEGACY & bit != 0)
        .map(|bit| rule(vec![when(0, Len::Qword, Op::MaskedEq(bit), bit)]))
        .collect();
    rules.insert(libc::SYS_clone, namespaces);

    let family = |op, value: i32| when(0, Len::Dword, op, value.unsigned_abs().into());
    let foreign = |own: i32| {
        let other =
            PROTOCOLS.map(|protocol| when(2, Len::Dword, Op::Ne, protocol.unsigned_abs().into()));
        rule([family(Op::Eq, own)].into_iter().chain(other).collect())
    };
    let sockets = vec![
        foreign(libc::AF_INET),
        foreign(libc::AF_INET6),
        rule(vec![
            family(Op::Ne, libc::AF_UNIX),
            family(Op::Ne, libc::AF_INET),
            family(Op::Ne, libc::AF_INET6),
            family(Op::Ne, libc::AF_NETLINK),
        ]),
        rule(vec![
            family(Op::Eq, libc::AF_NETLINK),
            when(2, Len::Dword, Op::Ne, libc::NETLINK_ROUTE.unsigned_abs().into()),
        ]),
    ];
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, vec![rule(vec![family(Op::Ne, libc::AF_UNIX)])]);

    let terminal = TERMINAL_ABUSE.map(|request| rule(vec![when(1, Len::Dword, Op::Eq, request)]));
    rules.insert(libc::SYS_ioctl, terminal.into());
    // Another process's limits, the guest's among them, and that of cores; see `cores`.
    let core = |argument: u8| when(argument, Len::Dword, Op::Eq, libc::RLIMIT_CORE.into());
    let of_others = rule(vec![when(0, Len::Dword, Op::Ne, 0)]);
    let of_cores = rule(vec![core(1), when(2, Len::Qword, Op::Ne, 0)]);
    rules.insert(libc::SYS_prlimit64, vec![of_others, of_cores]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_setrlimit, vec![rule(vec![core(0)])]);
    // Device nodes, of which a whiteout is made by anybody (since Linux 5.8): what is one on a
    // disk hides, once that disk is a layer beneath another.
    let device = |argument: u8| {
        let kind = |kind: u32| {
            let mask = Op::MaskedEq(libc::S_IFMT.into());
            rule(vec![when(argument, Len::Dword, mask, kind.into())])
        };
        vec![kind(libc::S_IFCHR), kind(libc::S_IFBLK)]
    };
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_mknod, device(1));
    rules.insert(libc::SYS_mknodat, device(2));
    let whiteout = u64::from(libc::RENAME_WHITEOUT);
    let renamed = rule(vec![when(4, Len::Dword, Op::MaskedEq(whiteout), whiteout)]);
    rules.insert(libc::SYS_renameat2, vec![renamed]);
    // PER_LINUX, and the question which one is set.
    let personality =
        rule(vec![when(0, Len::Dword, Op::Ne, 0), when(0, Len::Dword, Op::Ne, 0xffff_ffff)]);
    rules.insert(libc::SYS_personality, vec![personality]);
    uses::deny(&mut rules);
    rules
}

/// The filter of commands alone, which the guest can't have on itself: it starts
/// them by clone3, whose flags lie in memory where no filter can look. Room on the disk is
/// taken by commands alone; see [`space`].
#[derive(Debug)]
pub(crate) struct CommandFilter(BpfProgram);

impl CommandFilter {
    fn new() -> Result<Self, Error> {
        let clone3 = Rules::from([(libc::SYS_clone3, Vec::new())]);
        let mut program = space::refuse();
        program.extend(compile(clone3, SeccompAction::Allow, errno(libc::ENOSYS))?);
        Ok(Self(program))
    }

    /// The program, to be installed between fork and exec.
    pub(crate) fn program(&self) -> &[seccompiler::sock_filter] {
        &self.0
    }
}

/// The filter of the guest and all that it starts. One and not two: the kernel looks at
/// every call that there is for each that is installed, which takes longer than all else here.
fn whole() -> Result<BpfProgram, Error> {
    let uses = denied();
    let number = |&call: &i64| u32::try_from(call).expect("numbers of system calls are small");
    let mut program = decide(&allowed(), &refused(), &uses.keys().map(number).collect());
    program.extend(cores::pretend());
    program.extend(uses::requests());
    program.extend(compile(uses, SeccompAction::Allow, errno(libc::EPERM))?);
    Ok(program)
}

/// Both filters, compiled.
#[derive(Debug)]
pub(crate) struct Filters {
    guest: BpfProgram,
    commands: CommandFilter,
}

impl Filters {
    pub(crate) fn compile() -> Result<Self, Error> {
        Ok(Self { guest: whole()?, commands: CommandFilter::new()? })
    }

    /// Installs that of the guest, for good, and gives the other. To be called before any
    /// thread is started.
    pub(crate) fn install(self) -> Result<CommandFilter, Error> {
        seccompiler::apply_filter(&self.guest)
            .map_err(|source| Error { step: "installed", source })?;
        Ok(self.commands)
    }
}

#[cfg(test)]
mod tests {
    use super::program::outcome;
    use super::*;
    use seccompiler::sock_filter;

    #[test]
    fn no_call_is_both_allowed_and_denied_outright() {
        let allowed = allowed();
        let both: Vec<_> = refused().intersection(&allowed).copied().collect();
        assert_eq!(both, []);
        for (call, rules) in denied() {
            assert!(!rules.is_empty(), "system call {call} is denied outright by a use");
            let allowed = allowed.contains(&u32::try_from(call).unwrap());
            assert!(allowed, "a filter on {call}, which is not allowed");
        }
    }

    /// What the filter says before it looks at arguments.
    fn answer(program: &[sock_filter], number: u32, arch: u32) -> u32 {
        let word = |offset| if offset == 0 { number } else { arch };
        outcome(program, &word).unwrap_or(ASK_FURTHER)
    }

    #[test]
    fn exactly_the_lists_are_allowed_and_refused() {
        let (allowed, refused) = (allowed(), refused());
        let looked_at: BTreeSet<u32> =
            denied().keys().map(|&call| u32::try_from(call).unwrap()).collect();
        let program = decide(&allowed, &refused, &looked_at);
        for number in (0..700).chain([u32::MAX, 0x4000_0000]) {
            let expected = match number {
                number if looked_at.contains(&number) => ASK_FURTHER,
                number if refused.contains(&number) => libc::SECCOMP_RET_ERRNO | 1,
                number if allowed.contains(&number) => libc::SECCOMP_RET_ALLOW,
                _ => UNKNOWN,
            };
            assert_eq!(answer(&program, number, AUDIT_ARCH), expected, "{number}");
        }
        assert_eq!(answer(&program, 0, 0), libc::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn the_program_stays_short() {
        let whole = whole().unwrap();
        assert!(whole.len() < 900, "{}", whole.len());
    }
}
