//! What a sandbox is made from, and how long it is kept.

use serde::{Deserialize, Serialize};

use crate::path::{is_canonical, is_within};
use crate::{DiskOrigin, Error, Isolation, limits};

/// What a sandbox is made from. Mounts, devices, privileges and host network are
/// not expressible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateSpec {
    /// Where its disk begins.
    pub origin: DiskOrigin,
    /// The least isolation that the caller accepts; less is [`crate::Error::Unavailable`].
    pub isolation_min: Isolation,
    /// Memory of all processes together, in bytes.
    pub memory_bytes_max: u64,
    /// Processes and threads at once.
    pub pids_max: u32,
    /// CPU, in thousandths of a core.
    pub cpu_millis_max: u32,
    /// What is written to its disk, in bytes. How exactly it is kept to says
    /// [`crate::Capabilities::disk_limit`].
    pub disk_bytes_max: u64,
    /// Files, directories and links on its disk.
    pub disk_inodes_max: u64,
    /// How long it is kept when nobody asks for it.
    pub lifetime: Lifetime,
    /// Folders of its root into which a tree is served ([`crate::Tree`]), for example
    /// `/memory`; at most [`limits::SERVED_MAX`]. Where [`crate::Capabilities::live_mounts`]
    /// is not they are empty and can't be written to; where nobody serves, what programs ask
    /// for fails.
    #[serde(default)]
    pub served: Vec<String>,
}

impl Default for CreateSpec {
    fn default() -> Self {
        Self {
            origin: DiskOrigin::default(),
            isolation_min: Isolation::RootlessSingle,
            memory_bytes_max: 2 << 30,
            pids_max: 512,
            cpu_millis_max: 2_000,
            disk_bytes_max: 10 << 30,
            disk_inodes_max: 1_000_000,
            lifetime: Lifetime::default(),
            served: Vec::new(),
        }
    }
}

impl CreateSpec {
    /// Checks what does not depend on the backend.
    ///
    /// # Errors
    /// [`Error::Invalid`] says what is wrong and what the limit is.
    pub fn check(&self) -> Result<(), Error> {
        let amounts = [
            ("memory", self.memory_bytes_max),
            ("processes", u64::from(self.pids_max)),
            ("CPU", u64::from(self.cpu_millis_max)),
            ("bytes of disk", self.disk_bytes_max),
            ("files", self.disk_inodes_max),
        ];
        if let Some((what, _)) = amounts.iter().find(|(_, amount)| *amount == 0) {
            return Err(Error::Invalid(format!("a sandbox with no {what} at all")));
        }
        let times = [("idle time", self.lifetime.idle_ms_max), ("age", self.lifetime.age_ms_max)];
        for (what, given) in times {
            let max = limits::LIFETIME_MS_MAX;
            if let Some(given) = given
                && !(1..=max).contains(&given)
            {
                let words = format!("{what} of {given} ms; 1 to {max} can be asked for");
                return Err(Error::Invalid(words));
            }
        }
        self.check_served()
    }

    /// Checks the folders into which trees are served.
    ///
    /// # Errors
    /// [`Error::Invalid`] says which of them can't be one.
    pub fn check_served(&self) -> Result<(), Error> {
        let max = limits::SERVED_MAX;
        if self.served.len() > max {
            let given = self.served.len();
            return Err(Error::Invalid(format!("{given} served folders; {max} is the most")));
        }
        for (number, path) in self.served.iter().enumerate() {
            let top = path.split('/').nth(1).unwrap_or_default();
            let why = if !is_canonical(path) {
                "it is not an absolute path without `.`, `..` and double slashes"
            } else if path.len() > limits::TREE_NAME_BYTES_MAX {
                "it is too long"
            } else if NOT_SERVED.contains(&top) {
                "that place has something else in it"
            } else if self.served[..number].iter().any(|other| nested(other, path)) {
                "it is another one of them, or within one"
            } else {
                continue;
            };
            let shown: String = path.chars().take(limits::TREE_NAME_BYTES_MAX).collect();
            return Err(Error::Invalid(format!("`{shown}` can't be a served folder: {why}")));
        }
        Ok(())
    }
}

/// Top directories of a root that a sandbox needs for itself.
const NOT_SERVED: [&str; 19] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr",
    "var",
    "workspace",
];

/// Whether one of two paths is the other, or within it.
fn nested(one: &str, other: &str) -> bool {
    is_within(one, other) || is_within(other, one)
}

/// How long a sandbox is kept without anybody asking for it. The backend sees to it
/// by itself, whether those who made it live or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lifetime {
    /// Without a request or a running command for this long it goes cold, or as deep
    /// as the backend can. In milliseconds.
    pub idle_ms_max: Option<u64>,
    /// This long after it was made it is destroyed, disk and all, whatever runs in it.
    /// In milliseconds. Never set for one that a record still names: such are deleted
    /// by whoever keeps the record.
    pub age_ms_max: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn absurd_specifications_are_refused_by_name() {
        let changes: [fn(&mut CreateSpec); 10] = [
            |spec| spec.memory_bytes_max = 0,
            |spec| spec.disk_inodes_max = 0,
            |spec| spec.lifetime.idle_ms_max = Some(0),
            |spec| spec.lifetime.age_ms_max = Some(u64::MAX),
            |spec| spec.lifetime.age_ms_max = Some(limits::LIFETIME_MS_MAX),
            |spec| spec.served = vec!["/skills".to_owned(), "/memory/../etc".to_owned()],
            |spec| spec.served = vec!["/".to_owned()],
            |spec| spec.served = vec!["/usr/skills".to_owned()],
            |spec| spec.served = vec!["/skills/a".to_owned(), "/skills".to_owned()],
            |spec| spec.served = vec!["/skills".to_owned(), "/skills-too".to_owned()],
        ];
        let mut shown = String::new();
        for change in changes {
            let mut spec = CreateSpec::default();
            change(&mut spec);
            shown += &format!("{:?}\n", spec.check().map_err(|error| error.to_string()));
        }
        expect![[r#"
            Err("invalid request: a sandbox with no memory at all")
            Err("invalid request: a sandbox with no files at all")
            Err("invalid request: idle time of 0 ms; 1 to 315360000000 can be asked for")
            Err("invalid request: age of 18446744073709551615 ms; 1 to 315360000000 can be asked for")
            Ok(())
            Err("invalid request: `/memory/../etc` can't be a served folder: it is not an absolute path without `.`, `..` and double slashes")
            Err("invalid request: `/` can't be a served folder: it is not an absolute path without `.`, `..` and double slashes")
            Err("invalid request: `/usr/skills` can't be a served folder: that place has something else in it")
            Err("invalid request: `/skills` can't be a served folder: it is another one of them, or within one")
            Ok(())
        "#]]
        .assert_eq(&shown);
    }
}
