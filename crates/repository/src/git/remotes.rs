//! The remotes of a repository, as far as a sandbox may know them: reached over HTTPS, and
//! without what stands for a password.
//!
//! Reads one file of settings, and of that the addresses of remotes alone; what it includes is
//! not read.

use std::path::Path;

use super::Git;
use crate::{Error, limits};

/// A remote that can be reached over HTTPS by whoever knows its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// What the repository calls it, for example `origin`.
    pub name: String,
    /// `https://HOST[:PORT]/PATH`.
    pub url: String,
}

/// The remotes of the repository that a directory is in; none where it is in none.
///
/// # Errors
/// If its settings can't be read.
pub fn remotes(dir: &Path) -> Result<Vec<Remote>, Error> {
    match Git::find(dir)? {
        Some(git) if git.is_of_top() || git.is_submodule() => of(&git),
        Some(_) | None => Ok(Vec::new()),
    }
}

pub(super) fn of(git: &Git) -> Result<Vec<Remote>, Error> {
    let settings = git.read(&git.common, "config", limits::GIT_FILE_BYTES_MAX)?;
    Ok(parse(&String::from_utf8_lossy(&settings.unwrap_or_default())))
}

/// See git-config(1), "CONFIGURATION FILE".
pub(super) fn parse(settings: &str) -> Vec<Remote> {
    let (mut name, mut remotes) = (None::<String>, Vec::<Remote>::new());
    for line in settings.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let quoted = section.strip_prefix("remote \"").and_then(|rest| rest.split_once('"'));
            // A name with an escape in it is passed over.
            name = quoted.map(|(name, _)| name.to_owned()).filter(|name| is_plain(name));
            continue;
        }
        let (Some(name), Some((key, value))) = (&name, line.split_once('=')) else { continue };
        if key.trim().eq_ignore_ascii_case("url")
            && let Some(url) = over_https(value.trim().trim_matches('"'))
            && remotes.len() < limits::REMOTES_MAX
            && !remotes.iter().any(|known| known.name == *name)
        {
            remotes.push(Remote { name: name.clone(), url });
        }
    }
    remotes
}

/// Whether a name or a path can stand in settings as it is.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./~+%".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

/// The address over HTTPS of what is reached over HTTPS, or over SSH as forges have it.
fn over_https(url: &str) -> Option<String> {
    let (host, path) = if let Some(rest) = url.strip_prefix("https://") {
        let (host, path) = rest.split_once('/')?;
        // A password, or a name that stands for one.
        (!host.contains('@')).then_some((host, path))?
    } else if let Some(rest) = url.strip_prefix("ssh://") {
        let (host, path) = rest.split_once('/')?;
        let host = host.rsplit('@').next()?;
        // Its port is one of SSH.
        (host.split(':').next()?, path)
    } else {
        let (host, path) = url.split_once(':').filter(|_| !url.contains("://"))?;
        (host.rsplit_once('@')?.1, path)
    };
    let named = |host: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
        host.contains(['.', ':']) && host.bytes().all(plain)
    };
    let path = path.trim_start_matches('/');
    let stays = path.split('/').all(|part| part != ".." && part != ".");
    (named(host) && is_plain(path) && stays).then(|| format!("https://{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_over_https_are_read_and_passwords_are_left_behind() {
        let settings = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@forge.example:team/tool.git\n\tfetch = +refs/heads/*\n\
            [remote \"up\"]\n\turl=https://forge.example/up/tool\n\
            [remote \"secret\"]\n\turl = https://token@forge.example/a/b\n\
            [remote \"pass\"]\n\turl = https://a:b@forge.example/a/b\n\
            [remote \"ssh\"]\n\turl = ssh://git@forge.example:2222/a/b.git\n\
            [remote \"local\"]\n\turl = /srv/git/a\n\
            [remote \"up again\"]\n\turl = https://forge.example/../a\n\
            [remote \"dots\"]\n\turl = https://forge.example/../a\n\
            [url \"https://a.example/\"]\n\tinsteadOf = x\n";
        let shown: Vec<String> =
            parse(settings).iter().map(|it| format!("{} {}", it.name, it.url)).collect();
        assert_eq!(
            shown,
            [
                "origin https://forge.example/team/tool.git",
                "up https://forge.example/up/tool",
                "ssh https://forge.example/a/b.git",
            ]
        );
    }
}
