//! Uses of allowed calls that no program in a sandbox has.
//!
//! Owns how each is made so that the kernel would take it.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use crate::report::Report;
use crate::sys::{call, outcome, outcome_of};

const OOB: usize = libc::MSG_OOB as usize;
/// `PR_SET_MEMORY_MERGE` of linux/prctl.h.
const SET_MEMORY_MERGE: usize = 67;

fn at<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Urgent data of sockets.
fn urgent(report: &Report) {
    let Ok((one, other)) = UnixStream::pair() else { return };
    let (one, other) = (one.as_raw_fd() as usize, other.as_raw_fd() as usize);
    let byte = [0_u8; 1];
    let part = [at(&byte), 1_usize];
    // `struct msghdr`, and `struct mmsghdr` around it, in words.
    let header = [0_usize, 0, at(&part), 1, 0, 0, 0, 0];
    let (data, message, high) = (at(&byte), at(&header), OOB | (1 << 40));
    for (name, number, args) in [
        ("sendto", libc::SYS_sendto, [one, data, 1, OOB, 0, 0]),
        ("sendto-high-bits", libc::SYS_sendto, [one, data, 1, high, 0, 0]),
        ("sendmsg", libc::SYS_sendmsg, [one, message, OOB, 0, 0, 0]),
        ("sendmmsg", libc::SYS_sendmmsg, [one, message, 1, OOB, 0, 0]),
        ("recvfrom", libc::SYS_recvfrom, [other, data, 1, OOB, 0, 0]),
        ("recvmsg", libc::SYS_recvmsg, [other, message, OOB, 0, 0, 0]),
        ("recvmmsg", libc::SYS_recvmmsg, [other, message, 1, OOB, 0, 0]),
    ] {
        report.attempt(&format!("rare/urgent-{name}"), || outcome(call(number, &args)));
    }
}

/// Requests about files, namespaces and interfaces.
fn requests(report: &Report) {
    // NS_GET_USERNS, NS_GET_PARENT, FS_IOC_GETFSUUID, FS_IOC_GETFSSYSFSPATH, FITRIM,
    // BLKGETSIZE64 and TIOCVHANGUP, on files that know them.
    for (name, path, request) in [
        ("owner-of-namespace", "/proc/self/ns/user", 0xb701),
        ("parent-namespace", "/proc/self/ns/pid", 0xb702),
        ("file-system-id", ".", 0x8011_1500),
        ("file-system-device", ".", 0x8081_1501),
        ("trim", ".", 0xc018_5879),
    ] {
        report.attempt(&format!("rare/ioctl-{name}"), || {
            let space = [0_u8; 256];
            match File::open(path) {
                Ok(file) => {
                    let args = [file.as_raw_fd() as usize, request, at(&space)];
                    outcome(call(libc::SYS_ioctl, &args))
                }
                Err(error) => outcome_of::<()>(Err(error)),
            }
        });
    }
}

/// All of them.
pub(crate) fn rare(report: &Report) {
    urgent(report);
    requests(report);
    let page = vec![0_u8; 2 << 12];
    let aligned = (page.as_ptr() as usize + 4095) & !4095;
    let part = [aligned, 4096];
    let mut ends = [[0_i32; 2]; 2];
    for pair in &mut ends {
        let _ = call(libc::SYS_pipe2, &[pair.as_mut_ptr() as usize, 0]);
    }
    let [[reads, writes], [_, others]] = ends.map(|pair| pair.map(|fd| fd as usize));
    let mergeable = libc::MADV_MERGEABLE as usize;
    for (name, number, args) in [
        ("vmsplice", libc::SYS_vmsplice, [writes, at(&part), 1, 0]),
        ("tee", libc::SYS_tee, [reads, others, 1, libc::SPLICE_F_NONBLOCK as usize]),
        ("merge-pages", libc::SYS_madvise, [aligned, 4096, mergeable, 0]),
        ("merge-all", libc::SYS_prctl, [SET_MEMORY_MERGE, 1, 0, 0]),
    ] {
        report.attempt(&format!("rare/{name}"), || outcome(call(number, &args)));
    }
}
