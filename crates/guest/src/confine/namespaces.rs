//! Apart from the host: namespaces of its own, in a copy of a root that was prepared.
//!
//! Owns the order in which a process that was cloned takes them and gives up the host, and
//! what of `/proc` is hidden or only read. The user namespace comes last, so that neither
//! guest nor commands have any rights over the other namespaces or the mounts. It knows
//! nothing of whose guest it will be.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Access, CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, fsconfig_create,
    fsmount, fsopen, mount, mount_bind, mount_remount, move_mount,
};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::confine::counts::NamespaceOwner;
use crate::sys;

/// Namespaces that a clone is born into; it takes the others when it is ready for them.
pub(crate) const BORN_INTO: libc::c_int =
    libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Files of `/proc` that tell of or act on the host.
const HIDDEN_FILES: [&str; 7] =
    ["kcore", "keys", "timer_list", "sysrq-trigger", "latency_stats", "sched_debug", "interrupts"];
/// Directories of the same kind.
const HIDDEN_DIRS: [&str; 4] = ["acpi", "scsi", "asound", "pressure"];
/// Parts of `/proc` that are read and never written.
const READ_ONLY: [&str; 4] = ["sys", "irq", "bus", "fs"];
/// What stands for a hidden file, in the `/dev` of the prepared root.
const NO_FILE: &str = "/dev/null";
/// What tells hosts and their boots apart, below [`READ_ONLY`], and what stands for it.
const BOOT: (&str, &str) = ("sys/kernel/random/boot_id", "/dev/.boot-id");
/// What stands for a hidden directory: an empty one, until something is mounted there.
const NO_DIR: &str = "/dev/shm";

fn doing<T, E: Into<io::Error>>(what: &str, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("cannot {what}: {error}"))
    })
}

/// Takes the namespaces that it was not born into, and leaves the host's root for a copy of
/// this mount namespace. To be called by a process with one thread.
pub(crate) fn go(prepared: OwnedFd, capabilities: CapabilitySet) -> io::Result<()> {
    doing("make a network namespace", sys::unshare(UnshareFlags::NEWNET))?;
    doing("name the host", rustix::system::sethostname(b"sandbox"))?;
    doing("bring the loopback interface up", sys::loopback_up())?;
    let proc = doing("make a /proc", new_proc())?;
    open_low_ports(&proc);
    let owner = doing("look at what the kernel counts", NamespaceOwner::new(&proc))?;
    let mounts = Some(LinkNameSpaceType::Mount);
    doing("enter the prepared root", move_into_link_name_space(prepared.as_fd(), mounts))?;
    drop(prepared);
    doing("copy the prepared root", sys::unshare(UnshareFlags::NEWNS))?;
    doing("mount /proc", mount_proc(&proc))?;
    doing("mount message queues", mount_queues())?;
    // The groups that were entered above become the root of the namespace.
    doing("make a cgroup namespace", sys::unshare(UnshareFlags::NEWCGROUP))?;
    let alone = doing("stay with the spawner", owner.stand_alone())?;
    doing("make a user namespace", sys::unshare(UnshareFlags::NEWUSER))?;
    if !alone {
        doing("leave the rest to others", owner.leave_the_rest())?;
    }
    // Its ids are mapped later.
    doing("give up capabilities", sys::keep_capabilities(capabilities))
}

/// A `/proc` of this pid namespace, not mounted anywhere yet. To be made where the
/// host's can be seen: without rights on the host the kernel gives no more than that.
fn new_proc() -> io::Result<OwnedFd> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    forget_segments(&proc);
    Ok(proc)
}

/// Lets segments of shared memory go with the last process that has them, so that a
/// command that was killed for memory gives it back; see shm_rmid_forced in proc(5).
/// Where the kernel leaves this to the host's root alone, they stay until the sandbox
/// ends. By its own `/proc`: in the host's, the kernel looks at the name of every
/// sandbox there is.
fn forget_segments(proc: &OwnedFd) {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = openat(proc, "sys/kernel/shm_rmid_forced", flags, Mode::empty()) {
        let _ = rustix::io::write(file, b"1");
    }
}

/// Lets whoever is inside listen on ports below 1024, as in a container of Docker: nobody
/// outside is served there, and names lead to some of them (ip_unprivileged_port_start in
/// ip-sysctl). Of this network namespace; where the kernel does not let it, names lead nowhere.
fn open_low_ports(proc: &OwnedFd) {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let name = "sys/net/ipv4/ip_unprivileged_port_start";
    if let Ok(file) = openat(proc, name, flags, Mode::empty()) {
        let _ = rustix::io::write(file, b"0");
    }
}

/// Mounts it, and hides what is not for sandboxes. The root is the prepared one, of which
/// every path was made by the spawner.
fn mount_proc(proc: &OwnedFd) -> rustix::io::Result<()> {
    move_mount(proc, "", CWD, "/proc", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    // Each kernel has some of the parts.
    let is_there = |part: &String| rustix::fs::access(part, Access::EXISTS).is_ok();
    let place = |part: &str| Some(format!("/proc/{part}")).filter(is_there);
    let hidden = HIDDEN_FILES.map(|part| (part, NO_FILE)).into_iter();
    for (part, by) in hidden.chain(HIDDEN_DIRS.map(|part| (part, NO_DIR))) {
        if let Some(part) = place(part) {
            mount_bind(by, part)?;
        }
    }
    let flags = MountFlags::BIND
        | MountFlags::RDONLY
        | MountFlags::NOSUID
        | MountFlags::NODEV
        | MountFlags::NOEXEC;
    for part in READ_ONLY.into_iter().filter_map(place) {
        mount_bind(&part, &part)?;
        mount_remount(&part, flags, "")?;
    }
    let (boot, by) = BOOT;
    if let Some(boot) = place(boot) {
        mount_bind(by, &boot)?;
        mount_remount(&boot, flags, "")?;
    }
    Ok(())
}

/// Mounts the message queues of this ipc namespace, if the kernel has any. Commands have
/// them without that (mq_open(3)), but not where Landlock is: what has no place in the root
/// is refused there.
fn mount_queues() -> rustix::io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    match mount("mqueue", "/dev/mqueue", "mqueue", flags, None) {
        Err(Errno::NODEV) => Ok(()),
        done => done,
    }
}
