//! What the guest and its commands are kept from: namespaces, Landlock, system calls, counts.

pub(crate) mod counts;
pub(crate) mod domain;
pub(crate) mod namespaces;
pub(crate) mod seccomp;
