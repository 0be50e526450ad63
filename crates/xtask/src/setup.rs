//! What the tests need of a machine, and how it is installed.
//!
//! Owns the list of programs and packages. Says everything that is missing at once; must
//! never install anything unless it was asked to.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::child::{self, Child, code};
use crate::postgres;

/// Why nothing was installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Packages of this system are not known.
    #[error("this system is neither Debian, Ubuntu nor Fedora; install by hand: {0}")]
    Distribution(String),
    /// Who may not install packages needs a way to become somebody who may.
    #[error("`sudo` is missing, and installing needs root; as root: {0}")]
    Sudo(String),
    /// The package manager could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// Our own output is gone.
    #[error("cannot write the progress")]
    Write(#[from] std::io::Error),
}

/// How something is known to be there.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// All of these programs are on the path.
    Programs(&'static [&'static str]),
    /// This file is there.
    File(&'static str),
    /// The C library can be linked statically.
    StaticC,
    /// Python has this module.
    Python(&'static str),
    /// PostgreSQL's programs are where they are found.
    Postgres,
}

/// A package, and what of the tests needs it.
#[derive(Debug, Clone, Copy)]
struct Need {
    sign: Sign,
    debian: &'static str,
    fedora: &'static str,
    /// Completes "is needed for ...".
    purpose: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        sign: Sign::Programs(&["cc", "make"]),
        debian: "build-essential",
        fedora: "gcc make",
        purpose: "SQLite and TLS, which are C",
    },
    Need {
        sign: Sign::StaticC,
        debian: "libc6-dev",
        fedora: "glibc-static",
        purpose: "the static program inside a sandbox",
    },
    Need {
        sign: Sign::Programs(&["git"]),
        debian: "git",
        fedora: "git",
        purpose: "comparing with what git says of a repository",
    },
    Need {
        sign: Sign::Programs(&["node"]),
        debian: "nodejs",
        fedora: "nodejs",
        purpose: "a fake of the model providers that is not ours",
    },
    Need {
        sign: Sign::Programs(&["npm"]),
        debian: "npm",
        fedora: "nodejs-npm",
        purpose: "installing that fake",
    },
    Need {
        sign: Sign::Programs(&["unshare", "nsenter"]),
        debian: "util-linux",
        fedora: "util-linux",
        purpose: "looking at a sandbox from outside",
    },
    Need {
        sign: Sign::Programs(&["newuidmap", "newgidmap"]),
        debian: "uidmap",
        fedora: "shadow-utils",
        purpose: "sandboxes of users who have subordinate ids",
    },
    Need {
        sign: Sign::Programs(&["docker", "dockerd", "containerd", "runc"]),
        debian: "docker.io",
        fedora: "moby-engine",
        purpose: "the Docker backend",
    },
    Need {
        sign: Sign::Programs(&["busybox"]),
        debian: "busybox-static",
        fedora: "busybox",
        purpose: "making images",
    },
    Need {
        sign: Sign::Programs(&["docker-registry"]),
        debian: "docker-registry",
        fedora: "docker-distribution",
        purpose: "pulling images",
    },
    Need {
        sign: Sign::Programs(&["pgrep"]),
        debian: "procps",
        fedora: "procps-ng",
        purpose: "commands in sandboxes",
    },
    Need {
        sign: Sign::Programs(&["tmux"]),
        debian: "tmux",
        fedora: "tmux",
        purpose: "what a terminal shows of a conversation",
    },
    Need {
        sign: Sign::Programs(&["python3"]),
        debian: "python3",
        fedora: "python3",
        purpose: "commands in sandboxes",
    },
    Need {
        sign: Sign::Python("ensurepip"),
        debian: "python3-venv",
        fedora: "python3",
        purpose: "the reference of the skills' format",
    },
    Need {
        sign: Sign::Programs(&["perl"]),
        debian: "perl",
        fedora: "perl-interpreter",
        purpose: "commands in sandboxes",
    },
    Need {
        sign: Sign::File("/etc/ssl/certs/ca-certificates.crt"),
        debian: "ca-certificates",
        fedora: "ca-certificates",
        purpose: "TLS",
    },
    Need {
        sign: Sign::Programs(&["curl"]),
        debian: "curl",
        fedora: "curl",
        purpose: "what a sandbox with a network reaches",
    },
    Need {
        sign: Sign::Postgres,
        debian: "postgresql",
        fedora: "postgresql-server",
        purpose: "the store on PostgreSQL",
    },
];

/// Whose packages a system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distribution {
    Debian,
    Fedora,
}

impl Distribution {
    /// From os-release(5).
    fn of(release: &str) -> Option<Self> {
        let mut ids = release
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
            .flat_map(|ids| ids.trim_matches('"').split_whitespace());
        ids.find_map(|id| match id {
            "debian" | "ubuntu" => Some(Self::Debian),
            "fedora" => Some(Self::Fedora),
            _ => None,
        })
    }
}

/// What is not there.
#[derive(Debug)]
pub(crate) struct Missing {
    needs: Vec<&'static Need>,
    distribution: Option<Distribution>,
}

/// Looks for everything that the tests need.
pub(crate) fn missing() -> Missing {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let needs = NEEDS.iter().filter(|need| !is_there(need.sign)).collect();
    Missing { needs, distribution: Distribution::of(&release) }
}

impl Missing {
    /// Whether the tests can run.
    pub(crate) fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    fn packages(&self) -> Vec<&'static str> {
        let of = |need: &&'static Need| match self.distribution {
            Some(Distribution::Fedora) => need.fedora,
            Some(Distribution::Debian) | None => need.debian,
        };
        let mut packages: Vec<&str> =
            self.needs.iter().map(of).flat_map(str::split_whitespace).collect();
        packages.sort_unstable();
        packages.dedup();
        packages
    }

    /// The one command that installs it, as root types it.
    fn command(&self) -> String {
        let packages = self.packages().join(" ");
        match self.distribution {
            Some(Distribution::Debian) => {
                format!("apt-get install --yes --no-install-recommends {packages}")
            }
            Some(Distribution::Fedora) => format!("dnf install --assumeyes {packages}"),
            None => packages,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for need in &self.needs {
            let name = match need.sign {
                Sign::Programs(programs) => programs.join(", "),
                Sign::File(path) => path.to_owned(),
                Sign::StaticC => "libc.a".to_owned(),
                Sign::Python(module) => format!("python3's {module}"),
                Sign::Postgres => "initdb".to_owned(),
            };
            writeln!(f, "missing: {name}, for {}", need.purpose)?;
        }
        write!(f, "`cargo xtask setup` installs it, or as root: {}", self.command())
    }
}

fn is_there(sign: Sign) -> bool {
    match sign {
        Sign::Programs(programs) => programs.iter().all(|program| find(program).is_some()),
        Sign::File(path) => Path::new(path).exists(),
        Sign::Postgres => postgres::programs().is_some(),
        Sign::StaticC => {
            let asked = std::process::Command::new("cc").arg("-print-file-name=libc.a").output();
            // Where there is none it says the name as it was asked.
            asked.is_ok_and(|said| {
                Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_absolute()
            })
        }
        Sign::Python(module) => {
            Child::new(["python3", "-c", &format!("import {module}")]).succeeds()
        }
    }
}

/// The path of a program. Debian keeps those for root where an ordinary user's path is not.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    dirs.map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Installs what is missing; the exit code of the package manager, or 0.
pub(crate) fn run(out: &mut impl Write) -> Result<u8, Error> {
    let missing = missing();
    if missing.is_empty() {
        writeln!(out, "nothing is missing")?;
        return Ok(0);
    }
    let (Some(distribution), install) = (missing.distribution, missing.command()) else {
        return Err(Error::Distribution(missing.command()));
    };
    let as_root: &[&str] = if Child::new(["sh", "-c", "[ $(id -u) = 0 ]"]).succeeds() {
        &[]
    } else if find("sudo").is_some() {
        &["sudo"]
    } else {
        return Err(Error::Sudo(install));
    };
    let update = (distribution == Distribution::Debian).then_some("apt-get update");
    for command in update.into_iter().chain([install.as_str()]) {
        writeln!(out, "== {command}")?;
        out.flush()?;
        let words = as_root.iter().copied().chain(["env", "DEBIAN_FRONTEND=noninteractive"]);
        let exit = code(Child::new(words.chain(command.split_whitespace())).run()?);
        if exit != 0 {
            return Ok(exit);
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn systems_are_known_by_their_own_name_or_their_family() {
        let of = |release: &str| Distribution::of(release);
        assert_eq!(of("NAME=x\nID=debian\n"), Some(Distribution::Debian));
        assert_eq!(of("ID=pop\nID_LIKE=\"ubuntu debian\"\n"), Some(Distribution::Debian));
        assert_eq!(of("ID=fedora\n"), Some(Distribution::Fedora));
        assert_eq!(of("ID=arch\n"), None);
    }

    #[test]
    fn everything_that_is_missing_is_said_at_once_with_one_command() {
        let needs = [0, 1, 8].map(|index| &NEEDS[index]).to_vec();
        let mut missing = Missing { needs, distribution: Some(Distribution::Debian) };
        expect![[r#"
            missing: cc, make, for SQLite and TLS, which are C
            missing: libc.a, for the static program inside a sandbox
            missing: busybox, for making images
            `cargo xtask setup` installs it, or as root: apt-get install --yes --no-install-recommends build-essential busybox-static libc6-dev"#]]
        .assert_eq(&missing.to_string());
        missing.distribution = Some(Distribution::Fedora);
        expect!["dnf install --assumeyes busybox gcc glibc-static make"]
            .assert_eq(&missing.command());
    }
}
