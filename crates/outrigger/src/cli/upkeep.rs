//! `outrigger gc`, `backup` and `restore`, as they are typed.

use clap::Args;
use std::path::PathBuf;

use super::Output;
use crate::limits;

/// What is let go.
#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Only show what would go.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also sessions that are over and patches that nobody touched for so long, and what is
    /// kept of disks; instead of what `[retention]` and `sandbox.retention_hours` say.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Age>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A copy of everything.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// Where it is written; a file that is there is left as it is.
    pub(crate) file: PathBuf,
    /// Include the key that signs the audit log. Whoever has the file can then sign what
    /// they like; without it, nothing new is signed after a restore.
    #[arg(long)]
    pub(crate) with_key: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The way back.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// What `outrigger backup` wrote.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How old something is, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) u64);

/// Reads an age: a number of days, hours or minutes.
fn age(text: &str) -> Result<Age, String> {
    let wrong = || format!("`{text}` is no age: write for example 30d, 12h or 90m");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let unit_ms = match unit {
        'd' => limits::DAY_MS,
        'h' => 3_600_000,
        'm' => 60_000,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(unit_ms).map(Age).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (text, ms) in [
            ("30d", Some(30 * 86_400_000)),
            ("0h", Some(0)),
            ("90m", Some(5_400_000)),
            ("", None),
            ("d", None),
            ("30", None),
            ("-1d", None),
            ("1\u{e9}", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(age(text).ok(), ms.map(Age), "{text}");
        }
    }
}
