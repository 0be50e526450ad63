//! Files that lead to the host: devices, `/proc`, mounts, sockets, links.
//!
//! Owns the lists of paths. A file that opens is closed unread, but for those whose
//! text is the question.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::report::Report;
use crate::sys::{call, outcome, outcome_of};

/// Entries that a walk looks at before it gives up, so that no root is too large.
const WALK_ENTRIES: usize = 2_000_000;
/// Where the sandbox's user may write, and devices that are harmless.
const WRITABLE: [&str; 15] = [
    "/workspace",
    "/tmp",
    "/var/tmp",
    "/home/agent",
    "/dev/shm",
    "/dev/mqueue",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/pts",
    "/dev/ptmx",
    "/dev/console",
];

fn open(path: &str, write: bool) -> String {
    let mut options = OpenOptions::new();
    options.read(!write).write(write).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    outcome_of(options.open(path))
}

/// Device nodes of the host, and attempts to make them.
pub(crate) fn devices(report: &Report) {
    let paths = [
        "mem",
        "kmem",
        "port",
        "kmsg",
        "sda",
        "vda",
        "nvme0n1",
        "dm-0",
        "loop0",
        "loop-control",
        "mapper/control",
        "fuse",
        "kvm",
        "vhost-net",
        "vhost-vsock",
        "vsock",
        "net/tun",
        "userfaultfd",
        "uinput",
        "input/event0",
        "hwrng",
        "tty0",
        "tty1",
        "vcs",
        "console",
        "autofs",
        "btrfs-control",
        "cpu/0/msr",
        "mei0",
        "dri/card0",
        "ppp",
        "snapshot",
        "watchdog",
        "binder",
        "nvidia0",
        "hpet",
        "rtc0",
        "raw/rawctl",
        "cuse",
        "rfkill",
        "vfio/vfio",
    ];
    for name in paths {
        report.attempt(&format!("device/{name}"), || open(&format!("/dev/{name}"), false));
    }
    let nodes = [
        ("block", libc::S_IFBLK, 8, 0),
        ("null", libc::S_IFCHR, 1, 3),
        ("memory", libc::S_IFCHR, 1, 1),
        ("fuse", libc::S_IFCHR, 10, 229),
        ("whiteout", libc::S_IFCHR, 0, 0),
    ];
    for (name, kind, major, minor) in nodes {
        report.attempt(&format!("device/mknod-{name}"), || {
            let path = CString::new(format!("node-{name}")).expect("no NUL in it");
            let device = libc::makedev(major, minor) as usize;
            let mode = (kind | 0o666) as usize;
            let made = call(
                libc::SYS_mknodat,
                &[libc::AT_FDCWD as usize, path.as_ptr() as usize, mode, device],
            );
            // A whiteout may be made by anybody since Linux 5.8, and is no device.
            match (name, made) {
                ("whiteout", Ok(_)) => open("node-whiteout", false),
                (_, made) => outcome(made),
            }
        });
    }
}

/// A setting of the kernel by other ways than its name.
fn other_ways(report: &Report) {
    let setting = "proc/sys/kernel/core_pattern";
    for way in ["/proc/self/root/", "/proc/thread-self/root/", "/proc/self/cwd/../"] {
        let name = way.trim_matches('/').replace('/', "-");
        report.attempt(&format!("proc/write-by-{name}"), || open(&format!("{way}{setting}"), true));
    }
    report.attempt("proc/write-by-descriptor", || {
        let mut path = OpenOptions::new();
        path.read(true).custom_flags(libc::O_PATH);
        match path.open(format!("/{setting}")) {
            Ok(named) => open(&format!("/proc/self/fd/{}", named.as_raw_fd()), true),
            Err(error) => outcome_of::<()>(Err(error)),
        }
    });
}

/// Settings of the kernel, written and read.
pub(crate) fn proc(report: &Report) {
    let written = [
        "sys/kernel/core_pattern",
        "sys/kernel/modprobe",
        "sys/kernel/hotplug",
        "sys/kernel/poweroff_cmd",
        "sys/kernel/hostname",
        "sys/kernel/sysrq",
        "sys/kernel/yama/ptrace_scope",
        "sys/kernel/ns_last_pid",
        "sys/kernel/unprivileged_userns_clone",
        "sys/kernel/shmmax",
        "sys/fs/binfmt_misc/register",
        "sys/fs/protected_hardlinks",
        "sys/fs/suid_dumpable",
        "sys/net/ipv4/ip_forward",
        "sys/net/ipv4/ping_group_range",
        "sys/user/max_user_namespaces",
        "sys/vm/drop_caches",
        "sys/vm/overcommit_memory",
        "sysrq-trigger",
        "irq/default_smp_affinity",
        "mtrr",
        "acpi/wakeup",
        "scsi/scsi",
        "1/oom_score_adj",
        "1/comm",
        "1/mem",
        "1/coredump_filter",
        "1/clear_refs",
    ];
    for name in written {
        report.attempt(&format!("proc/write-{name}"), || open(&format!("/proc/{name}"), true));
    }
    other_ways(report);
    // Its own, which open: what is written to them decides.
    for (name, text) in [
        ("uid_map", "0 0 1"),
        ("gid_map", "0 0 1"),
        ("setgroups", "allow"),
        ("timens_offsets", "boottime 9 0"),
    ] {
        report.attempt(&format!("proc/write-self/{name}"), || {
            outcome_of(fs::write(format!("/proc/self/{name}"), text))
        });
    }
    report.attempt("proc/write-any-setting", || {
        let mut found = Vec::new();
        walk_for(Path::new("/proc/sys"), &mut |path, meta| {
            let opened = OpenOptions::new().write(true).open(path);
            if meta.is_file() && opened.is_ok() {
                found.push(path.display().to_string());
            }
        });
        listed(found)
    });
    report.attempt("proc/lower-oom-score", || {
        outcome_of(fs::write("/proc/self/oom_score_adj", "-1000"))
    });
    for name in ["/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/power/state"] {
        report.attempt(&format!("proc/write-{name}"), || open(name, true));
    }
    for name in ["kmsg", "kpagecount", "kpageflags", "vmallocinfo", "slabinfo", "self/pagemap-of-1"]
    {
        let path = if name.ends_with("-of-1") { "1/pagemap" } else { name };
        report.attempt(&format!("proc/read-{name}"), || open(&format!("/proc/{path}"), false));
    }
    report.attempt("proc/kernel-addresses", || {
        // Without CAP_SYSLOG every address reads as zero, or the file does not open.
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let shown = symbols.lines().any(|line| !line.starts_with("0000000000000000"));
        if shown { "shown".to_owned() } else { "hidden".to_owned() }
    });
}

/// Parts of `/proc` that must be covered, and by what.
pub(crate) fn masks(report: &Report) {
    let files = [
        "kcore",
        "keys",
        "timer_list",
        "sysrq-trigger",
        "latency_stats",
        "sched_debug",
        "interrupts",
    ];
    for name in files {
        report.attempt(&format!("mask/{name}"), || {
            let path = format!("/proc/{name}");
            let Ok(meta) = fs::symlink_metadata(&path) else { return "absent".to_owned() };
            let null = meta.file_type().is_char_device() && meta.rdev() == libc::makedev(1, 3);
            if null { "null device".to_owned() } else { format!("{:?}", meta.file_type()) }
        });
    }
    for name in ["acpi", "scsi", "asound"] {
        report.attempt(&format!("mask/{name}"), || match fs::read_dir(format!("/proc/{name}")) {
            Ok(entries) => format!("{} entries", entries.count()),
            Err(_) => "absent".to_owned(),
        });
    }
    report.attempt("mask/proc-is-proc", || {
        let kind = |path: &str| {
            let path = CString::new(path).expect("no NUL in it");
            let mut found = [0_u64; 32];
            let args = [path.as_ptr() as usize, found.as_mut_ptr() as usize];
            call(libc::SYS_statfs, &args).map(|_| found[0])
        };
        let magic = u64::try_from(libc::PROC_SUPER_MAGIC).ok();
        let all = ["/proc", "/proc/self/attr", "/proc/sys"].map(kind);
        if all.iter().all(|found| found.ok() == magic) {
            "yes".to_owned()
        } else {
            format!("{all:?}")
        }
    });
    // A covered device node would be an image's way to be written through.
    for path in ["/dev/null", "/dev/zero", "/dev/urandom"] {
        report.attempt(&format!("mask/replace{path}"), || {
            outcome_of(fs::remove_file(path).and_then(|()| symlink("/proc/sys/kernel", path)))
        });
    }
}

fn listed(mut found: Vec<String>) -> String {
    found.sort();
    let count = found.len();
    found.truncate(5);
    if count == 0 { "none".to_owned() } else { format!("{count}: {}", found.join(" ")) }
}

/// Calls for everything beneath a directory, but for processes.
fn walk_for(top: &Path, each: &mut dyn FnMut(&Path, &fs::Metadata)) {
    let mut left: Vec<PathBuf> = vec![top.to_owned()];
    let mut seen = 0;
    while let Some(dir) = left.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > WALK_ENTRIES {
                return;
            }
            let path = entry.path();
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            each(&path, &meta);
            let process = dir == Path::new("/proc")
                && entry.file_name().as_encoded_bytes()[0].is_ascii_digit();
            if meta.is_dir() && !process {
                left.push(path);
            }
        }
    }
}

/// Whether somebody is behind a socket, who may speak another way.
fn answers(path: &Path) -> bool {
    let silent = [libc::ECONNREFUSED, libc::EACCES, libc::EPERM];
    match UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => error.raw_os_error().is_some_and(|error| !silent.contains(&error)),
    }
}

/// Everything that there is: what can be written, sockets that answer, devices.
pub(crate) fn walk(report: &Report) {
    let (mut writable, mut sockets, mut devices) = (Vec::new(), Vec::new(), Vec::new());
    walk_for(Path::new("/"), &mut |path, meta| {
        let known = WRITABLE.iter().any(|known| path.starts_with(known));
        let own = ["self", "thread-self"]
            .iter()
            .any(|own| path.starts_with(Path::new("/proc").join(own)));
        let kind = meta.file_type();
        let text = || path.display().to_string();
        if kind.is_socket() && answers(path) {
            sockets.push(text());
        }
        // A whiteout, which is no device, and 1:3, 1:5, 1:7, 1:8, 1:9, 5:0, 5:1, 5:2 are the harmless ones.
        let harmless = [(0, 0), (1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 1), (5, 2)];
        let number = (libc::major(meta.rdev()), libc::minor(meta.rdev()));
        if kind.is_block_device()
            || (kind.is_char_device() && !harmless.contains(&number) && number.0 != 136)
        {
            devices.push(text());
        }
        if !known && !own && !kind.is_symlink() && !kind.is_socket() {
            let c_path = CString::new(path.as_os_str().as_encoded_bytes());
            let may = c_path.is_ok_and(|c_path| {
                let args = [libc::AT_FDCWD as usize, c_path.as_ptr() as usize, libc::W_OK as usize];
                call(libc::SYS_faccessat, &args).is_ok()
            });
            // Covered with the null device, which swallows what is written.
            let null = kind.is_char_device() && number == (1, 3);
            if may && !null {
                writable.push(text());
            }
        }
    });
    report.say("walk/writable", &listed(writable));
    report.say("walk/sockets", &listed(sockets));
    report.say("walk/devices", &listed(devices));
}

/// Options of the mounts, and what they tell of the host.
pub(crate) fn mounts(report: &Report) {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let (mut without_nosuid, mut shared, mut foreign) = (Vec::new(), Vec::new(), Vec::new());
    for line in table.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, _, _, root, point, options, ..] = fields[..] else { continue };
        if !options.split(',').any(|option| option == "nosuid") {
            without_nosuid.push(point.to_owned());
        }
        if fields.iter().any(|field| field.starts_with("shared:") || field.starts_with("master:")) {
            shared.push(point.to_owned());
        }
        if root.contains("sandboxes/") || root.contains("/docker/") {
            foreign.push(point.to_owned());
        }
    }
    report.say("mounts/without-nosuid", &listed(without_nosuid));
    report.say("mounts/propagating", &listed(shared));
    report.say("mounts/host-paths", if foreign.is_empty() { "none" } else { "some" });
    report.say("mounts/sys", &outcome_of(fs::read_dir("/sys/kernel")));
    report.say("mounts/cgroup", &outcome_of(fs::read_dir("/sys/fs/cgroup/memory")));
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let above = group.lines().any(|line| line.contains(".."));
    report.say("mounts/cgroup-path", if above { "above" } else { "own" });
    for path in [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/run/crio/crio.sock",
        "/run/dbus/system_bus_socket",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "/run/systemd/private",
    ] {
        report.attempt(&format!("mounts{path}"), || open(path, false));
    }
}

/// Hard links to what is not the sandbox's own.
pub(crate) fn links(report: &Report) {
    let sources =
        ["/etc/passwd", "/bin/sh", "/proc/self/exe", "/dev/null", "/var/outrigger/output"];
    for source in sources {
        report.attempt(&format!("link{source}"), || outcome_of(fs::hard_link(source, "hard")));
    }
    // Through the magic link, where linkat(2) would follow it.
    report.attempt("link/followed", || {
        let Ok(_own) = File::open("/etc/passwd") else { return "ENOENT".to_owned() };
        let (from, to) = (c"/proc/self/fd/3", c"followed");
        let here = libc::AT_FDCWD as usize;
        let args = [here, from.as_ptr() as usize, here, to.as_ptr() as usize];
        let args = [&args[..], &[libc::AT_SYMLINK_FOLLOW as usize]].concat();
        outcome(call(libc::SYS_linkat, &args))
    });
}
