//! Which Landlock this kernel has (landlock(7)), and what of it a guest uses.
//!
//! Owns the question and the words for the answer. The rules are the guest's.

use std::fs;

/// `LANDLOCK_CREATE_RULESET_VERSION` of linux/landlock.h.
const ASK_VERSION: libc::c_uint = 1;
/// The first version that lets files be moved between directories. One that does not would
/// break what works without it, so guests don't use it.
const USED_SINCE: u32 = 2;
/// What later versions add: the version, the kernel that came with it, what it refuses.
const LATER: [(u32, &str, &str); 2] =
    [(3, "6.2", "cutting files short"), (5, "6.10", "requests to devices (ioctl)")];

/// What Landlock is on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Landlock {
    /// It works, with this version of its interface.
    Version(u32),
    /// It is built in, and off.
    Off,
    /// It is not there, or a filter says so.
    Absent,
}

impl Landlock {
    /// Asks the kernel.
    pub(super) fn look() -> Self {
        // SAFETY: with this flag the call takes no memory, and makes nothing.
        let version = unsafe {
            let none = std::ptr::null::<libc::c_void>();
            libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, ASK_VERSION)
        };
        match u32::try_from(version) {
            Ok(version) => Self::Version(version),
            Err(_) => match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EOPNOTSUPP) => Self::Off,
                _ => Self::Absent,
            },
        }
    }

    /// Whether guests use it.
    pub(super) fn serves(self) -> bool {
        matches!(self, Self::Version(USED_SINCE..))
    }

    /// What it does, or what would have it do that.
    pub(super) fn detail(self) -> String {
        match self {
            Self::Version(version) if self.serves() => {
                let mut text = format!(
                    "version {version}: nothing is written but on the sandbox's own mounts, no \
                     devices are made, nothing is opened by a way out of the root"
                );
                for (since, kernel, what) in LATER {
                    if version < since {
                        text += &format!("; {what} is refused from Linux {kernel} on");
                    }
                }
                text
            }
            Self::Version(version) => format!(
                "not used; version {version} would refuse to move files between directories: \
                 use Linux 5.19"
            ),
            Self::Off => {
                let active = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
                format!("not used; it is built in and off: {}", advice(active.trim()))
            }
            Self::Absent => "not used; the kernel says that it has none: use Linux 5.19 with \
                             CONFIG_SECURITY_LANDLOCK, and in a container a filter that lets \
                             landlock_create_ruleset through"
                .to_owned(),
        }
    }
}

/// The boot parameter, from the modules that are active.
fn advice(active: &str) -> String {
    // This one is always there, and can't be named.
    let others: Vec<&str> =
        active.split(',').filter(|name| !["", "capability"].contains(name)).collect();
    if others.is_empty() {
        return "put `landlock` first in the boot parameter `lsm=`".to_owned();
    }
    format!("boot with `lsm=landlock,{}`", others.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_lacks_is_said_and_what_is_off_has_advice() {
        for (landlock, serves, says) in [
            (Landlock::Version(7), true, "version 7: nothing"),
            (Landlock::Version(4), true, "ioctl) is refused from Linux 6.10 on"),
            (Landlock::Version(2), true, "cutting files short is refused from Linux 6.2 on"),
            (Landlock::Version(1), false, ": use Linux 5.19"),
            (Landlock::Off, false, "lsm="),
            (Landlock::Absent, false, ": use Linux 5.19 with CONFIG_SECURITY_LANDLOCK"),
        ] {
            assert_eq!(landlock.serves(), serves, "{landlock:?}");
            assert!(landlock.detail().contains(says), "{}", landlock.detail());
        }
        assert!(!Landlock::Version(5).detail().contains("from Linux"));
        assert_eq!(advice("capability,yama,apparmor"), "boot with `lsm=landlock,yama,apparmor`");
        assert_eq!(advice(""), "put `landlock` first in the boot parameter `lsm=`");
    }
}
