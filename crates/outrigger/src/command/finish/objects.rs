//! What git in a session's sandbox has, object by object.
//!
//! Owns how it is asked: by commands of fixed words, with names of objects on standard input and
//! nothing else. What it prints is hostile, bounded, and judged by whoever asked.

use outrigger_api::ReadObjects;
use outrigger_repository::ObjectId;
use outrigger_sandbox::{Command, End, ExecId, Execute, Sandbox};

use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// HEAD, and the objects that it has beyond those on standard input.
const FIRST: &str = "git rev-parse --quiet --verify 'HEAD^{commit}' && git rev-list --objects \
    --no-object-names --ignore-missing --stdin HEAD | git cat-file --batch";
/// The objects on standard input.
const MORE: &str = "git cat-file --batch";

/// What git in the sandbox prints of what is asked for. Nothing where there is no repository, no
/// commit in it, or no git.
pub(super) async fn objects(sandbox: &dyn Sandbox, asked: &ReadObjects) -> Outcome<Vec<u8>> {
    let (line, before, names) = match asked.objects.is_empty() {
        true => (FIRST, "^", &asked.known),
        false => (MORE, "", &asked.objects),
    };
    let mut stdin = String::new();
    for name in names {
        if ObjectId::parse(name.as_bytes()).is_none() {
            let text = format!("`{}` is no id of an object of git", name.escape_debug());
            return Err(Failure::new(Kind::Usage, text).hint("An id has 40 hexadecimal digits."));
        }
        stdin.push_str(&format!("{before}{name}\n"));
    }
    let id = format!("commits-{}", uuid::Uuid::new_v4().simple());
    let id = ExecId::new(id).map_err(|error| failed(&error))?;
    // What has no end ends there; without that it would go on until the deadline.
    let end = limits::COMMITS_OUTPUT_BYTES_MAX + 1;
    let mut request = Execute::new(id, Command::Shell(format!("{{ {line}; }} | head -c {end}")));
    request.stdin = stdin.into_bytes();
    request.deadline_ms = limits::COMMITS_MS_MAX;
    request.stdout_bytes_max = limits::COMMITS_OUTPUT_BYTES_MAX;
    request.stderr_bytes_max = 0;
    let done = sandbox.execute(request, &()).await.map_err(|error| failed(&error))?;
    let mib = limits::COMMITS_OUTPUT_BYTES_MAX >> 20;
    let text = match (done.end, done.stdout_dropped_bytes) {
        (End::Exited(_), 0) => return Ok(done.stdout),
        (End::Exited(_), _) => format!("the commits of the sandbox have more than {mib} MiB"),
        (End::Deadline, _) => {
            let seconds = limits::COMMITS_MS_MAX / 1_000;
            format!("git in the sandbox did not give its commits within {seconds} s")
        }
        _ => "git in the sandbox was killed while it gave its commits".to_owned(),
    };
    Err(Failure::new(Kind::Denied, text).hint("No branch was made. All changes are in the patch."))
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::from_error(Kind::SandboxUnavailable, error)
}
