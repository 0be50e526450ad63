//! Roots on real mounts. A child process builds and enters each and then looks
//! around; what it says is compared outside.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;

use super::*;
use crate::image::request::HostPaths;
use crate::spawner::store::DiskDir;

/// Owner of what the tests' sandboxes write, as a range would have it.
const FIRST: u32 = 1_900_000_000;
/// Owner of a lower tree.
const OTHER: u32 = 1_900_065_536;
const AGENT: u32 = 1000;

/// One disk on some layers.
struct World {
    dir: tempfile::TempDir,
    lowers: Vec<LowerDir>,
}

impl World {
    fn new() -> Self {
        assert!(rustix::process::geteuid().is_root(), "this test mounts: run it as root");
        let dir = tempfile::tempdir().unwrap();
        for name in ["staging", "one"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir, lowers: Vec::new() }
    }

    /// A new lower tree, below those that are there.
    fn lower(&mut self, first_id: Option<u32>) -> PathBuf {
        let tree = self.dir.path().join(format!("layer-{}", self.lowers.len()));
        fs::create_dir(&tree).unwrap();
        self.lowers.push(LowerDir { tree: tree.clone(), first_id });
        tree
    }

    /// What a process in the root says when it runs `look`.
    fn see(&self, base: Base, look: impl FnOnce() -> String) -> String {
        let staging = self.dir.path().join("staging");
        let disk_dir = DiskDir::at(self.dir.path().join("one"));
        let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        // A process of one thread, as the spawner is. What it runs was loaded before.
        // SAFETY: the child allocates, which the C library's fork makes safe; it never
        // returns to the test.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop(ours);
            let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let prepared = PreparedRoot::new(&staging, &HostPaths::default(), Vec::new())?;
                let plan = RootPlan {
                    elsewhere: Vec::new(),
                    staging,
                    base,
                    disk_dir,
                    lowers: self.lowers.clone(),
                    owner: FIRST,
                    agent: FIRST + AGENT,
                    tty_group: Some(FIRST + 5),
                    shm_bytes: 1 << 20,
                    served: Vec::new(),
                };
                let host = HostMounts::here()?;
                let ready = plan.ready(&prepared, &host)?;
                sys::enter_mounts(prepared.namespace.as_fd())?;
                leave_mounts()?;
                // A guest mounts more than that.
                mounts::make("proc", "/proc", rustix::mount::MountFlags::empty(), "")?;
                let entered = fs::File::open("/proc/self/ns/mnt")?;
                // As from outside: what the spawner does there is seen here.
                host.away(|| Ok(()), || Ok(()))?;
                ready.attach(entered.as_fd(), &host)?;
                sys::enter_mounts(entered.as_fd())?;
                io::Result::Ok(look())
            }));
            let said = match seen {
                Ok(Ok(said)) => said,
                Ok(Err(error)) => format!("ERROR {error}"),
                Err(_) => "PANIC".to_owned(),
            };
            let _ = std::io::Write::write_all(&mut &theirs, said.as_bytes());
            sys::leave(0);
        }
        drop(theirs);
        let mut said = String::new();
        ours.read_to_string(&mut said).unwrap();
        sys::wait(pid);
        said
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| format!("{error}"))
}

fn whose(path: &str) -> String {
    match fs::symlink_metadata(path) {
        Ok(found) => format!("{}:{}", found.uid() - FIRST, found.gid() - FIRST),
        Err(error) => error.to_string(),
    }
}

fn names(path: &str) -> String {
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names.join(" ")
}

fn whiteout(path: &Path) {
    rustix::fs::mknodat(
        CWD,
        path,
        rustix::fs::FileType::CharacterDevice,
        Mode::empty(),
        rustix::fs::makedev(0, 0),
    )
    .unwrap();
}

fn opaque(path: &Path) {
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(path, "trusted.overlay.opaque", b"y", flags).unwrap();
}

fn file(path: &Path, text: &str, owner: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    for path in [path, path.parent().unwrap()] {
        chown(path, Some(owner), Some(owner)).unwrap();
    }
}

#[test]
fn a_disk_that_stands_on_nothing_is_bound() {
    let world = World::new();
    let said = world.see(Base::HostTools, || {
        fs::write("/workspace/new", "new").unwrap();
        let refused = fs::write("/etc/new", "new").unwrap_err();
        format!("{} {} {refused}", whose("/workspace"), whose("/var/outrigger/output"))
    });
    assert_eq!(said, "1000:1000 0:0 Read-only file system (os error 30)");
    assert_eq!(read(world.dir.path().join("one/upper/workspace/new").to_str().unwrap()), "new");
    assert_eq!(names(world.dir.path().join("staging").to_str().unwrap()), "");
}

#[test]
fn a_fork_sees_its_layers_through_whiteouts_and_changes_none() {
    let mut world = World::new();
    let newest = world.lower(None);
    let oldest = world.lower(Some(OTHER));
    for name in ["kept", "gone", "changed", "dir/hidden", "deep/kept"] {
        file(&oldest.join("workspace").join(name), name, OTHER + AGENT);
    }
    file(&newest.join("workspace/changed"), "newer", FIRST + AGENT);
    file(&newest.join("workspace/dir/seen"), "seen", FIRST + AGENT);
    whiteout(&newest.join("workspace/gone"));
    opaque(&newest.join("workspace/dir"));
    let said = world.see(Base::HostTools, || {
        let before = names("/workspace");
        let text = format!("{} {}", read("/workspace/kept"), read("/workspace/changed"));
        fs::write("/workspace/kept", "written").unwrap();
        fs::remove_file("/workspace/deep/kept").unwrap();
        let owners = [whose("/workspace/kept"), whose("/workspace/deep"), whose("/workspace")];
        format!("{before}; {}; {text}; {}", names("/workspace/dir"), owners.join(" "))
    });
    assert_eq!(said, "changed deep dir kept; seen; kept newer; 1000:1000 1000:1000 1000:1000");
    assert_eq!(fs::read_to_string(oldest.join("workspace/kept")).unwrap(), "kept");
    assert!(oldest.join("workspace/deep/kept").exists());
    let upper = world.dir.path().join("one/upper/workspace");
    assert_eq!(fs::read_to_string(upper.join("kept")).unwrap(), "written");
    assert_eq!(fs::metadata(upper.join("kept")).unwrap().uid(), FIRST + AGENT);
    // It is there again for the next life, and a layer for the next fork.
    let again = world.see(Base::HostTools, || read("/workspace/kept"));
    assert_eq!(again, "written");
}

#[test]
fn thirty_three_layers_stack() {
    let mut world = World::new();
    for number in 0..33 {
        let owner = if number % 2 == 0 { None } else { Some(OTHER) };
        let tree = world.lower(owner);
        let id = owner.unwrap_or(FIRST) + AGENT;
        file(&tree.join(format!("workspace/{number}")), "x", id);
        file(&tree.join("workspace/top"), &number.to_string(), id);
    }
    let said = world.see(Base::HostTools, || {
        let all = fs::read_dir("/workspace").unwrap().count();
        let owned = (0..33).all(|number| whose(&format!("/workspace/{number}")) == "1000:1000");
        format!("{all} {owned} {}", read("/workspace/top"))
    });
    assert_eq!(said, "34 true 0");
}

#[test]
fn an_image_is_the_root_and_its_owners_are_those_inside() {
    let mut world = World::new();
    let image = world.lower(Some(0));
    file(&image.join("etc/passwd"), "root", 0);
    file(&image.join("opt/of-a-user"), "x", 33);
    let said = world.see(Base::Image, || {
        let places = ["/", "/etc/passwd", "/opt/of-a-user", "/workspace", "/home/agent"];
        let owners = places.map(whose).join(" ");
        fs::write("/workspace/new", "new").unwrap();
        let null = fs::read("/dev/null").unwrap().len();
        let proc = read("/proc/self/comm").len() > 1;
        format!("{owners}; {}; {}; {null} {proc}", names("/"), names("/dev"))
    });
    assert_eq!(
        said,
        "0:0 0:0 33:33 1000:1000 1000:1000; dev etc home opt proc run tmp var workspace; \
         .boot-id fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero; 0 true"
    );
    assert!(!image.join("workspace").exists());
}

#[test]
fn links_of_an_image_redirect_no_mount() {
    let mut world = World::new();
    let outside = world.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let image = world.lower(Some(0));
    file(&image.join("real/kept"), "kept", 0);
    for name in ["dev", "tmp", "workspace", "home", "var"] {
        symlink(&outside, image.join(name)).unwrap();
    }
    symlink("/real", image.join("proc")).unwrap();
    symlink("../../../../../..", image.join("run")).unwrap();
    symlink("/proc/1/root/etc", image.join("etc")).unwrap();
    let said = world.see(Base::Image, || {
        let kinds = ["/dev", "/proc", "/tmp", "/run", "/workspace", "/var/outrigger/output"];
        let links = kinds.map(|path| fs::symlink_metadata(path).unwrap().is_symlink());
        format!("{links:?} {}", names("/real"))
    });
    assert_eq!(said, "[false, false, false, false, false, false] kept");
    assert_eq!(names(outside.to_str().unwrap()), "");
    assert!(image.join("dev").is_symlink());
}

#[test]
fn a_lost_layer_is_an_error_that_names_it() {
    let mut world = World::new();
    let layer = world.lower(None);
    fs::remove_dir(&layer).unwrap();
    let said = world.see(Base::HostTools, || "entered".to_owned());
    assert!(said.starts_with("ERROR cannot open") && said.contains("layer-0"), "{said}");
}

#[test]
fn a_skeleton_serves_until_the_host_changes() {
    let prepared = |paths: &HostPaths| {
        let dir = tempfile::tempdir().unwrap();
        PreparedRoot::new(dir.path(), paths, Vec::new()).unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let tool = dir.path().join("tool");
    fs::write(&tool, "1").unwrap();
    let paths = HostPaths { read_only: vec![tool.clone()], ..HostPaths::default() };
    let one = prepared(&paths);
    assert!(one.serves(&paths, &[]) && !one.serves(&HostPaths::default(), &[]));
    fs::rename(&tool, dir.path().join("old")).unwrap();
    fs::write(&tool, "2").unwrap();
    one.forget_look();
    assert!(!one.serves(&paths, &[]));
}
