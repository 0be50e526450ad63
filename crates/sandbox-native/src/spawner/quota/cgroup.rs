//! Control groups: where this process may make some, and those of a sandbox.
//!
//! Owns the difference between version 2 (one tree), version 1 (a tree per
//! controller), both at once, and none. Limits are set on the sandbox as a whole;
//! below it the guest makes a group per command without controllers, because each
//! memory group outlives its processes for as long as the page cache remembers it.

mod below;
mod cpu;
mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use outrigger_sandbox::CreateSpec;
use outrigger_sandbox::cpu::CpuQuota;
use rustix::fs::{Access, CWD, Gid, OFlags, Uid};
use rustix::mount::{OpenTreeFlags, open_tree};

use self::cpu::Version;
use self::file::{open, put};
use crate::limits;

/// The group, below that of a sandbox, in which its guest has all commands.
const COMMANDS: &str = "run";
/// Controllers that carry limits.
const LIMITING: [&str; 3] = ["memory", "pids", "cpu"];

/// Where groups can be made.
#[derive(Debug, Default)]
pub(crate) struct CgroupRoots {
    /// A directory of version 2 whose children we may make.
    pub(crate) unified: Option<PathBuf>,
    /// Controllers that its children can have.
    pub(crate) unified_controllers: BTreeSet<String>,
    /// A directory per controller of version 1.
    pub(crate) legacy: BTreeMap<&'static str, PathBuf>,
}

impl CgroupRoots {
    /// Whether all three limits can be set.
    pub(crate) fn limiting(&self) -> bool {
        LIMITING
            .iter()
            .all(|&name| self.unified_controllers.contains(name) || self.legacy.contains_key(name))
    }

    /// Whether what commands left behind can be stopped.
    pub(crate) fn freezing(&self) -> bool {
        self.unified.is_some() || self.legacy.contains_key("freezer")
    }

    /// What is there, in words.
    pub(crate) fn describe(&self) -> String {
        let unified = match &self.unified {
            Some(_) if !self.unified_controllers.is_empty() => {
                let names: Vec<&str> =
                    self.unified_controllers.iter().map(String::as_str).collect();
                format!("cgroup version 2 ({})", names.join(", "))
            }
            // Without controllers it serves to kill, which is another layer.
            Some(_) | None => String::new(),
        };
        let names: Vec<&str> = self.legacy.keys().copied().collect();
        let legacy = if names.is_empty() {
            String::new()
        } else {
            format!("cgroup version 1 ({})", names.join(", "))
        };
        let parts: Vec<String> =
            [unified, legacy].into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { "no writable cgroup".to_owned() } else { parts.join("; ") }
    }
}

fn words(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn writable(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK).is_ok()
}

/// Finds where this process may make groups. Makes none.
pub(crate) fn find() -> CgroupRoots {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut roots = CgroupRoots::default();
    for (root, point, kind, options) in mounts.lines().filter_map(mount) {
        let path_of = |names: &dyn Fn(&str) -> bool| {
            own.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                let (controllers, path) = (fields.next()?, fields.next()?);
                names(controllers).then_some(path)
            })
        };
        let below = |path: &str| {
            point.join(path.strip_prefix(root).unwrap_or(path).trim_start_matches('/'))
        };
        if kind == "cgroup2" {
            let Some(own) = path_of(&str::is_empty) else { continue };
            find_unified(&below(own), &point, &mut roots);
        } else if kind == "cgroup" {
            for name in LIMITING.into_iter().chain(["freezer"]) {
                let has = |list: &str| list.split(',').any(|item| item == name);
                let Some(own) = path_of(&has).filter(|_| has(options)) else { continue };
                if writable(&below(own)) {
                    roots.legacy.insert(name, below(own));
                }
            }
        }
    }
    roots
}

/// Root, mount point, type and super options of a line of mountinfo; see proc(5).
fn mount(line: &str) -> Option<(&str, PathBuf, &str, &str)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let mut right = right.split(' ');
    Some((left.next()?, PathBuf::from(left.next()?), right.next()?, right.nth(1)?))
}

/// The nearest group above us that is ours to divide, best one that passes
/// controllers on.
fn find_unified(own: &Path, top: &Path, roots: &mut CgroupRoots) {
    for dir in own.ancestors().take_while(|dir| dir.starts_with(top)) {
        if !writable(dir) || !writable(&dir.join("cgroup.procs")) {
            continue;
        }
        let passed_on = words(&dir.join("cgroup.subtree_control"));
        let wanted = LIMITING.into_iter().map(str::to_owned);
        let has: BTreeSet<String> = wanted.filter(|name| passed_on.contains(name)).collect();
        if roots.unified.is_none() || has.len() > roots.unified_controllers.len() {
            roots.unified = Some(dir.to_owned());
            roots.unified_controllers = has;
        }
    }
}

/// The groups of one spawner.
#[derive(Debug)]
pub(crate) struct Groups {
    unified: Option<PathBuf>,
    controllers: BTreeSet<String>,
    legacy: BTreeMap<&'static str, PathBuf>,
}

/// The groups of one sandbox.
#[derive(Debug)]
pub(crate) struct Group {
    unified: Option<PathBuf>,
    legacy: BTreeMap<&'static str, PathBuf>,
    events: Option<PathBuf>,
}

impl Groups {
    /// Makes the spawner's own directories, under a name that is unique to its state
    /// directory, and removes what an earlier spawner left in them.
    pub(crate) fn open(roots: CgroupRoots, name: &str) -> Self {
        let mut groups =
            Self { unified: None, controllers: roots.unified_controllers, legacy: BTreeMap::new() };
        if let Some(dir) = roots.unified.map(|dir| dir.join(name))
            && make(&dir).is_ok()
        {
            for controller in &groups.controllers {
                let _ = fs::write(dir.join("cgroup.subtree_control"), format!("+{controller}"));
            }
            groups.controllers = words(&dir.join("cgroup.subtree_control"));
            groups.unified = Some(dir);
        }
        for (controller, dir) in roots.legacy {
            let dir = dir.join(name);
            if make(&dir).is_ok() {
                groups.legacy.insert(controller, dir);
            }
        }
        groups.weigh();
        for dir in groups.unified.iter().chain(groups.legacy.values()) {
            for stale in children(dir) {
                remove(&stale);
            }
        }
        groups
    }

    /// Lets all sandboxes together count as more than one process of the host's: else,
    /// where the host is busy, one of them takes half of what all of them get.
    fn weigh(&self) {
        if let Some(dir) = self.unified.as_ref().filter(|_| self.controllers.contains("cpu")) {
            Version::Unified.weigh(dir, limits::SANDBOXES_WEIGHT_PERCENT);
        }
        if let Some(dir) = self.legacy.get("cpu") {
            Version::Legacy.weigh(dir, limits::SANDBOXES_WEIGHT_PERCENT);
        }
    }

    /// Removes the spawner's own directories, once nothing is left in them.
    pub(crate) fn close(&self) {
        for dir in self.unified.iter().chain(self.legacy.values()) {
            remove(dir);
        }
    }

    /// Where the groups of a name are.
    pub(crate) fn at(&self, name: &str) -> Group {
        let unified = self.unified.as_ref().map(|dir| dir.join(name));
        let taken = |controller: &str| {
            self.controllers.contains(controller) || (controller == "freezer" && unified.is_some())
        };
        let legacy: BTreeMap<_, _> = self
            .legacy
            .iter()
            .filter(|(controller, _)| !taken(controller))
            .map(|(controller, dir)| (*controller, dir.join(name)))
            .collect();
        let events = match (&unified, legacy.get("memory")) {
            (Some(dir), _) if self.controllers.contains("memory") => Some((dir, Version::Unified)),
            (_, dir) => dir.map(|dir| (dir, Version::Legacy)),
        };
        let events = events.map(|(dir, version)| dir.join(version.memory_events()));
        Group { unified, legacy, events }
    }

    /// Makes groups, without limits yet.
    pub(crate) fn make(&self, group: &Group) -> io::Result<()> {
        let made = group.dirs().try_for_each(|dir| make(dir));
        if let Some(dir) = &group.unified {
            // One group for all commands, and one for each.
            let _ = put(&dir.join("cgroup.max.depth"), "2");
            let _ = put(&dir.join("cgroup.max.descendants"), &limits::GROUPS_MAX.to_string());
        }
        if made.is_err() {
            group.remove();
        }
        made
    }

    /// Sets the limits of a sandbox on its groups, and gives them to `owner` as far as
    /// its guest divides them further.
    pub(crate) fn limit(&self, group: &Group, spec: &CreateSpec, owner: u32) -> io::Result<()> {
        let serves = if spec.served.is_empty() { 0 } else { limits::GUEST_SERVED_BYTES };
        let memory = (spec.memory_bytes_max + limits::GUEST_MEMORY_BYTES + serves).to_string();
        let pids = (spec.pids_max + limits::GUEST_PROCESSES).to_string();
        if let Some(dir) = &group.unified {
            if self.controllers.contains("memory") {
                put(&dir.join("memory.max"), &memory)?;
                // Absent without swap accounting, where there is nothing to limit.
                let _ = put(&dir.join("memory.swap.max"), "0");
            }
            if self.controllers.contains("pids") {
                put(&dir.join("pids.max"), &pids)?;
            }
            if self.controllers.contains("cpu") {
                Version::Unified.limit(dir, CpuQuota::of(spec))?;
            }
            own(dir, owner, &["cgroup.procs", "cgroup.subtree_control", "cgroup.threads"])?;
        }
        for (controller, dir) in &group.legacy {
            match *controller {
                "memory" => {
                    put(&dir.join("memory.limit_in_bytes"), &memory)?;
                    let _ = put(&dir.join("memory.memsw.limit_in_bytes"), &memory);
                    // What waits in sockets, which version 2 counts with all else. Without,
                    // it is taken from what all sockets of the host may have together.
                    let _ = put(&dir.join("memory.kmem.tcp.limit_in_bytes"), &memory);
                }
                "pids" => put(&dir.join("pids.max"), &pids)?,
                "cpu" => Version::Legacy.limit(dir, CpuQuota::of(spec))?,
                _ => own(dir, owner, &["cgroup.procs", "tasks"])?,
            }
        }
        Ok(())
    }
}

fn make(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn own(dir: &Path, owner: u32, files: &[&str]) -> io::Result<()> {
    for path in std::iter::once(dir.to_owned()).chain(files.iter().map(|file| dir.join(file))) {
        rustix::fs::chown(&path, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?;
    }
    Ok(())
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let dirs = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.map(|entry| entry.path()).collect()
}

/// Kills what is in a group and removes it with the groups below it.
fn remove(dir: &Path) {
    let mut left = limits::CGROUPS_WALKED_MAX;
    for attempt in 0..limits::CGROUP_REMOVE_ATTEMPTS_MAX {
        // Mostly it is empty, and to look is slower than to try.
        if attempt == 0 && fs::remove_dir(dir).is_ok() {
            return;
        }
        // In version 1 what is stopped can't be killed.
        if dir.join("freezer.state").exists() {
            below::thaw(dir, left);
        }
        below::remove(dir, &mut left);
        match fs::remove_dir(dir) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && left > 0 => {}
            Ok(()) | Err(_) => return,
        }
        let _ = fs::write(dir.join("cgroup.kill"), "1");
        for pid in words(&dir.join("cgroup.procs")).iter().filter_map(|pid| pid.parse().ok()) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(limits::CGROUP_REMOVE_PAUSE_MS));
    }
}

/// A directory as a mount of its own, so that its holder can't climb out of it. For
/// use as the start of paths alone.
fn detached(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(open_tree(CWD, dir, flags)?)
}

impl Group {
    /// All that the start of a guest needs of the groups.
    pub(crate) fn handles(&self) -> io::Result<Handles> {
        let unified = self.unified.as_deref().map(detached).transpose()?;
        let freezer = self.legacy.get("freezer").map(|dir| detached(dir)).transpose()?;
        let events = self.events.as_ref().map(|path| open(path, OFlags::RDONLY)).transpose()?;
        // Of `tasks`, unlike `cgroup.procs`, the kernel lets a process with one thread
        // move itself without stopping all forks of the system first.
        let doors = self.legacy.values().map(|dir| open(&dir.join("tasks"), OFlags::WRONLY));
        let doors = doors.collect::<io::Result<_>>()?;
        Ok(Handles { unified, freezer, events, doors })
    }

    /// Whether its guest stopped what commands left behind.
    pub(crate) fn is_frozen(&self) -> bool {
        let says = |path: PathBuf, wanted: &str| {
            fs::read_to_string(path).is_ok_and(|text| text.trim() == wanted)
        };
        match (&self.unified, self.legacy.get("freezer")) {
            (Some(dir), _) => says(dir.join(COMMANDS).join("cgroup.freeze"), "1"),
            (None, Some(dir)) => says(dir.join(COMMANDS).join("freezer.state"), "FROZEN"),
            (None, None) => false,
        }
    }

    /// Lets everything in it go on where what is stopped can't be killed: in version 1.
    pub(crate) fn thaw(&self) {
        if let Some(dir) = self.legacy.get("freezer") {
            below::thaw(dir, limits::CGROUPS_WALKED_MAX);
        }
    }

    /// As [`Group::thaw`], after taking a process out to where nothing of the sandbox
    /// can stop it again: in version 1, into the spawner's own group.
    pub(crate) fn release(&self, pid: i32) {
        if let Some(above) = self.legacy.get("freezer").and_then(|dir| dir.parent()) {
            let _ = put(&above.join("cgroup.procs"), &pid.to_string());
            self.thaw();
        }
    }

    fn dirs(&self) -> impl Iterator<Item = &PathBuf> {
        self.unified.iter().chain(self.legacy.values())
    }

    /// Kills what is left and removes the groups.
    pub(crate) fn remove(&self) {
        for dir in self.dirs() {
            remove(dir);
        }
    }
}

/// Descriptors for a guest that is to be made.
#[derive(Debug)]
pub(crate) struct Handles {
    /// Its group of version 2.
    pub(crate) unified: Option<OwnedFd>,
    /// Its group of the freezer, without one of version 2.
    pub(crate) freezer: Option<OwnedFd>,
    /// The file that counts kills for memory.
    pub(crate) events: Option<OwnedFd>,
    /// Files to write to, to enter the groups of version 1.
    pub(crate) doors: Vec<OwnedFd>,
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    /// A group of this test alone in each hierarchy that there is, at least one.
    fn own_groups(name: &str) -> Vec<PathBuf> {
        let CgroupRoots { unified, legacy, .. } = find();
        let dirs: Vec<PathBuf> = unified
            .into_iter()
            .chain(legacy.into_values())
            .map(|dir| dir.join(format!("outrigger-test-{name}-{}", std::process::id())))
            .collect();
        assert!(!dirs.is_empty(), "this test needs writable cgroups: run it as root");
        dirs.iter().for_each(|dir| make(dir).unwrap());
        dirs
    }

    #[test]
    fn groups_go_whole_however_deep_and_with_what_is_in_them() {
        for dir in own_groups("deep") {
            let mut deep = dir.clone();
            for _ in 0..100 {
                deep.push("d");
                fs::create_dir_all(deep.join("beside")).unwrap();
            }
            let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
            put(&deep.join("cgroup.procs"), &sleep.id().to_string()).unwrap();
            let _ = fs::write(dir.join("d/freezer.state"), "FROZEN");
            remove(&dir);
            assert!(!sleep.wait().unwrap().success());
            // One that took long to end may have kept its group.
            remove(&dir);
            assert!(!dir.exists(), "{} is there", dir.display());
        }
    }

    #[test]
    fn no_more_groups_are_looked_at_than_was_said() {
        for dir in own_groups("wide") {
            for number in 0..20 {
                make(&dir.join(number.to_string())).unwrap();
            }
            let mut left = 10;
            below::remove(&dir, &mut left);
            assert_eq!((left, children(&dir).len()), (0, 20));
            remove(&dir);
            assert!(!dir.exists());
        }
    }

    /// As a guest could that turned against its spawner.
    #[test]
    fn what_is_stopped_again_and_again_ends() {
        let Some(freezer) = find().legacy.remove("freezer") else {
            // Only there what is stopped does not die.
            assert!(find().unified.is_some(), "this test needs writable cgroups: run it as root");
            return;
        };
        let top = freezer.join(format!("outrigger-test-stop-{}", std::process::id()));
        let (sandbox, commands) = (top.join("s-one"), top.join("s-one/run"));
        fs::create_dir_all(&commands).unwrap();
        let legacy = BTreeMap::from([("freezer", sandbox.clone())]);
        let group = Group { unified: None, legacy, events: None };
        let mut sleep = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let pid = i32::try_from(sleep.id()).unwrap();
        put(&commands.join("cgroup.procs"), &pid.to_string()).unwrap();
        let over = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = fs::write(commands.join("freezer.state"), "FROZEN");
                }
            });
            // Until it is stopped, or its end would be none of those meant here.
            let limit = Instant::now() + Duration::from_secs(20);
            while !words(&commands.join("freezer.state")).contains("FROZEN") {
                assert!(Instant::now() < limit, "it is not stopped");
            }
            sleep.kill().unwrap();
            let mut ended = false;
            // poll: what was stopped ends in its own time
            while !ended && Instant::now() < limit {
                group.release(pid);
                ended = sleep.try_wait().unwrap().is_some();
            }
            over.store(true, Ordering::Relaxed);
            ended
        });
        group.remove();
        remove(&top);
        assert!(ended && !top.exists());
        sleep.wait().unwrap();
    }

    #[test]
    fn a_line_of_mountinfo_is_read() {
        let line =
            "36 35 98:0 /a /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory";
        let read = mount(line).unwrap();
        assert_eq!(read, ("/a", PathBuf::from("/sys/fs/cgroup/memory"), "cgroup", "rw,memory"));
    }
}
