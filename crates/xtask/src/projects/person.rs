//! Commands as a person would type them in a directory.
//!
//! Owns what is taken out of our environment for that: what cargo says to the programs that it
//! starts, and what would tell the program under test something else than we do.

use std::path::Path;
use std::time::Duration;

use crate::child::Child;

/// Variables that are ours and not a person's.
const OURS: [&str; 11] = [
    "CARGO",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTUP_TOOLCHAIN",
    "OUTRIGGER_CONFIG",
    "OUTRIGGER_DATA_DIR",
    "OUTRIGGER_MODEL",
    "OUTRIGGER_PROVIDER",
    "OUTRIGGER_BASE_URL",
];

/// These words, in a directory, for no longer than this.
pub(super) fn command(dir: &Path, time_max: Duration, words: &[&str]) -> Child {
    let (dir, seconds) = (dir.to_string_lossy(), time_max.as_secs().to_string());
    let unset = OURS.into_iter().flat_map(|name| ["-u", name]);
    let start = ["env", "-C", &dir].into_iter().chain(unset);
    let bounded = start.chain(["timeout", "--kill-after=10", &seconds]);
    Child::new(bounded.chain(words.iter().copied()))
}

/// A line for the shell.
pub(super) fn line(dir: &Path, time_max: Duration, line: &str) -> Child {
    command(dir, time_max, &["bash", "-c", line])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_in_the_directory_without_what_cargo_says() {
        let pwd =
            line(Path::new("/"), Duration::from_secs(60), "pwd; echo ${CARGO_MANIFEST_DIR-}.");
        assert_eq!(pwd.output().unwrap(), "/\n.\n");
    }
}
