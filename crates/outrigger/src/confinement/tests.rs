//! Attempts to leave, each from a thread that has entered.

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::Signal;
use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use super::{calls, domain};
use crate::paths::Paths;

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { root: tempfile::tempdir().unwrap() };
        for dir in ["home/.ssh", "home/notes", "data/gate", "data/native", "data/harness", "work"] {
            fs::create_dir_all(place.path(dir)).unwrap();
        }
        for file in ["home/.ssh/id", "home/notes/a", "data/gate/master.key", "data/native/disk"] {
            fs::write(place.path(file), "secret").unwrap();
        }
        fs::write(place.path("work/there"), "mine").unwrap();
        fs::write(place.path("none.toml"), "").unwrap();
        for link in ["home/keys", "home/notes/keys"] {
            std::os::unix::fs::symlink(place.path("home/.ssh/id"), place.path(link)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    /// Does something as the harness, on a thread of its own.
    fn confined(&self, act: impl FnOnce(&Self) + Send) {
        let paths = Paths::resolve(Some(self.path("data")), Some(self.path("none.toml"))).unwrap();
        let enter = || {
            domain(&self.path("home"), &paths, &[self.path("work")]).unwrap();
            calls::filter().unwrap();
            act(self);
        };
        std::thread::scope(|scope| scope.spawn(enter).join().unwrap());
    }
}

fn is_refused<T>(what: std::io::Result<T>) {
    let error = what.err().expect("it was possible");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}

fn is_out_of_reach(path: &Path) {
    is_refused(fs::read(path));
    is_refused(fs::OpenOptions::new().write(true).open(path));
    is_refused(fs::File::options().append(true).open(path));
    is_refused(fs::remove_file(path));
    let beside = path.with_file_name("beside");
    is_refused(fs::write(&beside, "x"));
    is_refused(fs::create_dir(&beside));
    is_refused(std::os::unix::fs::symlink("/etc/passwd", &beside));
    is_refused(fs::File::create(path));
}

#[test]
fn keys_and_the_folders_of_others_are_out_of_reach() {
    Place::new().confined(|place| {
        for name in ["home/.ssh/id", "data/gate/master.key", "data/native/disk"] {
            is_out_of_reach(&place.path(name));
            // Nor by another name, made where it may make one.
            let here = place.path("data/harness/here");
            let linked = fs::hard_link(place.path(name), &here);
            assert!(linked.is_err());
            std::os::unix::fs::symlink(place.path(name), &here).unwrap();
            is_refused(fs::read(&here));
            fs::remove_file(&here).unwrap();
            assert!(fs::rename(place.path(name), &here).is_err());
        }
        assert!(fs::rename(place.path("data/gate"), place.path("data/harness/gate")).is_err());
        is_refused(fs::read("/etc/shadow"));
        is_refused(fs::read(place.path("home/notes/keys")));
        // Another process of this user may hold keys.
        let above = rustix::process::getppid().unwrap().as_raw_nonzero();
        for name in ["environ", "mem", "cmdline"] {
            is_refused(fs::File::open(format!("/proc/{above}/{name}")));
        }
        assert!(fs::read("/proc/self/status").is_ok() && fs::read("/proc/meminfo").is_ok());
    });
}

#[test]
fn it_writes_where_it_works_and_nowhere_else() {
    Place::new().confined(|place| {
        for dir in ["work", "data/harness"] {
            let (dir, file) = (place.path(dir).join("a/b"), place.path(dir).join("a/b/c"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(&file, "x").unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"x");
            fs::rename(&file, place.path("work/there")).unwrap();
            fs::remove_dir(&dir).unwrap();
        }
        assert_eq!(fs::read(place.path("home/notes/a")).unwrap(), b"secret", "it is no key");
        for outside in ["home/new", "home/notes/new", "data/new", "new"] {
            is_refused(fs::write(place.path(outside), "x"));
        }
        is_refused(fs::write(place.path("home/notes/a"), "x"));
        is_refused(fs::write(std::env::temp_dir().join("outrigger-left"), "x"));
        is_refused(fs::write("/etc/outrigger-left", "x"));
    });
}

#[test]
fn there_is_no_network_and_no_other_program() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    Place::new().confined(|place| {
        is_refused(TcpStream::connect(address));
        is_refused(UdpSocket::bind("127.0.0.1:0"));
        for family in [
            AddressFamily::INET6,
            AddressFamily::NETLINK,
            AddressFamily::PACKET,
            AddressFamily::VSOCK,
        ] {
            let made = socket(family, SocketType::DGRAM, None);
            assert_eq!(made.unwrap_err(), rustix::io::Errno::PERM, "{family:?}");
        }
        is_refused(Command::new("/bin/true").spawn());
        is_refused(Command::new("/proc/self/exe").spawn());
        let others =
            rustix::process::kill_process(rustix::process::getppid().unwrap(), Signal::CONT);
        assert_eq!(others.unwrap_err(), rustix::io::Errno::PERM);
        // What it reaches the gate, the spawner and the guests by.
        let socket = place.path("data/harness/socket");
        is_refused(UnixListener::bind(&socket));
        let (_ours, _theirs) = UnixStream::pair().unwrap();
    });
}
