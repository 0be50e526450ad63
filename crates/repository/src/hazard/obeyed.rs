//! Files that a program runs or obeys by itself, without anybody who builds, tests or starts
//! what is in the directory.
//!
//! A table as of November 2026. A line is a pattern as in `.gitignore`, in any case of its
//! letters. What belongs here: opening, entering or updating the directory is enough for it
//! to run, or it says to a tool which other program to run. What does not: sources, and the
//! build's own files (`Makefile`, `package.json`, `build.rs`), which a person runs. Those a
//! person reads with the rest of the patch.

use std::path::Path;
use std::sync::LazyLock;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Who runs or obeys a path, and when, if somebody does.
pub(super) fn by(path: &Path) -> Option<&'static str> {
    // Compiled once: it takes longer than to judge a thousand paths.
    static TABLE: LazyLock<Vec<(&str, Gitignore)>> =
        LazyLock::new(|| OBEYED.iter().map(|(why, patterns)| (*why, compiled(patterns))).collect());
    let matched = |(_, rules): &&(&str, Gitignore)| {
        matches!(rules.matched_path_or_any_parents(path, false), Match::Ignore(_))
    };
    TABLE.iter().find(matched).map(|(why, _)| *why)
}

fn compiled(patterns: &[&str]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    builder.case_insensitive(true).expect("it only fails once it can no longer be undone");
    for pattern in patterns {
        builder.add_line(None, pattern).expect("a test reads every pattern of the table");
    }
    builder.build().expect("a test reads every pattern of the table")
}

/// Whose files they are, and what happens, with the patterns.
const OBEYED: &[(&str, &[&str])] = &[
    (
        "git reads it, and it can name programs that git runs",
        &[".gitattributes", ".gitmodules", ".gitconfig", ".lfsconfig"],
    ),
    (
        "it is run at a commit, a push or a checkout",
        &[
            ".husky/",
            ".githooks/",
            ".git-hooks/",
            ".pre-commit-config.y*ml",
            "lefthook.*",
            ".lefthook.*",
            ".lefthook/",
            ".overcommit.yml",
        ],
    ),
    (
        "a CI service runs it, with the secrets that it has",
        &[
            ".github/workflows/",
            ".github/actions/",
            ".gitlab-ci.y*ml",
            ".gitlab/ci/",
            ".gitea/",
            ".forgejo/",
            ".circleci/",
            ".buildkite/",
            ".woodpecker/",
            ".woodpecker.y*ml",
            ".drone.y*ml",
            ".travis.y*ml",
            ".cirrus.y*ml",
            ".teamcity/",
            ".semaphore/",
            "Jenkinsfile",
            "azure-pipelines.y*ml",
            "bitbucket-pipelines.y*ml",
            "appveyor.y*ml",
            ".appveyor.y*ml",
            "cloudbuild.y*ml",
            "buildspec.y*ml",
        ],
    ),
    ("direnv runs it when a shell enters the folder", &[".envrc", ".direnv/"]),
    (
        "mise or asdf obeys it when a shell enters the folder",
        &[
            "mise.toml",
            ".mise.toml",
            "mise.*.toml",
            ".mise.*.toml",
            ".mise/",
            ".config/mise/",
            ".config/mise.toml",
            ".tool-versions",
        ],
    ),
    (
        "an editor obeys it, and it can name programs that the editor runs",
        &[
            ".vscode/",
            "*.code-workspace",
            ".idea/",
            ".devcontainer/",
            ".devcontainer.json",
            ".fleet/",
            ".zed/",
            ".theia/",
            ".helix/",
            ".vimrc",
            ".exrc",
            ".nvimrc",
            ".nvim.lua",
            ".lvimrc",
            ".dir-locals.el",
            ".dir-locals-2.el",
            "*.sublime-project",
        ],
    ),
    (
        "an agent obeys it, and it can name programs that the agent runs",
        &[
            ".claude/",
            ".mcp.json",
            ".cursor/",
            ".codex/",
            ".gemini/",
            ".windsurf/",
            ".kiro/",
            ".roo/",
            ".continue/",
            "opencode.json*",
            ".aider.conf.yml",
        ],
    ),
    (
        "a package manager obeys it, and it can name programs, or another source of packages",
        &[
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".yarn/",
            ".pnp.cjs",
            ".pnp.loader.mjs",
            ".pnpmfile.*js",
            "bunfig.toml",
            ".bundle/",
            "pip.conf",
            ".pypirc",
            ".condarc",
        ],
    ),
    (
        "cargo or rustup obeys it, and it can name programs that they run",
        &[".cargo/", "rust-toolchain", "rust-toolchain.toml"],
    ),
    (
        "a build tool obeys it before it reads the build, or it is the tool that is run",
        &[
            ".mvn/",
            "mvnw",
            "mvnw.cmd",
            "gradlew",
            "gradlew.bat",
            "gradle/wrapper/",
            ".sdkmanrc",
            ".sbtopts",
            ".jvmopts",
            ".bazelrc",
            ".bazelversion",
            ".bazeliskrc",
            "tools/bazel",
            ".buckconfig",
            ".terraformrc",
        ],
    ),
    (
        "an interpreter runs it when it starts",
        &[
            "*.pth",
            "sitecustomize.py",
            "usercustomize.py",
            "pyvenv.cfg",
            ".pdbrc",
            ".Rprofile",
            ".Renviron",
            ".irbrc",
            ".pryrc",
            ".ghci",
            ".iex.exs",
            ".ocamlinit",
            ".user.ini",
            ".htaccess",
        ],
    ),
    ("a debugger runs it when it starts", &[".gdbinit", ".lldbinit"]),
    (
        "a shell or ssh obeys it, should this be a home directory",
        &[
            "/.bashrc",
            "/.bash_profile",
            "/.bash_login",
            "/.bash_logout",
            "/.bash_aliases",
            "/.profile",
            "/.zshrc",
            "/.zshenv",
            "/.zprofile",
            "/.zlogin",
            "/.ssh/",
            "/.gnupg/",
            "/.config/autostart/",
            "/.config/environment.d/",
            "/.config/fish/",
            "/.config/git/",
            "/.config/nvim/",
            "/.config/systemd/",
            "/.local/bin/",
        ],
    ),
    ("a desktop shows and starts it", &["*.desktop", "*.lnk", "desktop.ini", "autorun.inf"]),
];

#[cfg(test)]
mod tests {
    use super::{OBEYED, compiled};
    use std::collections::BTreeSet;

    #[test]
    fn every_pattern_of_the_table_is_one_and_is_there_once() {
        let mut all = BTreeSet::new();
        for (why, patterns) in OBEYED {
            assert_eq!(compiled(patterns).num_ignores(), patterns.len() as u64, "{why}");
            assert!(patterns.iter().all(|pattern| all.insert(pattern)), "{why}");
        }
    }
}
