//! System calls that a sandbox has no use for, made with arguments that the kernel
//! would take: a call that is refused for its arguments was not refused.
//!
//! Owns the tables of calls. Each runs in a process of its own.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::report::Report;
use crate::sys::{call, leave, outcome, outcome_of};

/// `CLONE_NEWTIME` of linux/sched.h.
const CLONE_NEWTIME: i32 = 0x80;
/// `__X32_SYSCALL_BIT` of asm/unistd.h.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;

/// A path as the kernel takes it.
fn path(text: &'static std::ffi::CStr) -> usize {
    text.as_ptr() as usize
}

const HERE: usize = libc::AT_FDCWD as usize;

/// Attempts to make or enter a namespace, or to change what is mounted where.
pub(crate) fn namespace(report: &Report) {
    let namespaces = [
        ("user", libc::CLONE_NEWUSER),
        ("mnt", libc::CLONE_NEWNS),
        ("pid", libc::CLONE_NEWPID),
        ("net", libc::CLONE_NEWNET),
        ("ipc", libc::CLONE_NEWIPC),
        ("uts", libc::CLONE_NEWUTS),
        ("cgroup", libc::CLONE_NEWCGROUP),
        ("time", CLONE_NEWTIME),
    ];
    for (name, flag) in namespaces {
        report.attempt(&format!("namespace/unshare-{name}"), || {
            outcome(call(libc::SYS_unshare, &[flag as usize]))
        });
        // The bit of the time namespace belongs to the exit signal in clone(2).
        if flag != CLONE_NEWTIME {
            report.attempt(&format!("namespace/clone-{name}"), || {
                born(libc::SYS_clone, &[(flag | libc::SIGCHLD) as usize])
            });
        }
        report.attempt(&format!("namespace/clone3-{name}"), || {
            let args = [flag as u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0, 0, 0, 0];
            born(libc::SYS_clone3, &[args.as_ptr() as usize, size_of_val(&args)])
        });
        report.attempt(&format!("namespace/setns-{name}"), || {
            match File::open(format!("/proc/self/ns/{name}")) {
                Ok(own) => outcome(call(libc::SYS_setns, &[own.as_raw_fd() as usize, 0])),
                Err(error) => outcome_of::<()>(Err(error)),
            }
        });
    }
    report.attempt("namespace/setns-pidfd", || match call(libc::SYS_pidfd_open, &[1, 0]) {
        Ok(pidfd) => outcome(call(libc::SYS_setns, &[pidfd, libc::CLONE_NEWNS as usize])),
        Err(error) => outcome(Err(error)),
    });
    for (name, number, args) in mounts() {
        report.attempt(&format!("namespace/{name}"), || outcome(call(number, &args)));
    }
}

/// Starts a process; one that should not have been born ends.
fn born(number: libc::c_long, args: &[usize]) -> String {
    let result = call(number, args);
    if result == Ok(0) {
        leave(0);
    }
    outcome(result)
}

fn mounts() -> Vec<(&'static str, libc::c_long, Vec<usize>)> {
    let tmp = path(c"/tmp");
    let bind = (libc::MS_BIND | libc::MS_REC) as usize;
    let remount = (libc::MS_REMOUNT | libc::MS_BIND) as usize;
    vec![
        ("mount-tmpfs", libc::SYS_mount, vec![path(c"x"), tmp, path(c"tmpfs"), 0, 0]),
        ("mount-proc", libc::SYS_mount, vec![path(c"x"), tmp, path(c"proc"), 0, 0]),
        ("mount-sysfs", libc::SYS_mount, vec![path(c"x"), tmp, path(c"sysfs"), 0, 0]),
        ("mount-cgroup2", libc::SYS_mount, vec![path(c"x"), tmp, path(c"cgroup2"), 0, 0]),
        ("mount-bind", libc::SYS_mount, vec![path(c"/"), tmp, 0, bind, 0]),
        ("mount-remount", libc::SYS_mount, vec![0, path(c"/usr"), 0, remount, 0]),
        ("umount", libc::SYS_umount2, vec![path(c"/proc/sys"), libc::MNT_DETACH as usize]),
        ("fsopen", libc::SYS_fsopen, vec![path(c"tmpfs"), 0]),
        ("fsconfig", libc::SYS_fsconfig, vec![0, 6, 0, 0, 0]),
        ("fsmount", libc::SYS_fsmount, vec![0, 0, 0]),
        ("fspick", libc::SYS_fspick, vec![HERE, path(c"/"), 0]),
        ("open_tree", libc::SYS_open_tree, vec![HERE, path(c"/"), 1]),
        ("move_mount", libc::SYS_move_mount, vec![HERE, path(c"/tmp"), HERE, path(c"/run"), 0]),
        ("mount_setattr", libc::SYS_mount_setattr, vec![HERE, path(c"/usr"), 0, tmp, 32]),
        ("pivot_root", libc::SYS_pivot_root, vec![tmp, tmp]),
        ("chroot", libc::SYS_chroot, vec![path(c".")]),
    ]
}

/// Attempts on rare or dangerous parts of the kernel.
pub(crate) fn kernel(report: &Report) {
    let zeros = [0_u64; 64];
    let zero = zeros.as_ptr() as usize;
    let mut attributes = zeros;
    // `size` of perf_event_attr and of the bpf and landlock arguments alike: all zero else.
    attributes[0] = 128 << 32;
    let perf = attributes.as_ptr() as usize;
    let key = (path(c"user"), path(c"name"), path(c"payload"));
    let table: &[(&str, libc::c_long, &[usize])] = &[
        ("io_uring_setup", libc::SYS_io_uring_setup, &[1, zero]),
        ("io_uring_enter", libc::SYS_io_uring_enter, &[0, 0, 0, 0]),
        ("io_uring_register", libc::SYS_io_uring_register, &[0, 0, 0, 0]),
        ("bpf-map", libc::SYS_bpf, &[0, zero, 72]),
        ("bpf-prog", libc::SYS_bpf, &[5, zero, 72]),
        ("userfaultfd", libc::SYS_userfaultfd, &[0]),
        ("userfaultfd-user", libc::SYS_userfaultfd, &[1]),
        ("keyctl-join", libc::SYS_keyctl, &[1, 0]),
        ("keyctl-describe", libc::SYS_keyctl, &[6, -3_isize as usize, zero, 512]),
        ("add_key", libc::SYS_add_key, &[key.0, key.1, key.2, 7, -3_isize as usize]),
        ("request_key", libc::SYS_request_key, &[key.0, key.1, 0, 0]),
        ("perf_event_open", libc::SYS_perf_event_open, &[perf, 0, usize::MAX, usize::MAX, 0]),
        ("kexec_load", libc::SYS_kexec_load, &[0, 0, 0, 0]),
        ("init_module", libc::SYS_init_module, &[zero, 8, path(c"")]),
        ("finit_module", libc::SYS_finit_module, &[0, path(c""), 0]),
        ("delete_module", libc::SYS_delete_module, &[path(c"overlay"), 0]),
        ("fanotify_init", libc::SYS_fanotify_init, &[0x200, 0]),
        ("fanotify_mark", libc::SYS_fanotify_mark, &[0, 1, 1, HERE, path(c"/")]),
        ("memfd_secret", libc::SYS_memfd_secret, &[0]),
        ("process_madvise", libc::SYS_process_madvise, &[0, zero, 0, 4, 0]),
        ("kcmp", libc::SYS_kcmp, &[1, 1, 0, 0, 0]),
        ("move_pages", libc::SYS_move_pages, &[1, 0, 0, 0, 0, 0]),
        ("migrate_pages", libc::SYS_migrate_pages, &[1, 0, 0, 0]),
        ("mbind", libc::SYS_mbind, &[0, 0, 0, 0, 0, 0]),
        ("swapon", libc::SYS_swapon, &[path(c"swap"), 0]),
        ("swapoff", libc::SYS_swapoff, &[path(c"swap")]),
        // Without its magic numbers it would do nothing.
        ("reboot", libc::SYS_reboot, &[0, 0, 0, 0]),
        ("quotactl", libc::SYS_quotactl, &[0x8000_0100, zero, 0, zero]),
        ("acct", libc::SYS_acct, &[path(c"acct")]),
        ("syslog", libc::SYS_syslog, &[10, 0, 0]),
        ("sethostname", libc::SYS_sethostname, &[path(c"evil"), 4]),
        ("setdomainname", libc::SYS_setdomainname, &[path(c"evil"), 4]),
        ("vhangup", libc::SYS_vhangup, &[]),
        ("personality", libc::SYS_personality, &[libc::ADDR_NO_RANDOMIZE as usize]),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, &[0, zero, 0]),
        ("name_to_handle_at", libc::SYS_name_to_handle_at, &[HERE, path(c"/"), zero, zero, 0]),
        ("clock_settime", libc::SYS_clock_settime, &[0, zero]),
        ("settimeofday", libc::SYS_settimeofday, &[zero, 0]),
        ("clock_adjtime", libc::SYS_clock_adjtime, &[0, zero]),
        ("statmount", 457, &[zero, zero, 512, 0]),
        ("listmount", 458, &[zero, zero, 8, 0]),
        ("unknown", 4_000, &[]),
    ];
    for (name, number, args) in table {
        report.attempt(&format!("kernel/{name}"), || outcome(call(*number, args)));
    }
    // A shocker's way in: the root's inode by number, whatever is mounted over it.
    report.attempt("kernel/shocker", shocker);
}

/// Opens inode 2 of the workspace's file system by its handle.
fn shocker() -> String {
    let Ok(dir) = File::open(".") else { return "no workspace".to_owned() };
    // handle_bytes, handle_type, then FILEID_INO32_GEN of linux/exportfs.h.
    let handle: [u32; 4] = [8, 1, 2, 0];
    let args = [dir.as_raw_fd() as usize, handle.as_ptr() as usize, libc::O_RDONLY as usize];
    outcome(call(libc::SYS_open_by_handle_at, &args))
}

/// Attempts to go round the filter by the kernel's other ways in.
#[cfg(target_arch = "x86_64")]
pub(crate) fn alien(report: &Report) {
    report.attempt("alien/x32", || outcome(call(X32 + libc::SYS_getpid, &[])));
    report.attempt("alien/x32-ptrace", || outcome(call(X32 + 521, &[])));
    report.attempt("alien/i386", || {
        let result: i32;
        // SAFETY: number 20 is getpid there, which takes no arguments and touches no memory.
        unsafe { core::arch::asm!("int 0x80", inlateout("eax") 20 => result) };
        if result < 0 { crate::sys::name(-result) } else { "done".to_owned() }
    });
    let zero = [0_u64; 4];
    let ldt = [1, zero.as_ptr() as usize, 16];
    let table: &[(&str, libc::c_long, &[usize])] = &[
        ("modify_ldt", libc::SYS_modify_ldt, &ldt),
        ("iopl", libc::SYS_iopl, &[3]),
        ("ioperm", libc::SYS_ioperm, &[0x70, 2, 1]),
        ("uselib", libc::SYS_uselib, &[path(c"/usr/lib")]),
        ("sysfs", libc::SYS_sysfs, &[3, 0, 0]),
        ("kexec_file_load", libc::SYS_kexec_file_load, &[0, 0, 0, 0, 0]),
    ];
    for (name, number, args) in table {
        report.attempt(&format!("alien/{name}"), || outcome(call(*number, args)));
    }
}

/// Other processors have one way in.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn alien(_: &Report) {}
