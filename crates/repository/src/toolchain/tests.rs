//! A home directory with tools in it, and what a project there is worked on with.

use super::*;
use expect_test::{Expect, expect};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// A home directory with tools in it, and a project.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        // Not beneath /tmp, which a sandbox has of its own.
        let beside = std::env::current_exe().unwrap();
        let home = Self(tempfile::tempdir_in(beside.parent().unwrap()).unwrap());
        fs::create_dir_all(home.path("work/project")).unwrap();
        home
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(inside)
    }

    fn program(&self, inside: &str) {
        self.file(inside, "#!/bin/sh\n");
        fs::set_permissions(self.path(inside), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn file(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn shell(&self, vars: &[(&str, &str)]) -> Shell {
        let home = self.path("");
        let place = home.display().to_string();
        let vars = vars.iter().map(|(name, value)| {
            ((*name).to_owned(), value.replace('~', place.trim_end_matches('/')))
        });
        Shell { home: self.path("").components().collect(), vars: vars.collect() }
    }

    fn check(&self, vars: &[(&str, &str)], expected: Expect) {
        let tools = toolchains(&WorkTree::alone(&self.path("work/project")), &self.shell(vars));
        let mut told = String::new();
        for Toolchain { name, chosen_by } in &tools.found {
            told += name;
            told += &chosen_by
                .as_ref()
                .map_or(String::new(), |path| format!(", says {}", path.display()));
            told += "\n";
        }
        let own = |path: &&PathBuf| !SYSTEM.iter().any(|system| *path == Path::new(system));
        for (what, paths) in [("show", &tools.shown), ("PATH", &tools.path)] {
            for path in paths.iter().filter(own) {
                told += &format!("{what} {}\n", path.display());
            }
        }
        // The machine may have Go among the system's own programs.
        let has_go = tools.path.iter().filter(own).any(|dir| dir.join("go").is_file());
        let is_ours = |name: &str| has_go || !name.starts_with("GO");
        for (name, value) in tools.env.iter().filter(|(name, _)| is_ours(name)) {
            told += &format!("{name}={value}\n");
        }
        for cache in tools.go_cache.iter().filter(|_| has_go) {
            told += &format!("compiled {}\n", cache.display());
        }
        for note in &tools.notes {
            told += &format!("! {note}\n");
        }
        let home = self.path("").display().to_string();
        expected.assert_eq(&told.replace(home.trim_end_matches('/'), "~"));
    }
}

/// A home with rustup, its stand-ins and two toolchains.
fn with_rustup() -> Home {
    let home = Home::new();
    for program in ["rustup", "rustc", "cargo"] {
        home.program(&format!(".cargo/bin/{program}"));
    }
    home.file(".cargo/registry/index", "");
    home.file(".cargo/credentials.toml", "token = 'x'");
    home.file(".cargo/config.toml", "[registries.a]\ntoken = 'x'\n");
    let (stable, old) = ("stable-x86_64-unknown-linux-gnu", "1.80.0-x86_64-unknown-linux-gnu");
    for name in [stable, old] {
        home.program(&format!(".rustup/toolchains/{name}/bin/rustc"));
    }
    home.file(".rustup/settings.toml", &format!("default_toolchain = \"{stable}\"\n"));
    home
}

#[test]
fn stand_ins_of_rustup_become_the_toolchain_that_they_would_run() {
    let home = with_rustup();
    let path = [("PATH", "~/.cargo/bin:/usr/bin")];
    home.check(
        &path,
        expect![[r#"
        Rust stable (rustup)
        show ~/.cargo/bin
        show ~/.cargo/registry
        show ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu
        PATH ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin
        PATH ~/.cargo/bin
        CARGO_HOME=~/.cargo
        CARGO_NET_OFFLINE=true
        RUSTUP_TOOLCHAIN=stable-x86_64-unknown-linux-gnu
        ! ~/.cargo/config.toml may hold a secret and is not shown to the sandbox
    "#]],
    );
    home.file("work/project/rust-toolchain.toml", "[toolchain]\nchannel = '1.80.0'\n");
    home.check(
        &path,
        expect![[r#"
        Rust 1.80.0 (rustup), says ~/work/project/rust-toolchain.toml
        show ~/.cargo/bin
        show ~/.cargo/registry
        show ~/.rustup/toolchains/1.80.0-x86_64-unknown-linux-gnu
        PATH ~/.rustup/toolchains/1.80.0-x86_64-unknown-linux-gnu/bin
        PATH ~/.cargo/bin
        CARGO_HOME=~/.cargo
        CARGO_NET_OFFLINE=true
        RUSTUP_TOOLCHAIN=1.80.0-x86_64-unknown-linux-gnu
        ! ~/.cargo/config.toml may hold a secret and is not shown to the sandbox
    "#]],
    );
}

#[test]
fn what_is_no_toolchain_here_is_not_shown() {
    let home = with_rustup();
    let path = [("PATH", "~/.cargo/bin:/usr/bin")];
    home.file("work/project/rust-toolchain.toml", "[toolchain]\nchannel = '../../.ssh'\n");
    home.check(
        &path,
        expect![[r#"
        Rust stable (rustup)
        show ~/.cargo/bin
        show ~/.cargo/registry
        show ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu
        PATH ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin
        PATH ~/.cargo/bin
        CARGO_HOME=~/.cargo
        CARGO_NET_OFFLINE=true
        RUSTUP_TOOLCHAIN=stable-x86_64-unknown-linux-gnu
        ! ~/.cargo/config.toml may hold a secret and is not shown to the sandbox
    "#]],
    );
    home.file("work/project/rust-toolchain.toml", "[toolchain]\nchannel = '1.2.3'\n");
    home.check(
        &path,
        expect![[r#"
        Rust stable (rustup)
        show ~/.cargo/bin
        show ~/.cargo/registry
        show ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu
        PATH ~/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin
        PATH ~/.cargo/bin
        CARGO_HOME=~/.cargo
        CARGO_NET_OFFLINE=true
        RUSTUP_TOOLCHAIN=stable-x86_64-unknown-linux-gnu
        ! Rust 1.2.3 is not installed; stable-x86_64-unknown-linux-gnu is used
        ! ~/.cargo/config.toml may hold a secret and is not shown to the sandbox
    "#]],
    );
}

#[test]
fn stand_ins_of_pyenv_become_the_versions_that_they_would_run() {
    let home = Home::new();
    for version in ["3.9.1", "3.12.4", "3.12.10"] {
        home.program(&format!(".pyenv/versions/{version}/bin/python"));
    }
    home.program(".pyenv/shims/python");
    home.program(".pyenv/bin/pyenv");
    home.file(".pyenv/version", "3.9.1\n");
    let path = [("PATH", "~/.pyenv/shims:~/.pyenv/bin:/usr/bin")];
    home.check(
        &path,
        expect![[r#"
        Python 3.9.1 (pyenv)
        show ~/.pyenv/versions/3.9.1
        PATH ~/.pyenv/versions/3.9.1/bin
    "#]],
    );
    home.file("work/.python-version", "3.12 # the newest\n");
    home.check(
        &path,
        expect![[r#"
        Python 3.12.10 (pyenv), says ~/work/.python-version
        show ~/.pyenv/versions/3.12.10
        PATH ~/.pyenv/versions/3.12.10/bin
    "#]],
    );
    home.file("work/project/.python-version", "3.7\n");
    home.check(
        &path,
        expect![[r#"
        Python 3.9.1 (pyenv)
        show ~/.pyenv/versions/3.9.1
        PATH ~/.pyenv/versions/3.9.1/bin
        ! Python 3.7 is not installed by pyenv
        ! Python 3.9.1 is used instead
    "#]],
    );
}

#[test]
fn what_an_environment_says_of_its_python_is_believed_only_of_a_managers() {
    let home = Home::new();
    home.program(".local/share/uv/python/cpython-3.13/bin/python3");
    home.file(".ssh/bin/id", "secret");
    let venv = |at: &str| home.file("work/project/.venv/pyvenv.cfg", &format!("home = {at}\n"));
    venv(&home.path(".local/share/uv/python/cpython-3.13/bin").display().to_string());
    home.check(
        &[("PATH", "/usr/bin")],
        expect![[r#"
        show ~/.local/share/uv/python/cpython-3.13
    "#]],
    );
    venv(&home.path(".ssh/bin").display().to_string());
    home.check(&[("PATH", "/usr/bin")], expect![[r#"
        ! .venv was made with the Python in ~/.ssh/bin, which is not shown to the sandbox: name it in sandbox.read_only
    "#]]);
}

#[test]
fn versions_of_node_are_found() {
    let home = Home::new();
    for version in ["v18.20.1", "v20.9.0", "v20.11.0"] {
        home.program(&format!(".nvm/versions/node/{version}/bin/node"));
    }
    let path = [("PATH", "~/.nvm/versions/node/v18.20.1/bin:/usr/bin")];
    home.check(
        &path,
        expect![[r#"
        Node v18.20.1 (nvm)
        show ~/.nvm/versions/node/v18.20.1
        PATH ~/.nvm/versions/node/v18.20.1/bin
    "#]],
    );
    home.file("work/project/.nvmrc", "20\n");
    home.check(
        &path,
        expect![[r#"
        Node v20.11.0 (nvm), says ~/work/project/.nvmrc
        show ~/.nvm/versions/node/v20.11.0
        PATH ~/.nvm/versions/node/v20.11.0/bin
    "#]],
    );
    home.program(".volta/tools/image/node/16.1.0/bin/node");
    home.program(".volta/bin/node");
    home.file("work/project/package.json", r#"{ "volta": { "node": "16.1.0" } }"#);
    home.check(
        &[("PATH", "~/.volta/bin")],
        expect![[r#"
        Node 16.1.0 (volta), says ~/work/project/package.json
        show ~/.volta/tools/image/node/16.1.0
        PATH ~/.volta/tools/image/node/16.1.0/bin
    "#]],
    );
}

#[test]
fn a_directory_of_programs_is_shown_with_what_belongs_to_it() {
    let home = Home::new();
    home.program("sdk/go1.22/bin/go");
    home.file("sdk/go1.22/pkg/x", "");
    home.file("go/pkg/mod/x", "");
    home.file(".cache/go-build/00/x", "");
    home.file(".cache/go-build/README", "");
    home.program(".local/bin/tool");
    home.file(".local/share/uv/tools/ruff/x", "");
    home.program("jdk/bin/java");
    home.file(".asdf/installs/ruby/3.3.0/bin/ruby", "");
    home.program(".asdf/shims/ruby");
    home.file("work/project/.tool-versions", "ruby 3.3.0\nelixir ../../..\n");
    symlink(home.path(""), home.path("everything")).unwrap();
    let vars = [
        (
            "PATH",
            "~/sdk/go1.22/bin:~/.local/bin:~/.asdf/shims:.:~/everything:/nowhere:~/work/project/bin",
        ),
        ("JAVA_HOME", "~/jdk"),
        ("CFLAGS", "-O2"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
    ];
    home.check(
        &vars,
        expect![[r#"
            ruby 3.3.0, says ~/work/project/.tool-versions
            show ~/.asdf/installs/ruby/3.3.0
            show ~/.local/bin
            show ~/.local/share/uv/tools
            show ~/go/pkg/mod
            show ~/jdk
            show ~/sdk/go1.22
            PATH ~/sdk/go1.22/bin
            PATH ~/.local/bin
            PATH ~/.asdf/installs/ruby/3.3.0/bin
            CFLAGS=-O2
            GOMODCACHE=~/go/pkg/mod
            GOPROXY=off
            GOTOOLCHAIN=local
            JAVA_HOME=~/jdk
            compiled ~/.cache/go-build
        "#]],
    );
}
