//! What is seen of the host in a root of the host's tools.
//!
//! Owns the allow-list: programs and libraries, of `/etc` what they need to start,
//! and the few files that replace the host's. All of it is public on every host.

/// Directories of the host with programs and libraries; links are reproduced.
pub(super) const TOOLS: [&str; 7] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What programs need of `/etc`. Debian's Java and Maven have links into it; the settings of
/// Maven, which may hold passwords, are not among it.
pub(super) const ETC: [&str; 19] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl/certs",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/tls/certs",
    "localtime",
    "mime.types",
    "protocols",
    "services",
    "java-8-openjdk",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "java-25-openjdk",
    "maven/m2.conf",
    "maven/logging",
];

/// Where names are asked for, as resolv.conf(5) has it.
pub(super) const NAMES: &str = "resolv.conf";

/// Files that replace the host's.
pub(super) const SYNTHETIC: [(&str, &str); 6] = [
    (
        "passwd",
        "root:x:0:0:root:/:/usr/sbin/nologin\n\
         agent:x:1000:1000:agent:/home/agent:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n"),
    ("hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n"),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    ),
    ("hostname", "sandbox\n"),
    // Where [`outrigger_sandbox::capture`] has names asked for; see the test.
    (NAMES, "nameserver 127.64.0.1\n"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_asked_for_where_the_guest_answers() {
        let text = SYNTHETIC.iter().find(|(name, _)| *name == NAMES).unwrap().1;
        assert_eq!(text, format!("nameserver {}\n", outrigger_sandbox::capture::ADDRESS));
    }
}
