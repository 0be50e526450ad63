//! Uses of allowed calls that have a history and no user: urgent data, merged memory, and
//! requests of ioctl(2) that no program in a sandbox makes.
//!
//! Owns the data. Urgent data of Unix sockets is a special path through the kernel's garbage
//! collector of sockets; memory that is merged tells by its timing what other sandboxes hold.

use seccompiler::{BpfProgram, SeccompCmpArgLen as Len, SeccompCmpOp as Op};

use super::program::{ASK_FURTHER, IF_EQUAL, JUMP, LOAD, instruction, leave_at_end, search};
use super::rules::{Rules, rule, when};

/// Calls of sockets, with the number of the argument that holds their flags.
const FLAGS: &[(libc::c_long, u8)] = &[
    (libc::SYS_sendto, 3),
    (libc::SYS_sendmsg, 2),
    (libc::SYS_sendmmsg, 3),
    (libc::SYS_recvfrom, 3),
    (libc::SYS_recvmsg, 2),
    (libc::SYS_recvmmsg, 3),
];
/// `PR_SET_MEMORY_MERGE` of linux/prctl.h.
const SET_MEMORY_MERGE: u64 = 67;

/// Adds the denied uses of calls to those that there are.
pub(super) fn deny(rules: &mut Rules) {
    let urgent = u64::from(libc::MSG_OOB.unsigned_abs());
    for (call, argument) in FLAGS {
        let flagged = when(*argument, Len::Dword, Op::MaskedEq(urgent), urgent);
        rules.entry(*call).or_default().push(rule(vec![flagged]));
    }
    let merged = u64::from(libc::MADV_MERGEABLE.unsigned_abs());
    for (call, argument, value) in
        [(libc::SYS_madvise, 2, merged), (libc::SYS_prctl, 0, SET_MEMORY_MERGE)]
    {
        let used = rule(vec![when(argument, Len::Dword, Op::Eq, value)]);
        rules.entry(call).or_default().push(used);
    }
}

/// Requests of ioctl(2) that reach the kernel, by their numbers in asm-generic/ioctls.h,
/// linux/sockios.h and linux/fs.h. What a terminal is not to be asked is denied by the rules
/// behind it.
const REQUESTS: &[u32] = &[
    // Copies of files that share their blocks: FICLONE, FICLONERANGE, FIDEDUPERANGE.
    0x4004_9409,
    0x4020_940d,
    0xc018_9436,
    // FS_IOC_GETFLAGS and SETFLAGS, and of 32 bits; FSGETXATTR; GETVERSION; FIEMAP. Not
    // FSSETXATTR, by which a file takes room with its next byte, or counts for another quota.
    0x8008_6601,
    0x4008_6602,
    0x8004_6601,
    0x4004_6602,
    0x801c_581f,
    0x8008_7601,
    0xc020_660b,
    // FIBMAP and FIGETBSZ.
    1,
    2,
    // RNDGETENTCNT.
    0x8004_5200,
    // SECCOMP_IOCTL_NOTIF_RECV, SEND, ID_VALID: of whoever answers for its own children.
    0xc050_2100,
    0xc018_2101,
    0x4008_2102,
];
/// Requests of ioctl(2) that reach the kernel, from one number to another.
const RANGES: &[(u32, u32)] = &[
    // Terminals, pipes, sockets and any descriptor: TCGETS to TIOCGEXCL, FIONREAD, FIONBIO,
    // FIOCLEX and FIOASYNC among them.
    (0x5401, 0x5440),
    // FIONCLEX to FIOQSIZE.
    (0x5450, 0x5460),
    // TIOCGPTPEER.
    (0x5441, 0x5441),
    // TCGETS2 to TCSETSF2, TIOCGPTN, TIOCSPTLCK, TIOCGDEV, TIOCSIG, TIOCGPKT, TIOCGPTLCK,
    // TIOCGEXCL.
    (0x802c_542a, 0x802c_542a),
    (0x402c_542b, 0x402c_542d),
    (0x8004_5430, 0x8004_5432),
    (0x4004_5431, 0x4004_5431),
    (0x4004_5436, 0x4004_5436),
    (0x8004_5438, 0x8004_5440),
    // Process groups of sockets, SIOCATMARK, times: FIOSETOWN to SIOCGSTAMPNS.
    (0x8901, 0x8907),
    (0x8010_8906, 0x8010_8907),
    // Interfaces, read: SIOCGIFNAME to SIOCGIFFLAGS, the addresses, SIOCGIFMTU, SIOCGIFHWADDR,
    // SIOCGIFINDEX, SIOCGIFTXQLEN, SIOCGIFMAP.
    (0x8910, 0x8913),
    (0x8915, 0x8915),
    (0x8917, 0x8917),
    (0x8919, 0x8919),
    (0x891b, 0x891b),
    (0x891d, 0x891d),
    (0x8921, 0x8921),
    (0x8927, 0x8927),
    (0x8933, 0x8933),
    (0x8942, 0x8942),
    (0x8970, 0x8970),
    // SIOCOUTQNSD.
    (0x894b, 0x894b),
];

/// A program that answers to all other requests as a file does that knows none, and leaves
/// these and all other calls to what comes behind it.
pub(super) fn requests() -> BpfProgram {
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOTTY.unsigned_abs();
    let mut ranges: Vec<(u32, u32)> = REQUESTS.iter().map(|request| (*request, *request)).collect();
    ranges.extend(RANGES);
    ranges.sort_unstable();
    let mut runs = vec![(0, refuse)];
    for (first, last) in ranges {
        match runs.last_mut() {
            // One begins where another ended.
            Some((begun, answer)) if *begun == first => *answer = ASK_FURTHER,
            Some(_) | None => runs.push((first, ASK_FURTHER)),
        }
        runs.push((last + 1, refuse));
    }
    let number = u32::try_from(libc::SYS_ioctl).expect("numbers of system calls are small");
    // The lower half of the second argument, in `struct seccomp_data`: the kernel looks at
    // no more.
    let (call, request) = (0, 24);
    let mut program = vec![
        instruction(LOAD, 0, 0, call),
        instruction(IF_EQUAL, 1, 0, number),
        instruction(JUMP, 0, 0, 0),
        instruction(LOAD, 0, 0, request),
    ];
    search(&runs, &mut program);
    leave_at_end(&mut program);
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::seccomp::program::outcome;

    #[test]
    fn exactly_the_requests_of_the_lists_go_on() {
        let program = requests();
        let of = |call: libc::c_long, request: u32| {
            let call = u32::try_from(call).unwrap();
            outcome(&program, &|offset| if offset == 0 { call } else { request })
        };
        let refused = Some(libc::SECCOMP_RET_ERRNO | libc::ENOTTY.unsigned_abs());
        let known = |request: u32| {
            let within = |(first, last): &(u32, u32)| (*first..=*last).contains(&request);
            REQUESTS.contains(&request) || RANGES.iter().any(within)
        };
        let edges =
            RANGES.iter().flat_map(|(first, last)| [*first, *last]).chain(REQUESTS.iter().copied());
        let near = edges.flat_map(|edge| [edge.wrapping_sub(1), edge, edge + 1]);
        for request in near.chain([0, u32::MAX, 0xb701]) {
            let expected = if known(request) { None } else { refused };
            assert_eq!(of(libc::SYS_ioctl, request), expected, "{request:#x}");
        }
        assert_eq!(of(libc::SYS_read, 0xb701), None);
        // What programs can't do without, by the names that the C library has for it.
        for request in [
            libc::TCGETS,
            libc::TCSETS,
            libc::TIOCGWINSZ,
            libc::TIOCSWINSZ,
            libc::TIOCGPGRP,
            libc::TIOCSPGRP,
            libc::TIOCSCTTY,
            libc::TIOCNOTTY,
            libc::TIOCGPTN,
            libc::TIOCSPTLCK,
            libc::TIOCGPTPEER,
            libc::FIONREAD,
            libc::FIONBIO,
            libc::FIOCLEX,
            libc::FIONCLEX,
            libc::TCGETS2,
            libc::TCSETS2,
            libc::FICLONE,
            libc::FICLONERANGE,
            libc::FS_IOC_GETFLAGS,
            libc::FS_IOC_SETFLAGS,
            libc::TIOCOUTQ,
            libc::TCFLSH,
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
        ] {
            let request = u32::try_from(request).unwrap();
            assert_eq!(of(libc::SYS_ioctl, request), None, "{request:#x}");
        }
    }
}
