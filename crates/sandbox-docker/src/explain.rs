//! What went wrong between here and the daemon, in plain words.
//!
//! Owns the way from the client's errors to those of the port. A daemon that is not
//! there is [`Error::Unavailable`] with advice; one that refuses is quoted.

use std::error::Error as _;
use std::io::ErrorKind;

use bollard::errors::Error as Failure;
use outrigger_sandbox::Error;

/// HTTP status: there is no such thing.
pub(crate) const NOT_FOUND: u16 = 404;
/// HTTP status: the name is taken, or it is in use, or it is not in a state for this.
pub(crate) const CONFLICT: u16 = 409;
/// HTTP status: what the daemon tried failed.
pub(crate) const FAILED: u16 = 500;

/// The status that the daemon answered with.
pub(crate) fn status(failure: &Failure) -> Option<u16> {
    match failure {
        Failure::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// The kind of input or output error below it, if there is one.
fn kind(failure: &Failure) -> Option<ErrorKind> {
    if let Failure::IOError { err } = failure {
        // It passes for its cause, and so does not name it.
        return Some(err.kind());
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(failure);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

/// Says what was being done when it went wrong.
pub(crate) fn failed(socket: &str, doing: &str, failure: &Failure) -> Error {
    let unavailable =
        |reason: String, advice: &str| Error::Unavailable { reason, advice: advice.to_owned() };
    match failure {
        Failure::DockerResponseServerError { message, .. } => {
            return Error::Backend(format!("{doing}: Docker says: {}", message.trim()));
        }
        Failure::SocketNotFoundError(_) => {
            return unavailable(
                format!("there is no Docker socket at {socket}"),
                "install and start Docker, or name the socket of the one that runs",
            );
        }
        Failure::RequestTimeoutError => {
            return Error::Backend(format!("{doing}: Docker did not answer in time"));
        }
        _ => {}
    }
    match kind(failure) {
        Some(ErrorKind::PermissionDenied) => unavailable(
            format!("this user may not use the Docker socket {socket}"),
            "add the user to the group that owns the socket, which makes it as powerful as root, \
             or use rootless Docker",
        ),
        Some(ErrorKind::NotFound) => unavailable(
            format!("there is no Docker socket at {socket}"),
            "install and start Docker, or name the socket of the one that runs",
        ),
        Some(ErrorKind::ConnectionRefused) => unavailable(
            format!("no Docker daemon listens at {socket}"),
            "start it, for example with `systemctl start docker`",
        ),
        Some(_) | None => Error::Backend(format!("{doing}: {failure}{}", causes(failure))),
    }
}

fn causes(failure: &Failure) -> String {
    let mut text = String::new();
    let mut cause = failure.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

/// There is no such image.
pub(crate) fn no_image(image: &str) -> Error {
    Error::Unavailable {
        reason: format!("Docker has no image `{image}`"),
        advice: format!(
            "fetch it with `docker pull {image}`, or name another image; images are never fetched unasked"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(failure: &Failure, expected: &Expect) {
        expected.assert_eq(&failed("/run/d.sock", "making a volume", failure).to_string());
    }

    fn io(kind: ErrorKind) -> Failure {
        Failure::IOError { err: kind.into() }
    }

    #[test]
    fn each_failure_says_what_to_do() {
        check(
            &Failure::SocketNotFoundError("/run/d.sock".to_owned()),
            &expect![
                "no sandbox can be made here: there is no Docker socket at /run/d.sock; install and start Docker, or name the socket of the one that runs"
            ],
        );
        check(
            &io(ErrorKind::PermissionDenied),
            &expect![
                "no sandbox can be made here: this user may not use the Docker socket /run/d.sock; add the user to the group that owns the socket, which makes it as powerful as root, or use rootless Docker"
            ],
        );
        check(
            &io(ErrorKind::ConnectionRefused),
            &expect![
                "no sandbox can be made here: no Docker daemon listens at /run/d.sock; start it, for example with `systemctl start docker`"
            ],
        );
        check(
            &Failure::DockerResponseServerError { status_code: 500, message: "no room\n".into() },
            &expect!["sandbox backend: making a volume: Docker says: no room"],
        );
        check(
            &Failure::RequestTimeoutError,
            &expect!["sandbox backend: making a volume: Docker did not answer in time"],
        );
    }
}
