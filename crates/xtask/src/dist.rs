//! What is published of the program, in one directory.
//!
//! Owns the list of files and how each is made: cargo builds, the program itself writes its
//! completions and pages, `tar`, `dpkg-deb` and `sha256sum` pack. Must never publish
//! anything, nor touch a file outside of its directory.

mod sbom;

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::child::{self, Child, code};
use crate::workspace::Workspace;

/// Why nothing whole was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// A program failed, and has said why.
    #[error("`{0}` failed")]
    Failed(String),
    /// A file could not be written.
    #[error("cannot write {path}")]
    File {
        /// Which.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Cargo does not say what the program is made of.
    #[error(transparent)]
    Sbom(#[from] sbom::Error),
    /// Our own output is gone.
    #[error("cannot write the progress")]
    Write(#[from] std::io::Error),
}

const NAME: &str = "outrigger";

/// Shells, and where Debian's packages keep completions for each.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/outrigger"),
    ("zsh", "usr/share/zsh/vendor-completions/_outrigger"),
    ("fish", "usr/share/fish/vendor_completions.d/outrigger.fish"),
];

const PROGRAM: &str = "usr/bin/outrigger";
const PAGES: &str = "usr/share/man/man1";
const DOC: &str = "usr/share/doc/outrigger";

/// What makes it a service: from `packaging`, to where it is installed, with its mode. The last
/// one may hold keys.
const SERVICE: [(&str, &str, u32); 4] = [
    ("outrigger.service", "usr/lib/systemd/system/outrigger.service", 0o644),
    ("bin/serve", "usr/lib/outrigger/serve", 0o755),
    ("bin/outrigger-server", "usr/sbin/outrigger-server", 0o755),
    ("server.env", "etc/outrigger/server.env", 0o600),
];

/// Beside `control`: deb-conffiles(5), and what dpkg(1) runs.
const OF_PACKAGE: [(&str, u32); 4] =
    [("conffiles", 0o644), ("postinst", 0o755), ("prerm", 0o755), ("postrm", 0o755)];

/// Makes everything anew; the exit code is 0, or nothing whole was made.
pub(crate) fn run(workspace: &Workspace, out: &mut impl Write) -> Result<u8, Error> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let dist = workspace.target.join("published");
    let name = format!("{NAME}-{}-{}-linux", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    // Rooted as it is installed; the archive is the same tree under the program's name.
    let root = workspace.target.join("published-tree").join(&name);
    clear(&dist)?;
    clear(&root)?;

    step(out, &build(&host))?;
    let built = workspace.target.join(&host).join("dist").join(NAME);
    put(&built, &root.join(PROGRAM), 0o755)?;
    for (shell, path) in SHELLS {
        let text = said(&built, &["completions", shell])?;
        write(&root.join(path), &text)?;
    }
    make_directory(&root.join(PAGES))?;
    step(out, &Child::new([&text(&built), "man", &text(&root.join(PAGES))]))?;
    step(out, &Child::new(["gzip", "--no-name", "-9", "--recursive", &text(&root.join(PAGES))]))?;
    put(&workspace.root.join("README.md"), &root.join(DOC).join("README.md"), 0o644)?;
    // By this name Debian's tools look for the licence.
    put(&workspace.root.join("LICENSE"), &root.join(DOC).join("copyright"), 0o644)?;

    let packaging = workspace.root.join("packaging");
    for (from, to, mode) in SERVICE {
        put(&packaging.join(from), &root.join(to), mode)?;
    }

    let parts = sbom::of(&workspace.root, NAME, &host)?;
    write(&dist.join(format!("{name}.cdx.json")), parts.as_bytes())?;
    step(out, &archive(&root, &name, &dist))?;
    write(&root.join("DEBIAN/control"), control(&root)?.as_bytes())?;
    for (name, mode) in OF_PACKAGE {
        put(&packaging.join("debian").join(name), &root.join("DEBIAN").join(name), mode)?;
    }
    let package = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build"].map(str::to_owned);
    step(out, &Child::new(package.into_iter().chain([text(&root), text(&dist)])))?;
    let sums = "cd \"$0\" && sha256sum -- * > ../SHA256SUMS && mv ../SHA256SUMS .";
    step(out, &Child::new(["sh", "-c", sums, &text(&dist)]))?;

    for entry in fs::read_dir(&dist).map_err(|source| file(&dist, source))? {
        let path = entry.map_err(|source| file(&dist, source))?.path();
        let bytes = fs::metadata(&path).map_err(|source| file(&path, source))?.len();
        writeln!(out, "{bytes:>10}  {}", path.display())?;
    }
    Ok(0)
}

/// A program that asks nothing of the system that it comes to but a kernel: static, with
/// the C library in it.
fn build(host: &str) -> Child {
    let words = ["cargo", "build", "--locked", "--profile", "dist", "--package", NAME];
    // With a target, the flags are for the program and not for what builds it.
    let words = words.into_iter().chain(["--target", host]);
    Child::new(words).with("RUSTFLAGS", "-C target-feature=+crt-static")
}

fn archive(root: &Path, name: &str, dist: &Path) -> Child {
    let to = text(&dist.join(format!("{name}.tar.gz")));
    let within = text(root.parent().expect("the root is named after what it holds"));
    let words = ["tar", "--create", "--gzip", "--owner=0", "--group=0", "--sort=name"];
    let words = words.into_iter().map(str::to_owned);
    Child::new(words.chain([
        "--file".to_owned(),
        to,
        "--directory".to_owned(),
        within,
        name.into(),
    ]))
}

/// What Debian's package says of itself: deb-control(5).
fn control(root: &Path) -> Result<String, Error> {
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let kib = size(root)?.div_ceil(1024);
    Ok(format!(
        "Package: {NAME}\n\
         Version: {}\n\
         Architecture: {machine}\n\
         Maintainer: The Outrigger authors\n\
         Installed-Size: {kib}\n\
         Depends: passwd\n\
         Recommends: uidmap\n\
         Section: devel\n\
         Priority: optional\n\
         Description: Runs AI agents with the harness outside the sandbox\n \
         The loop that prompts a model and performs what it asks for keeps keys, state and\n \
         decisions; what the model wants executed happens in a sandbox that holds nothing\n \
         worth stealing.\n",
        env!("CARGO_PKG_VERSION"),
    ))
}

/// Bytes of all files beneath a directory.
fn size(dir: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).map_err(|source| file(dir, source))? {
        let entry = entry.map_err(|source| file(dir, source))?;
        let about = entry.metadata().map_err(|source| file(&entry.path(), source))?;
        bytes += if about.is_dir() { size(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}

/// Shows what is done, and does it.
fn step(out: &mut impl Write, child: &Child) -> Result<(), Error> {
    writeln!(out, "== {}", child.typed())?;
    out.flush()?;
    if code(child.run()?) == 0 { Ok(()) } else { Err(Error::Failed(child.typed())) }
}

/// What the program says.
fn said(program: &Path, args: &[&str]) -> Result<Vec<u8>, Error> {
    let failed = || Error::Failed(format!("{} {}", program.display(), args.join(" ")));
    let output = std::process::Command::new(program).args(args).output();
    let output = output.map_err(|source| file(program, source))?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed()) }
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<(), Error> {
    make_directory(to.parent().expect("files lie in a directory"))?;
    fs::copy(from, to).map_err(|source| file(to, source))?;
    fs::set_permissions(to, Permissions::from_mode(mode)).map_err(|source| file(to, source))
}

fn write(to: &Path, bytes: &[u8]) -> Result<(), Error> {
    make_directory(to.parent().expect("files lie in a directory"))?;
    fs::write(to, bytes).map_err(|source| file(to, source))
}

fn make_directory(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(|source| file(dir, source))
}

/// An empty directory.
fn clear(dir: &PathBuf) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(file(dir, source)),
        _ => make_directory(dir),
    }
}

fn file(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.display().to_string(), source }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_program_is_static() {
        let child = build("x86_64-unknown-linux-gnu");
        expect!["cargo build --locked --profile dist --package outrigger --target x86_64-unknown-linux-gnu"]
            .assert_eq(&child.typed());
    }
}
