//! Paths that lead through a symbolic link, where rules speak of paths: they judge a path as it is
//! named, so that a link to another place would pass them by.

use outrigger_sandbox::{
    EntryKind, Error, FileError, FileErrorKind, FileOp, FileReply, ListEntry, Sandbox,
};

use super::WORKSPACE;

/// Refuses a path that leads through a link. What can't be looked at is told by who reads it.
pub(super) async fn check(sandbox: &dyn Sandbox, path: &str) -> Result<(), Error> {
    for place in places(path) {
        let stat = sandbox.files(FileOp::Stat { path: place.clone() }).await;
        match stat {
            Ok(FileReply::Entry(ListEntry { kind: EntryKind::Link, .. })) => {
                let detail = format!(
                    "{place} is a link, and there are rules about paths: name where it leads"
                );
                let (kind, path) = (FileErrorKind::InvalidPath, path.to_owned());
                return Err(FileError { kind, path, detail }.into());
            }
            Err(Error::File(_)) => return Ok(()),
            other => drop(other?),
        }
    }
    Ok(())
}

/// Every place that a path goes through, as it is written: behind a link `..` is where that leads.
fn places(path: &str) -> Vec<String> {
    let (mut at, path) = match path.strip_prefix('/') {
        Some(path) => (String::new(), path),
        None => (WORKSPACE.to_owned(), path),
    };
    let mut all = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => at.truncate(at.rfind('/').unwrap_or(0)),
            part => {
                at = format!("{at}/{part}");
                all.push(at.clone());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn every_place_on_the_way_is_looked_at() {
        for (path, wanted) in [
            ("a/b", &["/workspace/a", "/workspace/a/b"][..]),
            ("link/../x", &["/workspace/link", "/workspace/x"]),
            ("/tmp//./x", &["/tmp", "/tmp/x"]),
            ("../../etc", &["/etc"]),
            ("", &[]),
        ] {
            assert_eq!(places(path), wanted, "{path}");
        }
    }
}
