//! Compiles this package's own binary as a static program and puts it where the
//! library embeds it from; the build script of `outrigger-evil`, too.
//!
//! Cargo has no stable way to depend on another package's binary for another
//! target, so this runs cargo once more, and stops there by a variable that the inner
//! build sees. What it builds lies beside what the outer build makes, so that clippy,
//! tests and a release take one and the same.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Set for the inner build, so that it does not start a third.
const INNER: &str = "OUTRIGGER_INNER_BUILD";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(outrigger_inner)");
    println!("cargo::rerun-if-env-changed={INNER}");
    if env::var_os(INNER).is_some() {
        println!("cargo::rustc-cfg=outrigger_inner");
        return;
    }
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).expect("this crate is in crates/ of the workspace");
    for path in
        ["../guest/build.rs", "src", "Cargo.toml", "../sandbox/src", "../sandbox/Cargo.toml"]
    {
        println!("cargo::rerun-if-changed={}", here.join(path).display());
    }
    for path in ["Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    let name = variable("CARGO_PKG_NAME");
    let out = PathBuf::from(variable("OUT_DIR"));
    // Of TARGET/PROFILE/build/PACKAGE/out.
    let outer = out.ancestors().nth(4).expect("cargo keeps what build scripts make in its target");
    // One for each: who waits for another's holds one of the jobs of the outer build.
    let built = build(root, &name, &outer.join("static").join(&name));
    fs::copy(&built, out.join(&name))
        .unwrap_or_else(|error| panic!("cannot copy {name} from {}: {error}", built.display()));
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}

fn build(root: &Path, name: &str, target_dir: &Path) -> PathBuf {
    let target = format!("{}-unknown-linux-gnu", variable("CARGO_CFG_TARGET_ARCH"));
    let output = Command::new(variable("CARGO"))
        .current_dir(root)
        .args(["build", "--locked", "--profile", "guest", "--package", name, "--bin", name])
        .args(["--target", &target, "--target-dir"])
        .arg(target_dir)
        .env(INNER, "1")
        .env("RUSTFLAGS", "-C target-feature=+crt-static -C relocation-model=static")
        // It would win over RUSTFLAGS, and holds what the outer build was given.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("CARGO_TARGET_DIR")
        // A wrapper (clippy's, for one) is for the outer build's sources, not for what this links.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CLIPPY_ARGS")
        .output()
        .unwrap_or_else(|error| panic!("cannot run cargo for {name}: {error}"));
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr);
        let hint = if log.contains("cannot find -lc") || log.contains("cannot find -lm") {
            "\n\nIt is a static program and needs glibc's static libraries: \
             install libc6-dev (Debian, Ubuntu) or glibc-static (Fedora)."
        } else {
            ""
        };
        panic!("{name} does not build:\n{log}{hint}");
    }
    target_dir.join(target).join("guest").join(name)
}
