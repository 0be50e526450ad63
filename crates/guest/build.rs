//! Compiles this package's own binary as a static program and puts it where the
//! library embeds it from.
//!
//! Cargo has no stable way to depend on another package's binary for another
//! target, so this runs cargo once more, with its own target directory, and stops
//! there by a variable that the inner build sees.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Set for the inner build, so that it does not start a third.
const INNER: &str = "OUTRIGGER_GUEST_INNER_BUILD";
/// Name of the program, as in the manifest.
const NAME: &str = "outrigger-guest";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(outrigger_guest_inner)");
    println!("cargo::rerun-if-env-changed={INNER}");
    if env::var_os(INNER).is_some() {
        println!("cargo::rustc-cfg=outrigger_guest_inner");
        return;
    }
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).expect("this crate is in crates/ of the workspace");
    for path in ["build.rs", "src", "Cargo.toml", "../sandbox/src", "../sandbox/Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", here.join(path).display());
    }
    for path in ["Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    let arch = variable("CARGO_CFG_TARGET_ARCH");
    let target = format!("{arch}-unknown-linux-gnu");
    let out = PathBuf::from(variable("OUT_DIR"));
    let built = build(root, &target, &out.join("guest-target"));
    fs::copy(&built, out.join(NAME)).unwrap_or_else(|error| {
        panic!("cannot copy the guest program from {}: {error}", built.display())
    });
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}

fn build(root: &Path, target: &str, target_dir: &Path) -> PathBuf {
    let output = Command::new(variable("CARGO"))
        .current_dir(root)
        .args(["build", "--locked", "--profile", "guest", "--package", NAME, "--bin", NAME])
        .args(["--target", target, "--target-dir"])
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
        .unwrap_or_else(|error| panic!("cannot run cargo for the guest program: {error}"));
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr);
        let hint = if log.contains("cannot find -lc") || log.contains("cannot find -lm") {
            "\n\nThe guest is a static program and needs glibc's static libraries: \
             install libc6-dev (Debian, Ubuntu) or glibc-static (Fedora)."
        } else {
            ""
        };
        panic!("the guest program does not build:\n{log}{hint}");
    }
    target_dir.join(target).join("guest").join(NAME)
}
