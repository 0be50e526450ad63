//! What this program is to be, by its command line.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::thread::CapabilitySet;

use crate::options::Options;
use crate::sys;
use crate::zygote::Zygote;

/// What this program is to be.
#[derive(Debug)]
pub(crate) enum Role {
    Guest(Box<Options>),
    /// One of which guests are cloned.
    Zygote(Zygote),
    /// A way to the guest that listens at a path, on the standard streams.
    Bridge(PathBuf),
}

impl Role {
    /// Reads `--name value` pairs. `None`: something is missing or unknown.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Options::default();
        while let Some(name) = args.next() {
            if name == "--stdio" {
                continue;
            }
            let value = args.next()?;
            match &*name {
                "--bridge" => return args.next().is_none().then_some(Self::Bridge(value.into())),
                "--zygote" => return Self::zygote(&value, args),
                _ => options.take(&name, value, inherited)?,
            }
        }
        let whole = options.is_whole() || options.awaits_the_rest().is_some();
        whole.then(|| Self::Guest(Box::new(options)))
    }

    /// The number of its socket comes first.
    fn zygote(socket: &str, mut args: impl Iterator<Item = String>) -> Option<Self> {
        let (mut prepared, mut capabilities) = (None, None);
        while let Some(name) = args.next() {
            let value = args.next()?;
            match &*name {
                "--prepared" => prepared = Some(inherited(&value)?),
                "--capabilities" => capabilities = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        let capabilities = CapabilitySet::from_bits_retain(capabilities?);
        Some(Self::Zygote(Zygote { socket: inherited(socket)?, prepared: prepared?, capabilities }))
    }
}

/// The descriptor of a number on the command line.
fn inherited(number: &str) -> Option<OwnedFd> {
    sys::inherited(number.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Option<Role> {
        Role::parse(args.iter().map(|&arg| arg.to_owned()))
    }

    #[test]
    fn unknown_and_unfinished_options_are_refused() {
        for args in [
            &["--generation"][..],
            &["--generation", "g", "--wat", "1"],
            &[],
            &["--pids", "1"],
            &["--bridge", "a", "--pids", "1"],
            &["--listen"],
        ] {
            assert!(parse(args).is_none(), "{args:?}");
        }
        let Some(Role::Guest(options)) = parse(&["--generation", "g", "--pids", "5"]) else {
            panic!("these are whole");
        };
        assert_eq!(options.pids_max, Some(5));
        assert!(matches!(parse(&["--listen", "/a"]), Some(Role::Guest(_))));
        assert!(matches!(parse(&["--bridge", "/a"]), Some(Role::Bridge(_))));
    }
}
