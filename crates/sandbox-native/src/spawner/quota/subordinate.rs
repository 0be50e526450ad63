//! Subordinate ids of an ordinary user (subuid(5), subgid(5)).
//!
//! Owns how a process gets them: newuidmap(1) and newgidmap(1), which alone may write
//! such a map, are run with the process's number. Must never ask for ids that the
//! files do not give this user, and never run a program that is not one of these two.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::limits::{SHARED_ID_FIRST, SHARED_IDS};

/// Where distributions have the two programs.
const PLACES: [&str; 4] = ["/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin"];

/// First ids of the ranges that are used, of users and of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ranges {
    users: u32,
    groups: u32,
}

/// The first range of a user that is long enough, in the form of subuid(5).
fn long_enough(text: &str, name: &str, uid: u32) -> Option<u32> {
    let uid = uid.to_string();
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        let first = fields.next()?.trim().parse::<u32>().ok()?;
        let count = fields.next()?.trim().parse::<u32>().ok()?;
        let ours = owner == uid || (!name.is_empty() && owner == name);
        (ours && count >= SHARED_IDS && first.checked_add(count).is_some()).then_some(first)
    })
}

fn user_name(uid: u32) -> String {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid.to_string()).then(|| name.to_owned())
    });
    name.unwrap_or_default()
}

fn ranges() -> Result<Ranges, String> {
    let uid = rustix::process::getuid().as_raw();
    let name = user_name(uid);
    let find = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        long_enough(&text, &name, uid).ok_or_else(|| {
            let who = if name.is_empty() { uid.to_string() } else { name.clone() };
            format!(
                "{path} gives {who} no range of {SHARED_IDS} ids: \
                 `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {who}`, \
                 with numbers that nobody else has"
            )
        })
    };
    Ok(Ranges { users: find("/etc/subuid")?, groups: find("/etc/subgid")? })
}

fn run(program: &str, pid: u32, own: u32, first: u32) -> Result<(), String> {
    let path =
        PLACES.iter().map(|disk_dir| Path::new(disk_dir).join(program)).find(|path| path.exists());
    let path = path.ok_or_else(|| {
        format!(
            "`{program}` is missing: install the package uidmap (Debian, Ubuntu) or shadow-utils"
        )
    })?;
    let words = [pid, 0, own, 1, SHARED_ID_FIRST, first, SHARED_IDS].map(|word| word.to_string());
    let ran = Command::new(path).args(words).env_clear().stdin(Stdio::null()).output();
    match ran {
        Ok(ran) if ran.status.success() => Ok(()),
        Ok(ran) => {
            let said = String::from_utf8_lossy(&ran.stderr);
            Err(format!("`{program}` refused: {}", said.trim()))
        }
        Err(error) => Err(format!("`{program}` can't be run: {error}")),
    }
}

/// Gives a process of this user, which just entered a user namespace, the user's own id
/// as 0 and the subordinate ones from [`SHARED_ID_FIRST`] on.
///
/// # Errors
/// What is missing and what would fix it, for a person.
pub(crate) fn map(pid: u32) -> Result<(), String> {
    let Ranges { users, groups } = ranges()?;
    run("newuidmap", pid, rustix::process::getuid().as_raw(), users)?;
    run("newgidmap", pid, rustix::process::getgid().as_raw(), groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_range_of_the_user_that_is_long_enough_counts() {
        let text = "other:1:65536\nme:5:10\nbad\nme:x:y\nme:100000:65536\n1000:300000:65535\n";
        assert_eq!(long_enough(text, "me", 1000), Some(100_000));
        assert_eq!(long_enough(text, "", 1000), Some(300_000));
        assert_eq!(long_enough(text, "nobody", 65_534), None);
        assert_eq!(long_enough("me:4294901761:65536\n", "me", 1), None);
        assert_eq!(long_enough(":1:65536\n", "", 1), None);
    }
}
