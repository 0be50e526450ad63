//! Parsers of hostile bytes, fed with what a fuzzer makes up.
//!
//! Owns how the targets of `fuzz/` are built and run: with the coverage of LLVM's
//! sanitizers, which the stable compiler can insert, and libFuzzer. Address
//! sanitizing needs an unstable compiler and is left out: the parsers have no
//! unsafe code. Must never touch the corpus of another target.

use std::io::Write;
use std::path::Path;

use crate::child::{self, Child};

/// The programs of `fuzz/`, each one parser.
const TARGETS: [&str; 9] = [
    "wire_to_guest",
    "wire_from_guest",
    "hostile_guest",
    "spawner_message",
    "layer_tar",
    "image_document",
    "kept_table",
    "repository",
    "changes",
];

/// What makes the compiler count which branches an input took and what it compared.
const COVERAGE: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Clink-dead-code",
];

/// Why nothing was fuzzed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No target is called that.
    #[error("there is no fuzz target `{0}`; there are {targets}", targets = TARGETS.join(", "))]
    Unknown(String),
    /// The compiler does not say what it compiles for.
    #[error("`rustc --print host-tuple` says nothing")]
    Host,
    /// A directory of inputs could not be made.
    #[error("cannot make {path}")]
    Directory {
        /// Where.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A program could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// Our own output is gone.
    #[error("cannot write the output")]
    Write(#[from] std::io::Error),
}

/// Builds the targets and runs one, or each, for so long. The exit code: 0 nothing
/// was found, 1 something was.
pub(crate) fn run(
    root: &Path,
    target: Option<&str>,
    seconds: u64,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let chosen: Vec<&str> = match target {
        None => TARGETS.to_vec(),
        Some(name) => {
            let known = TARGETS.into_iter().find(|known| *known == name);
            vec![known.ok_or_else(|| Error::Unknown(name.to_owned()))?]
        }
    };
    let host = host()?;
    let fuzz = root.join("fuzz");
    let built = build(&fuzz, &host).run()?;
    if !built.success() {
        return Ok(child::code(built));
    }
    let programs = fuzz.join("target").join(&host).join("release");
    let mut found = Vec::new();
    for name in chosen {
        writeln!(out, "== {name}, {seconds} s")?;
        out.flush()?;
        if !feed(&programs, &fuzz, name, seconds)?.run()?.success() {
            found.push(name);
        }
    }
    let what = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    writeln!(out, "fuzz: found {what}")?;
    Ok(u8::from(!found.is_empty()))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What the compiler compiles for. Named explicitly, so that build scripts and
/// macros, which have no fuzzer in them, are compiled without its coverage.
fn host() -> Result<String, Error> {
    let words = ["rustc", "--print", "host-tuple"];
    let said = std::process::Command::new(words[0]).args(&words[1..]).output();
    let said = said.map_err(|_| Error::Host)?;
    let host = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if host.is_empty() { Err(Error::Host) } else { Ok(host) }
}

fn build(fuzz: &Path, host: &str) -> Child {
    let flags = format!("RUSTFLAGS={}", COVERAGE.join(" "));
    let (manifest, target) = (text(&fuzz.join("Cargo.toml")), text(&fuzz.join("target")));
    let words = ["env", flags.as_str(), "cargo", "build", "--release", "--quiet"];
    let places = ["--manifest-path", &manifest, "--target-dir", &target, "--target", host];
    Child::new(words.into_iter().chain(places))
}

/// The run of one target. What it finds interesting is kept for the next run; what
/// it breaks at is kept beside it.
fn feed(programs: &Path, fuzz: &Path, name: &str, seconds: u64) -> Result<Child, Error> {
    let corpus = fuzz.join("corpus").join(name);
    let findings = fuzz.join("findings").join(name);
    let seeds = fuzz.join("target/seeds").join(name);
    for path in [&corpus, &findings, &seeds] {
        std::fs::create_dir_all(path)
            .map_err(|source| Error::Directory { path: text(path), source })?;
    }
    Ok(Child::new([
        "env".to_owned(),
        format!("OUTRIGGER_FUZZ_SEEDS={}", text(&seeds)),
        text(&programs.join(name)),
        format!("-max_total_time={seconds}"),
        format!("-artifact_prefix={}/", text(&findings)),
        "-timeout=10".to_owned(),
        "-rss_limit_mb=2048".to_owned(),
        "-print_final_stats=1".to_owned(),
        "-verbosity=0".to_owned(),
        text(&corpus),
        text(&seeds),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_target_is_refused_with_those_there_are() {
        let error = run(Path::new("."), Some("nonsense"), 1, &mut Vec::new()).unwrap_err();
        let said = error.to_string();
        assert!(TARGETS.iter().all(|name| said.contains(name)), "{said}");
    }

    #[test]
    fn the_targets_are_those_of_the_manifest() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let bins = manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
        let bins: Vec<_> = bins.filter_map(|rest| rest.strip_suffix(".rs\"")).collect();
        assert_eq!(bins, TARGETS);
    }
}
