//! A host that gives no namespaces, made of one that does.
//!
//! Owns how a program is started there: as an ordinary user, in a user namespace in which no
//! other can be made, without any right to change that.

use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

/// Set where a program is there already.
const THERE: &str = "OUTRIGGER_ATTACK_REDUCED";

/// A user that owns nothing, for whoever is root here: the kernel does not count root's
/// processes.
const NOBODY: u32 = 65_533;

const SCRIPT: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
                      exec setpriv --ambient-caps=-all --inh-caps=-all --bounding-set=-all \"$@\"";

/// Starts a copy of a program there, with an empty directory to work in. Needs util-linux.
///
/// # Errors
/// Those of the directory.
pub fn command(program: &Path, dir: &Path) -> io::Result<Command> {
    let root = rustix::process::geteuid().is_root();
    let (copy, home) = (dir.join("attack"), dir.join("home"));
    std::fs::copy(program, &copy)?;
    std::fs::create_dir(&home)?;
    let mut words = Vec::new();
    if root {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755))?;
        chown(&home, Some(NOBODY), Some(NOBODY))?;
        let id = NOBODY.to_string();
        words.extend(
            ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"].map(str::to_owned),
        );
    }
    // The table calls the user of commands so.
    let apart = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps"];
    words.extend(apart.iter().chain(&["sh", "-ec", SCRIPT, "sh"]).map(|word| (*word).to_owned()));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(copy).env(THERE, "1").env("TMPDIR", &home).current_dir("/");
    Ok(command)
}

/// Whether this program was started so.
#[must_use]
pub fn is_there() -> bool {
    std::env::var_os(THERE).is_some()
}
