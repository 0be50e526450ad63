//! Secrets in containers: used by the same programs as natively, and found nowhere either.

use crate::canary::hits;
use crate::daemon::{self, Daemon};
use crate::secrets::{Forge, canary, memory_has_it_nowhere, used_and_found_nowhere};
use crate::support::{Ran, World};
use std::fs;
use std::path::PathBuf;

/// What the programs are, of this machine, with what they read. Links stay what they are.
const FILES: &str = "bin sbin lib lib64 etc/alternatives usr/bin/npm usr/lib/node_modules/npm \
    usr/lib/git-core usr/share/git-core usr/lib/python3.* usr/share/python-wheels";

/// Programs, which are put in with the libraries that they are linked with.
const PROGRAMS: &str =
    "sh bash env cat head cp rm ls mkdir sed grep printf uname curl python3 node git";

/// An image with the programs that use the secret, git among them.
pub(crate) fn image(world: &World, daemon: &Daemon) -> &'static str {
    let name = "outrigger-secrets:1";
    let script = "set -e; cd /; tar -cf $TAR --exclude '*.a' --exclude __pycache__ $(ls -d $FILES 2>/dev/null); \
        programs=$(for it in $PROGRAMS; do echo usr/bin/$it; done); \
        linked=\"$programs usr/lib/git-core/git-remote-https $(ls usr/lib/python3.*/lib-dynload/*.so)\"; \
        libraries=$(ldd $linked | grep -v ':$' | grep -o '/[^ ]*' | sed 's,^/\\(usr/\\)*,usr/,' | sort -u); \
        tar -rhf $TAR $programs $libraries";
    let archive = world.path("image.tar");
    let mut tar = world.command("sh");
    tar.args(["-c", script]).env("TAR", &archive).env("FILES", FILES).env("PROGRAMS", PROGRAMS);
    Ran::of(tar.output().unwrap()).expect(0);
    daemon.docker(&["import", archive.to_str().unwrap(), name]);
    fs::remove_file(archive).unwrap();
    name
}

/// Where the disks of this world's containers are on this machine.
fn disks(world: &World, daemon: &Daemon) -> Vec<PathBuf> {
    let owner = fs::read_to_string(world.harness().join("installation")).unwrap();
    let filter = format!("label=outrigger.owner={}", owner.trim());
    let each = |what: &str, field: &str| {
        let listed = daemon.docker(&[what, "ls", "-q", "--filter", &filter]);
        let inspect = |id: &str| daemon.docker(&[what, "inspect", "--format", field, id]);
        listed.lines().map(inspect).map(|path| PathBuf::from(path.trim())).collect::<Vec<_>>()
    };
    let written = each("container", "{{.GraphDriver.Data.UpperDir}}");
    assert!(!written.is_empty());
    [written, each("volume", "{{.Mountpoint}}")].concat()
}

#[test]
fn a_secret_in_a_container_is_used_and_found_nowhere() {
    let daemon = daemon::shared();
    let world = World::new();
    let forge = Forge::start(&world);
    let (socket, image) = (daemon.socket.display().to_string(), image(&world, &daemon));
    world.configure(&format!(
        "[sandbox]\nbackend = \"docker\"\n[docker]\nsocket = {socket:?}\nimage = {image:?}\n"
    ));
    used_and_found_nowhere(&world, &forge, |engine| {
        // The engine, the shell and curl.
        memory_has_it_nowhere(&world, engine, 3);
        let (mut searched, secret) = (0, canary());
        let mut search = |text: &str| {
            let found = disks(&world, &daemon).into_iter().filter(|disk| disk.is_dir());
            found.flat_map(|disk| hits(&disk, text, &mut searched)).collect::<Vec<_>>()
        };
        assert!(!search("GIT_TERMINAL_PROMPT=0").is_empty(), "their disks were looked at");
        assert_eq!(search(&secret), [""; 0]);
    });
}
