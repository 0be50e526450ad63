//! Rules against traces of one machine: its paths, its private hosts.
//!
//! A path or a host that exists on one machine only breaks every other one, and
//! tells strangers about it.

use super::project::Project;
use crate::finding::Finding;

/// Homes that examples and fixtures may speak of.
const EXAMPLE_USERS: &[&str] = &["agent", "alice", "bob", "me", "sandbox", "user", "you"];

/// Hosts that have a telling name and are everybody's.
const PUBLIC_HOSTS: &[&str] = &[
    "host.docker.internal",
    "index.crates.io",
    "metadata.google.internal",
    "registry-1.docker.io",
    "registry.npmjs.org",
    "static.crates.io",
];

/// Parts of a host's name that make it a package registry or a mirror of one.
const REGISTRY_WORDS: &[&str] = &["artifactory", "mirror", "nexus", "proxy", "registry"];

/// Ends of names that resolve inside one network only.
const PRIVATE_ENDS: &[&str] = &[".corp", ".internal", ".intranet", ".lan"];

/// No text names a folder of the machine that it was written on.
pub(super) fn paths(project: &Project) -> Vec<Finding> {
    each_line(project, |line| {
        machine_path(line)
            .map(|path| ("machine-path", format!("`{path}` exists on one machine only")))
    })
}

/// No text names a private host or a mirror of a registry.
pub(super) fn hosts(project: &Project) -> Vec<Finding> {
    each_line(project, |line| {
        private_host(line).map(|host| ("private-host", format!("`{host}` is not everybody's host")))
    })
}

fn each_line(
    project: &Project,
    judge: impl Fn(&str) -> Option<(&'static str, String)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in project.tree.iter() {
        for (index, line) in text.lines().enumerate() {
            if let Some((rule, message)) = judge(line) {
                findings.push(Finding::error(path, index + 1, rule, message));
            }
        }
    }
    findings
}

fn machine_path(line: &str) -> Option<String> {
    // In two halves, so that this file does not find itself.
    for root in [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")] {
        for (at, _) in line.match_indices(root) {
            // Only an absolute path: `a/b`, `~/b`, `$HOME/b` and `{root}/b` go on from something.
            let goes_on = |before: char| before.is_alphanumeric() || "_-.~}/>*:".contains(before);
            if line[..at].chars().next_back().is_some_and(goes_on) {
                continue;
            }
            let rest = &line[at + root.len()..];
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || "_-.".contains(*c)).collect();
            let is_home = !root.starts_with(concat!("/wo", "rk"));
            if is_home && (name.is_empty() || EXAMPLE_USERS.contains(&name.as_str())) {
                continue;
            }
            return Some(format!("{root}{name}"));
        }
    }
    None
}

fn private_host(line: &str) -> Option<String> {
    line.match_indices("://").find_map(|(at, mark)| {
        let authority: String = line[at + mark.len()..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || ".-_@".contains(*c))
            .collect();
        let host = authority.rsplit('@').next().unwrap_or_default().trim_end_matches('.');
        let host = host.to_ascii_lowercase();
        let telling =
            REGISTRY_WORDS.iter().any(|word| host.split(['.', '-']).any(|part| part == *word))
                || PRIVATE_ENDS.iter().any(|end| host.ends_with(end));
        let example =
            host.ends_with(".example") || host.ends_with("example.com") || !host.contains('.');
        (telling && !example && !PUBLIC_HOSTS.contains(&host.as_str())).then_some(host)
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::{check, project};
    use super::*;

    #[test]
    fn folders_of_one_machine_are_found() {
        let home = concat!("/ho", "me/");
        let work = concat!("/wo", "rk/");
        let text = format!(
            "see {work}tree\ncd {home}jane/src\n{home}agent is in the sandbox\n/workspace/a\ncrates{work}x\n~{work}x\n{home}\n"
        );
        let found: Vec<String> = text.lines().filter_map(machine_path).collect();
        assert_eq!(found, [format!("{work}tree"), format!("{home}jane")]);

        let project = project([("docs/a.md", text.as_str())]);
        assert_eq!(paths(&project).len(), 2);
    }

    #[test]
    fn private_hosts_are_found() {
        let dots = "://";
        let text = format!(
            "https{dots}registry.npmjs.org/x\nhttps{dots}npm-mirror.acme.io/x\nhttp{dots}build.acme.corp\nhttps{dots}github.com/rust-lang/crates.io-index\nhttp{dots}proxy.example\nhttp{dots}proxy:80\nhttp{dots}metadata.google.internal/\n"
        );
        check(
            hosts,
            [("package-lock.json", &text)],
            &expect![[r"
                package-lock.json:2: private-host: `npm-mirror.acme.io` is not everybody's host
                package-lock.json:3: private-host: `build.acme.corp` is not everybody's host
            "]],
        );
    }
}
