//! Attacks 40 to 58: against whoever reads and writes a sandbox's files from outside.

use super::row::{Row, act, but, held, inside, not_applicable, outside, row};
use crate::outside::{images, paths, races, searches};

/// What reading of what is no file answers.
const READ: &[&str] = &["invalid_path", "file_not_found", "permission_denied"];

pub(super) const ROWS: &[Row] = &[
    row(40, "read a FIFO", &[outside("fifo", act!(paths::fifo), &["invalid_path"])]),
    row(
        41,
        "read devices and sockets",
        &[but(
            outside("devices", act!(paths::devices), &["invalid_path", "permission_denied"]),
            &[
                // Links are read as text, which leads to the sandbox's own file.
                (
                    "read /proc/1/root/etc/passwd",
                    held(&["done", "invalid_path", "permission_denied"]),
                ),
                (
                    "/workspace/special/root",
                    held(&["invalid_path", "permission_denied", "is_directory"]),
                ),
                ("/proc/kmsg", held(&["invalid_path", "permission_denied"])),
                (
                    "/sys/kernel/notes",
                    held(&["invalid_path", "permission_denied", "file_not_found"]),
                ),
            ],
        )],
    ),
    row(
        42,
        "read a file of 10 GiB, and beyond its end",
        &[outside("large", act!(paths::large), &["bounded"])],
    ),
    row(
        43,
        "links that leave, dangle, or never end",
        &[but(
            outside("links", act!(paths::links), &["invalid_path"]),
            &[("dangling", held(&["invalid_path", "file_not_found"]))],
        )],
    ),
    row(
        44,
        "exchange a directory for a link while it is written to (CVE-2018-15664)",
        &[outside("race", act!(races::race), &["never outside"])],
    ),
    row(
        45,
        "hard links to what is not its own",
        &[inside("link/", &["EXDEV", "EPERM", "EACCES", "EROFS", "ENOENT"])],
    ),
    row(
        46,
        "paths that are not what they seem",
        &[but(
            outside(
                "paths",
                act!(paths::forms),
                &["invalid_path", "file_not_found", "permission_denied"],
            ),
            &[
                ("normal", held(&["done"])),
                ("twins stay apart", held(&["done"])),
                ("a name of 255 bytes", held(&["done"])),
                ("too long", held(&["invalid_path", "invalid"])),
            ],
        )],
    ),
    row(
        47,
        "one file by several names",
        &[but(
            outside("routes", act!(paths::routes), &["same"]),
            &[
                ("other case", held(&["file_not_found"])),
                ("beside", held(&["file_not_found", "invalid_path"])),
            ],
        )],
    ),
    row(
        48,
        "an image whose entries leave it: absolute, climbing, by links, devices",
        &[
            but(
                outside("entries of layers", act!(images::entries), &["refused", "inside"]),
                &[("left", held(&["nothing"]))],
            ),
            but(
                outside("special files of layers", act!(images::special), &[]),
                &[
                    ("open the block", held(&["ENOENT", "EACCES", "EPERM", "ENXIO"])),
                    ("open the device", held(&["ENOENT", "EACCES", "EPERM", "ENXIO"])),
                    ("read the block", held(READ)),
                    ("read the device", held(READ)),
                    ("read the fifo", held(READ)),
                    ("a setuid program", held(&["agent agent 0000000000000000"])),
                ],
            ),
        ],
    ),
    row(
        49,
        "archives that two readers read differently (CVE-2025-4517, CVE-2025-62518)",
        &[
            outside("an overlong chain", act!(images::overlong), &["refused", "inside"]),
            outside("ambiguous layers", act!(images::ambiguous), &["as GNU tar", "refused"]),
        ],
    ),
    row(
        50,
        "archives that are much larger unpacked",
        &[but(
            outside("bombs", act!(images::grown), &["refused, memory flat"]),
            &[("left", held(&["nothing"]))],
        )],
    ),
    row(
        51,
        "names that would do harm on the host",
        &[outside("names", act!(paths::strange), &["relative, inside"])],
    ),
    not_applicable(
        52,
        "a library that the host loads out of the sandbox (CVE-2019-14271)",
        "no program of the host is run over a sandbox's files: all of them go through the guest",
    ),
    row(
        53,
        "an edit that grows without end",
        &[outside("edits", act!(searches::edits), &["too_large", "done", "conflict"])],
    ),
    row(
        54,
        "a pattern that takes for ever",
        &[but(outside("patterns", act!(searches::patterns), &["done", "invalid_argument"]), &[])],
    ),
    row(
        55,
        "a glob that looks everywhere",
        &[outside("globs", act!(searches::globs), &["done", "invalid_argument"])],
    ),
    row(
        56,
        "a file changes between read and write",
        &[outside("conflict", act!(searches::conflict), &["conflict"])],
    ),
    row(
        57,
        "an edit of what is no text",
        &[outside("binary", act!(searches::binary), &["bytes outside stay"])],
    ),
    row(
        58,
        "files that run later: hooks, shell starts, pipelines",
        &[outside("later", act!(paths::later), &["written and listed"])],
    ),
];
