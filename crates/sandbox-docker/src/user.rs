//! Who runs in a container: a user of its own for each sandbox.
//!
//! The kernel counts timers, signals, queues, watches and pipes by user, over all
//! containers: one that shared its user could take them from all others. On a disk that is
//! kept, all that belongs to this user belongs to [`KEPT`], so that it may become another's.

use std::ops::Range;

use bollard::models::SystemInfo;
use outrigger_sandbox::SandboxId;
use sha2::{Digest as _, Sha256};

use crate::probe::has;

/// The group of all sandboxes, and who owns what is kept of disks.
pub(crate) const KEPT: u32 = 1000;
/// The users of sandboxes where the daemon's users are the host's: above all that
/// distributions, `systemd` and `subuid(5)` give away, within what is positive everywhere;
/// see <https://systemd.io/UIDS-GIDS/>.
const HOST: Range<u32> = 0x7000_0000..0x7ff0_0000;
/// The users of sandboxes where the daemon's users are mapped to 65,536 of the host's.
const MAPPED: Range<u32> = 10_000..60_000;

/// Which users there are for sandboxes.
#[derive(Debug, Clone)]
pub(crate) struct Users(Range<u32>);

impl Users {
    /// Those of a daemon.
    pub(crate) fn of(info: &SystemInfo) -> Self {
        let are_mapped = ["name=rootless", "name=userns"].iter().any(|way| has(info, way));
        Self(if are_mapped { MAPPED } else { HOST })
    }

    /// That of a sandbox. Two may share one where there are few.
    pub(crate) fn user(&self, owner: &str, sandbox: &SandboxId) -> u32 {
        let digest = Sha256::digest(format!("{owner}/{sandbox}"));
        let number = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
        self.0.start + number % (self.0.end - self.0.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sandbox_has_a_user_that_stays_its_own() {
        let users = |are_mapped: bool, owner: &str| {
            let ways = are_mapped.then(|| vec!["name=userns".to_owned()]);
            let all = Users::of(&SystemInfo { security_options: ways, ..SystemInfo::default() });
            let user = |n: u32| all.user(owner, &SandboxId::new(format!("sandbox-{n}")).unwrap());
            (0..1_000).map(user).collect::<Vec<_>>()
        };
        let distinct =
            |users: &[u32]| users.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!(distinct(&users(false, "me")), 1_000);
        assert!(distinct(&users(true, "me")) > 950);
        assert_eq!(users(false, "me"), users(false, "me"));
        assert_ne!(users(false, "me"), users(false, "you"));
        assert!(users(true, "me").iter().all(|user| MAPPED.contains(user)));
    }
}
