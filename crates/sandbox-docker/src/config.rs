//! What a Docker backend is opened with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use outrigger_sandbox::{DiskOrigin, Error};

use crate::limits;

/// What a Docker backend is opened with.
#[derive(Debug, Clone)]
pub struct Config {
    /// The daemon's socket. Default: `/var/run/docker.sock`.
    pub socket: Option<PathBuf>,
    /// Which installation this is: 1 to 32 characters of `a-z 0-9 -`. All that is made
    /// carries it as a label; what carries another one is never touched.
    pub owner: String,
    /// The runtime of all containers, for example `runsc`. Default: the daemon's own.
    pub runtime: Option<String>,
    /// The guest program: a static executable.
    pub guest: &'static [u8],
    /// Images by the names of the templates that they stand for.
    pub images: BTreeMap<String, String>,
    /// The image of the template that a sandbox has by default ([`DiskOrigin::default`]),
    /// unless `images` names one.
    pub default_image: Option<String>,
}

impl Config {
    /// Checks what can be checked without a daemon.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let owner = &self.owner;
        if owner.is_empty()
            || owner.len() > limits::OWNER_BYTES_MAX
            || !owner.bytes().all(plain)
            || owner.starts_with('-')
        {
            let max = limits::OWNER_BYTES_MAX;
            return Err(Error::Invalid(format!(
                "`{owner}` is no name of an owner: use 1 to {max} characters of a-z 0-9 -"
            )));
        }
        Ok(())
    }

    /// The image of a template.
    pub(crate) fn image(&self, template: &str) -> Result<&str, Error> {
        let named = self.images.get(template);
        let image = match (named, DiskOrigin::default()) {
            (None, DiskOrigin::Template(name)) if name == template => self.default_image.as_ref(),
            (named, _) => named,
        };
        image
            .map(String::as_str)
            .ok_or_else(|| Error::Absent { what: "template".to_owned(), name: template.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(owner: &str) -> Config {
        Config {
            socket: None,
            owner: owner.to_owned(),
            runtime: None,
            guest: b"",
            images: BTreeMap::from([("python".to_owned(), "python:3".to_owned())]),
            default_image: Some("debian:12".to_owned()),
        }
    }

    #[test]
    fn owners_are_names_that_labels_and_containers_can_have() {
        let long = "x".repeat(limits::OWNER_BYTES_MAX + 1);
        for owner in ["", "-a", "A", "a.b", "a b", &long] {
            assert!(config(owner).check().is_err(), "{owner}");
        }
        for owner in ["a", "host-1", &long[1..]] {
            assert!(config(owner).check().is_ok(), "{owner}");
        }
    }

    #[test]
    fn the_default_image_stands_for_the_default_template_alone() {
        let mut config = config("a");
        assert_eq!(config.image("host-tools").unwrap(), "debian:12");
        assert_eq!(config.image("python").unwrap(), "python:3");
        assert!(matches!(config.image("ruby"), Err(Error::Absent { .. })));
        config.images.insert("host-tools".to_owned(), "mine:1".to_owned());
        assert_eq!(config.image("host-tools").unwrap(), "mine:1");
    }
}
