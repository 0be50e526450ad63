//! Layers that are meant to harm whoever unpacks them or makes a sandbox of them.
//!
//! Owns the layers as bytes. What must come of them stands in the table.

use tar::EntryType;

use crate::archive::Layer;

/// Letters of the links of [`overlong`], which stand for long names.
const STEPS: &str = "abcdefghijklmnop";

/// A hostile layer.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) layer: Layer,
}

fn hostile(name: &'static str, fill: impl FnOnce(&mut Layer)) -> Hostile {
    let mut layer = Layer::default();
    fill(&mut layer);
    Hostile { name, layer }
}

/// Layers whose entries mean to land at `outside`, a directory of the host with a file
/// `precious` in it, or in nobody's directory at all.
pub(crate) fn entries(outside: &str) -> Vec<Hostile> {
    let climb = format!("{}{outside}", "../".repeat(40).trim_end_matches('/'));
    let (absolute, climbing) = (format!("{outside}/new"), format!("{climb}/new"));
    let (precious, up) = (format!("{outside}/precious"), format!("{climb}/precious"));
    let hard = |layer: &mut Layer, target: &str| {
        layer.pax(&[("linkpath", target)]);
        layer.entry(EntryType::Link, b"hard", b"long", 0o644, 0, b"");
        layer.file("hard", 0o644, b"overwritten");
    };
    let pax_file = |layer: &mut Layer, path: &str| {
        layer.pax(&[("path", path)]);
        layer.file("short", 0o644, b"x");
    };
    let through = |layer: &mut Layer, target: &str| {
        layer.long_link("way", target);
        layer.file("way/new", 0o644, b"x");
        layer.file("way/precious", 0o644, b"overwritten");
    };
    vec![
        hostile("absolute", |layer| pax_file(layer, &absolute)),
        hostile("climbing", |layer| pax_file(layer, &climbing)),
        hostile("climbing from inside", |layer| layer.file("a/../../b", 0o644, b"x")),
        hostile("only dots", |layer| layer.file("..", 0o644, b"x")),
        hostile("a link, then a file through it", |layer| through(layer, outside)),
        hostile("a climbing link, then a file through it", |layer| through(layer, &climb)),
        hostile("a link, then a link through it", |layer| {
            layer.long_link("way", outside);
            layer.link("way/new", "x");
        }),
        hostile("a link, then a whiteout through it", |layer| {
            layer.long_link("way", outside);
            layer.file("way/.wh.precious", 0o644, b"");
        }),
        hostile("a hard link out", |layer| hard(layer, &precious)),
        hostile("a climbing hard link", |layer| hard(layer, &up)),
        hostile("a hard link through a link", |layer| {
            layer.long_link("way", outside);
            hard(layer, "way/precious");
        }),
        hostile("a hard link to itself", |layer| {
            layer.entry(EntryType::Link, b"self", b"self", 0o644, 0, b"");
        }),
        hostile("twice the same, a file and a directory", |layer| {
            layer.file("twice", 0o644, b"x");
            layer.dir("twice/", 0o755);
            layer.file("twice/in", 0o644, b"x");
            layer.file("twice", 0o644, b"y");
        }),
        hostile("4 GiB of holes", |layer| {
            layer.entry(EntryType::Regular, b"holes", b"", 0o644, 4 << 30, b"");
        }),
        hostile("a sparse file", |layer| {
            layer.entry(EntryType::GNUSparse, b"sparse", b"", 0o644, 0, b"");
        }),
        hostile("a whiteout of dots", |layer| layer.file(".wh...", 0o644, b"")),
        hostile("a whiteout of nothing", |layer| layer.file(".wh.", 0o644, b"")),
        hostile("an attribute of overlays", |layer| {
            layer.pax(&[("SCHILY.xattr.trusted.overlay.redirect", "/etc")]);
            layer.dir("redirected/", 0o755);
        }),
        hostile("a capability", |layer| {
            layer.pax(&[("SCHILY.xattr.security.capability", "\u{1}\0\0\u{2}")]);
            layer.file("capable", 0o755, b"x");
        }),
        hostile("a name of 5000 bytes", |layer| pax_file(layer, &"x".repeat(5_000))),
        hostile("a path of 5000 bytes", |layer| pax_file(layer, &"x/".repeat(2_500))),
        hostile("a NUL in a name", |layer| pax_file(layer, "a\0b")),
    ]
}

/// Links in links until a path is longer than what is looked at, and one more that
/// leaves (CVE-2025-4517).
pub(crate) fn overlong(outside: &str) -> Hostile {
    hostile("overlong chain", |layer| {
        let (long, mut path) = ("d".repeat(247), String::new());
        for step in STEPS.chars() {
            layer.pax(&[("path", &format!("{path}{long}/"))]);
            layer.dir("long/", 0o755);
            layer.long_link(&format!("{path}{step}"), &long);
            path.push_str(&format!("{long}/"));
        }
        let steps: String = STEPS.chars().map(|step| format!("{step}/")).collect();
        let chain = format!("{steps}{}", "l".repeat(254));
        layer.long_link(&chain, &"../".repeat(STEPS.len()));
        layer.long_link("escape", &format!("{chain}/../../../../../../../..{outside}"));
        layer.entry(EntryType::Link, b"flag", b"escape/precious", 0o644, 0, b"");
        layer.file("flag", 0o644, b"overwritten");
        layer.file("escape/new", 0o644, b"x");
    })
}

/// Layers that careless readers read differently, with the names that GNU tar gives them.
pub(crate) fn ambiguous() -> Vec<(Hostile, &'static [&'static str])> {
    let mut inner = Layer::default();
    inner.file("image/hidden", 0o644, b"x");
    let inner = inner.bytes();
    let size = inner.len().to_string();
    vec![
        // CVE-2025-62518: who trusts the old field takes what follows for entries.
        (
            hostile("the size stands in a record alone", |layer| {
                layer.pax(&[("size", &size)]);
                layer.entry(EntryType::Regular, b"image/inner", b"", 0o644, 0, &inner);
                layer.file("image/last", 0o644, b"x");
            }),
            &["image/inner", "image/last"],
        ),
        (
            hostile("two records of one key", |layer| {
                layer.pax(&[("path", "image/first"), ("path", "image/second")]);
                layer.file("image/short", 0o644, b"x");
            }),
            &["image/second"],
        ),
        (
            hostile("a longer name of GNU's", |layer| {
                let name = b"image/long\0";
                let size = name.len() as u64;
                layer.entry(EntryType::GNULongName, b"././@LongLink", b"", 0o644, size, name);
                layer.file("image/short", 0o644, b"x");
            }),
            &["image/long"],
        ),
        (
            hostile("a directory with a size", |layer| {
                layer.entry(EntryType::Directory, b"image/dir/", b"", 0o755, 1024, &inner[..1024]);
                layer.file("image/last", 0o644, b"x");
            }),
            // Nothing belongs to a directory, so what follows it is the next entry.
            &["image/dir/", "image/hidden", "image/last"],
        ),
        (
            hostile("something after its end", |layer| {
                layer.file("image/before", 0o644, b"x");
                let whole = std::mem::take(layer).bytes();
                layer.raw(&whole);
                layer.file("image/after", 0o644, b"x");
            }),
            &["image/before"],
        ),
    ]
}

/// What stands where a root is completed and masked (CVE-2025-31133, -52565, -52881).
pub(crate) fn redirecting() -> Layer {
    let mut layer = Layer::default();
    for (name, target) in [
        ("dev/null", "/proc/sys/kernel/core_pattern"),
        ("dev/zero", "/proc/sysrq-trigger"),
        ("dev/console", "/proc/sysrq-trigger"),
        ("dev/pts", "/proc/sys"),
        ("dev/shm", "/proc/sys/kernel"),
        ("dev/mqueue", "/proc"),
        ("proc", "/image/proc"),
        ("sys", "/proc"),
    ] {
        layer.link(name, target);
    }
    for name in ["image/proc/sys/kernel/", "image/proc/self/attr/", "image/proc/1/"] {
        layer.dir(name, 0o777);
    }
    layer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn gnu_tar_reads_what_is_ambiguous_as_the_table_says() {
        for (hostile, names) in ambiguous() {
            let mut tar = Command::new("tar")
                .args(["--list", "--file=-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("GNU tar is missing: install the package tar");
            // It may stop reading at the end mark, whatever follows.
            let _ = tar.stdin.take().unwrap().write_all(&hostile.layer.bytes());
            let said = tar.wait_with_output().unwrap().stdout;
            let said = String::from_utf8(said).unwrap();
            assert_eq!(said.lines().collect::<Vec<_>>(), names, "{}", hostile.name);
        }
    }
}
