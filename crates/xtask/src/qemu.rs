//! The attacks in a virtual machine with Debian's kernel.
//!
//! Owns the machine: its kernel, its only file system, its time limit and its end. It
//! needs no rights on the host and must leave nothing behind but the kernel package
//! below the build's own folder. What the attacks come to, they say themselves.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::limits::QEMU_SECONDS_MAX;

/// What boots there.
const INIT: &str = include_str!("qemu/init.sh");
/// What confines an ordinary user's program there.
const PROFILE: &str = include_str!("qemu/profile");
/// Packages that depend on a kernel, newest first.
const KERNELS: [&str; 2] = ["linux-image-6.12-cloud-amd64", "linux-image-cloud-amd64"];
/// What the machine says last.
const LAST: &str = "attack: exit ";

/// Why the attacks could not be made there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program did not do what it was asked to.
    #[error("`{command}`: {said}")]
    Program {
        /// As a person would type it.
        command: String,
        /// What it said, or why it did not start.
        said: String,
    },
    /// A file could not be read, made or removed.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// There is no such machine.
    #[error("{0}")]
    Missing(String),
    /// It ran, and never came to its end.
    #[error("the machine did not end in {QEMU_SECONDS_MAX} s or said nothing at its end")]
    Hangs,
}

fn at<T>(what: &'static str, path: &Path, result: std::io::Result<T>) -> Result<T, Error> {
    result.map_err(|source| Error::File { what, path: path.to_owned(), source })
}

/// Runs a program in a folder; what it printed.
fn ask(dir: &Path, words: &[&str]) -> Result<String, Error> {
    let failed = |said: String| Error::Program { command: words.join(" "), said };
    let (program, args) = words.split_first().expect("a command has a program");
    let output = Command::new(program).args(args).current_dir(dir).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Boots the machine, attacks, and gives what its last line says.
pub(crate) fn run(target: &Path) -> Result<u8, Error> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err(Error::Missing(
            "the machine is an x86-64 one: run this on Linux on x86-64".to_owned(),
        ));
    }
    let dir = target.join("attack-qemu");
    at("make", &dir, fs::create_dir_all(&dir))?;
    let cargo = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "outrigger-attack", "--bin", "attack"])
        .status();
    if !cargo.is_ok_and(|status| status.success()) {
        return Err(Error::Missing("the attacks do not build".to_owned()));
    }
    let kernel = Kernel::unpacked(&dir)?;
    let root = dir.join("root");
    if root.exists() {
        at("remove", &root, fs::remove_dir_all(&root))?;
    }
    fill(&root, &target.join("release/attack"), &kernel)?;
    let image = dir.join("root.cpio");
    ask(&root, &["sh", "-c", "find . | busybox cpio --quiet -o -H newc > ../root.cpio"])?;
    let done = boot(&kernel.program, &image);
    at("remove", &root, fs::remove_dir_all(&root))?;
    at("remove", &image, fs::remove_file(&image))?;
    done
}

/// A kernel and its one module that is needed.
struct Kernel {
    program: PathBuf,
    overlay: PathBuf,
}

impl Kernel {
    /// From Debian's package, downloaded once.
    fn unpacked(dir: &Path) -> Result<Self, Error> {
        let missing = || {
            Error::Missing(format!("apt knows no {}: run apt-get update", KERNELS.join(" nor ")))
        };
        let package = KERNELS
            .iter()
            .find_map(|name| {
                let depends = ask(dir, &["apt-cache", "depends", name]).ok()?;
                let line = depends
                    .lines()
                    .find_map(|line| line.trim().strip_prefix("Depends: linux-image"))?;
                Some(format!("linux-image{line}"))
            })
            .ok_or_else(missing)?;
        let unpacked = dir.join(&package);
        if !unpacked.exists() {
            ask(dir, &["apt-get", "download", &package])?;
            let archive = found(dir, &format!("{package}_"))?;
            let archive_text = archive.display().to_string();
            let half = dir.join("half");
            let _ = fs::remove_dir_all(&half);
            ask(dir, &["dpkg-deb", "-x", &archive_text, "half"])?;
            at("remove", &archive, fs::remove_file(&archive))?;
            // Whole or not at all, whenever this is interrupted.
            at("rename", &half, fs::rename(&half, &unpacked))?;
        }
        let program = found(&unpacked.join("boot"), "vmlinuz-")?;
        let modules = found(&unpacked.join("lib/modules"), "")?;
        let overlay = found(&modules.join("kernel/fs/overlayfs"), "overlay.ko")?;
        Ok(Self { program, overlay })
    }
}

/// The first entry of a folder whose name begins so.
fn found(dir: &Path, start: &str) -> Result<PathBuf, Error> {
    let entries = at("read", dir, fs::read_dir(dir))?.flatten();
    let mut paths = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    let path = paths.next().map(|entry| entry.path());
    path.ok_or_else(|| Error::Missing(format!("there is no {start}* in {}", dir.display())))
}

/// The machine's only file system: busybox, the attacks with their libraries, the module.
fn fill(root: &Path, attack: &Path, kernel: &Kernel) -> Result<(), Error> {
    for name in ["bin", "lib", "lib64", "etc", "usr/bin", "modules"] {
        let dir = root.join(name);
        at("make", &dir, fs::create_dir_all(&dir))?;
    }
    let put = |source: &Path, inside: &str| {
        let path = root.join(inside.trim_start_matches('/'));
        if let Some(parent) = path.parent() {
            at("make", parent, fs::create_dir_all(parent))?;
        }
        at("copy", source, fs::copy(source, &path)).map(drop)
    };
    let write = |inside: &str, text: &str, mode: u32| {
        let path = root.join(inside);
        at("write", &path, fs::write(&path, text))?;
        at("change", &path, fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
    };
    let busybox = ask(root, &["sh", "-c", "command -v busybox"])?;
    put(Path::new(busybox.trim()), "bin/busybox")?;
    for name in ask(root, &["busybox", "--list"])?.lines().filter(|name| *name != "busybox") {
        let path = root.join("bin").join(name);
        at("link", &path, symlink("busybox", &path))?;
    }
    put(attack, "attack")?;
    // Every line that ends in an address names a library, by its path or after `=>`.
    for line in ask(root, &["ldd", &attack.display().to_string()])?.lines() {
        if let Some(library) = line.split_whitespace().find(|word| word.starts_with('/')) {
            put(Path::new(library), library)?;
        }
    }
    let overlay = kernel.overlay.display().to_string();
    let unpack = if overlay.ends_with(".xz") { "busybox xzcat" } else { "cat" };
    ask(root, &["sh", "-c", &format!("{unpack} '{overlay}' > modules/overlay.ko")])?;
    write("init", INIT, 0o755)?;
    write("etc/passwd", "root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n", 0o644)?;
    write("etc/group", "root:x:0:\nagent:x:1000:\n", 0o644)?;
    write("profile.text", PROFILE, 0o644)?;
    ask(
        root,
        &[
            "apparmor_parser",
            "--skip-kernel-load",
            "--skip-cache",
            "--ofile",
            "profile",
            "profile.text",
        ],
    )
    .map(drop)
}

/// Runs the machine to its end or the end of its time.
fn boot(kernel: &Path, image: &Path) -> Result<u8, Error> {
    let command = "qemu-system-x86_64";
    let lost = |error: std::io::Error| Error::Program {
        command: command.to_owned(),
        said: error.to_string(),
    };
    // Without cx16 masked, QEMU 7.2 double-faults when it emulates `max`.
    let mut machine = Command::new(command)
        .args(["-accel", "tcg,thread=multi", "-cpu", "max,-cx16", "-smp", "2", "-m", "2048"])
        .args([
            "-nodefaults",
            "-no-reboot",
            "-display",
            "none",
            "-serial",
            "stdio",
            "-monitor",
            "none",
        ])
        .args(["-append", "console=ttyS0 quiet loglevel=2 panic=-1 apparmor=1", "-kernel"])
        .arg(kernel)
        .arg("-initrd")
        .arg(image)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(lost)?;
    let console = machine.stdout.take().expect("its output was asked to be a pipe");
    let watched = std::thread::scope(|scope| {
        let reader = scope.spawn(|| follow(console));
        let begun = Instant::now();
        while !reader.is_finished() && begun.elapsed() < Duration::from_secs(QEMU_SECONDS_MAX) {
            std::thread::sleep(Duration::from_millis(100));
        }
        // It may have turned itself off; if not, this ends the reader too.
        let _ = machine.kill();
        reader.join()
    });
    machine.wait().map_err(lost)?;
    watched.ok().flatten().ok_or(Error::Hangs)
}

/// Shows what the machine says, and reads its last line.
fn follow(console: impl std::io::Read) -> Option<u8> {
    let mut exit = None;
    let mut lines = BufReader::new(console);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        let text = String::from_utf8_lossy(&line);
        // Whoever watches may be gone; the machine is still followed to its end.
        let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
        exit = text.trim().strip_prefix(LAST).and_then(|code| code.parse().ok()).or(exit);
        line.clear();
    }
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_exit_code() {
        assert_eq!(follow(&b"boots\r\nattack: exit 1\r\n"[..]), Some(1));
        assert_eq!(follow(&b"boots\r\n"[..]), None);
    }
}
