//! Attacks 1 to 22: out of the sandbox, or into another.

use super::row::{Expect, Row, act, but, held, inside, known, on, outside, row};
use crate::outside::{images, lives, neighbours, requests};

/// Of others' marks.
const NOTHING: &[&str] = &["none", "ENOENT", "ECONNREFUSED", "empty", "0"];
/// What refuses without having done anything: by the filter, by rights, by absence.
const REFUSED: &[&str] = &["EPERM", "ENOSYS", "EACCES"];
/// What a device or a file that is not there, or not ours, answers.
const NOT_THERE: &[&str] = &["ENOENT", "EACCES", "EPERM", "ENXIO", "ENODEV", "ENOTDIR"];
/// What is beyond the loopback.
pub(super) const UNREACHABLE: &[&str] =
    &["ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EPERM", "EACCES", "ECONNREFUSED"];
/// Not writable.
const PROTECTED: &[&str] = &["ENOENT", "EACCES", "EPERM", "EROFS", "ENOTDIR", "EIO"];

/// Why what is in Docker's sandboxes stands there.
const SOCKET: &str = "a command can put itself in the guest's place";
/// See [`SOCKET`].
const SYS: &str = "it sees `/sys`, read-only";
/// What is in a masked place.
const MASKED: &[&str] = &["null device", "absent", "0 entries", "refused"];
/// What is not masked, and not to be changed.
const UNMASKED: &[(&str, Expect)] = &[
    ("proc-is-proc", held(&["yes"])),
    ("mask/replace/dev/null", held(&["EROFS", "EACCES", "EPERM", "EBUSY"])),
    ("mask/replace/dev/zero", held(&["EROFS", "EACCES", "EPERM", "EBUSY"])),
    ("mask/replace/dev/urandom", held(&["EROFS", "EACCES", "EPERM", "EBUSY"])),
];

pub(super) const ROWS: &[Row] = &[
    row(
        1,
        "make or enter a namespace, mount anything",
        &[
            inside("namespace/", REFUSED),
            // In a domain of Landlock nobody mounts anything, whatever its rights.
            on(
                inside("landlock/domain", &["confined", "none"]),
                &[("docker", "", held(&["free", "none"]))],
            ),
        ],
    ),
    row(
        2,
        "rare and dangerous system calls, also by the kernel's other ways in",
        &[
            inside("kernel/", REFUSED),
            inside("rare/", &["EPERM", "ENOSYS", "ENOTTY", "EACCES"]),
            on(
                but(
                    inside("alien/", REFUSED),
                    &[("alien/i386", held(&["signal 31", "signal 11", "ENOSYS"]))],
                ),
                // The engine's filter ends who comes by another way in.
                &[
                    ("docker", "alien/x32", held(&["signal 31"])),
                    ("docker", "alien/x32-ptrace", held(&["signal 31"])),
                ],
            ),
        ],
    ),
    row(
        3,
        "sockets of other families, raw ones, networks",
        &[
            but(
                inside(
                    "socket/",
                    &["EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"],
                ),
                &[
                    ("bridge", held(&["EPERM", "ENOSYS", "ENOTTY", "EINVAL", "ENODEV", "ENOPKG"])),
                    ("iptables", held(&["EPERM", "ENOPROTOOPT"])),
                    // Requests that no list has.
                    ("interface-address", held(&["EPERM", "ENOTTY"])),
                    ("interface-down", held(&["EPERM", "ENOTTY"])),
                ],
            ),
            but(
                inside("network/", UNREACHABLE),
                &[
                    ("link-local-six", held(&["EINVAL", "ENETUNREACH", "EPERM", "EACCES"])),
                    ("interfaces", held(&["lo"])),
                    ("routes", held(&["0"])),
                    ("sockets-named", held(&[""])),
                ],
            ),
            outside(
                "a listener of the host",
                act!(neighbours::host_listener),
                &["ECONNREFUSED", "EPERM"],
            ),
        ],
    ),
    row(
        4,
        "make or open a device of the host",
        &[
            but(
                inside("device/", NOT_THERE),
                &[
                    // A terminal of the sandbox's own, where a container engine gives one.
                    ("device/console", held(&["ENOENT", "EACCES", "EPERM", "ENXIO", "EIO"])),
                ],
            ),
            inside("walk/devices", &["none"]),
            // A profile of Docker's can name what it allows, and not why it refuses the rest.
            inside("whiteout/", &["EPERM", "EACCES", "ENOENT", "ENOSYS"]),
            inside("landlock/node", &["EPERM", "EACCES", "ENOENT", "ENOSYS", "none"]),
        ],
    ),
    row(
        5,
        "write a setting of the kernel",
        &[
            but(
                inside("proc/", PROTECTED),
                &[
                    ("write-any-setting", held(&["none"])),
                    // Covered by the null device, which takes everything and does nothing.
                    ("write-sysrq-trigger", held(&["done", "ENOENT", "EROFS", "EACCES", "EPERM"])),
                    ("kernel-addresses", held(&["hidden"])),
                ],
            ),
            inside("landlock/make", PROTECTED),
            on(
                inside("walk/writable", &["none"]),
                &[("docker", "", known(&["2: /run/outrigger /var/outrigger/output"], SOCKET))],
            ),
            on(
                but(
                    inside("mounts/", &["ENOENT", "EACCES"]),
                    &[
                        ("without-nosuid", held(&["none"])),
                        ("propagating", held(&["none"])),
                        (
                            "host-paths",
                            known(&["none", "some"], "the list of mounts names the host's folders"),
                        ),
                        ("mounts/sys", held(&["ENOENT", "EACCES"])),
                        ("cgroup-path", held(&["own"])),
                    ],
                ),
                &[
                    (
                        "docker",
                        "without-nosuid",
                        known(
                            &["none", "*"],
                            "its mounts allow setuid programs, which gain nothing there",
                        ),
                    ),
                    ("docker", "mounts/sys", known(&["done"], SYS)),
                    ("docker", "mounts/cgroup", known(&["done", "ENOENT"], SYS)),
                    (
                        "docker",
                        "propagating",
                        known(&["none", "*"], "what the host mounts beneath them shows up in them"),
                    ),
                ],
            ),
        ],
    ),
    row(
        6,
        "write to the program that starts commands (CVE-2019-5736)",
        &[
            inside("page/program-of-process-1", &["EACCES", "EPERM", "ETXTBSY", "EROFS"]),
            inside("page/own-program", &["ETXTBSY"]),
            outside(
                "start /proc/self/exe",
                act!(requests::own_program),
                &["cannot_start", "exit 2", "exit 3", "exit 101"],
            ),
        ],
    ),
    row(
        7,
        "a working directory or a program out of an open descriptor (CVE-2024-21626)",
        &[but(
            outside("by descriptor", act!(requests::descriptors), &["cannot_start", "invalid"]),
            &[
                // An ordinary directory, and the command's own root.
                ("cwd /proc/1/ns", held(&["cannot_start", "ran: Exited(0)"])),
                ("program /proc/thread-self/root", held(&["cannot_start", "ran: Exited(0)"])),
            ],
        )],
    ),
    row(
        8,
        "descriptors that leak",
        &[
            inside("process/descriptors", &["0=/dev/null 1=pipe 2=pipe"]),
            inside("guest/list-fd", &["EACCES"]),
        ],
    ),
    row(
        9,
        "an image that redirects masks (CVE-2025-31133)",
        &[
            but(inside("mask/", MASKED), UNMASKED),
            but(outside("masks of an image", act!(images::masks), MASKED), UNMASKED),
            outside("again after restarts", act!(lives::masks_after_restarts), &["same"]),
        ],
    ),
    row(
        10,
        "an image that redirects the console or procfs writes (CVE-2025-52565, -52881)",
        &[
            inside("mask/proc-is-proc", &["yes"]),
            inside("device/console", &["ENOENT", "EACCES", "EPERM", "ENXIO", "EIO"]),
            but(
                outside("devices of an image", act!(images::console), NOT_THERE),
                &[("console", held(&["ENOENT", "EACCES", "EPERM", "ENXIO", "EIO"]))],
            ),
        ],
    ),
    row(
        11,
        "sockets of container engines and clusters, and in what is shown of the host",
        &[
            on(
                inside("walk/sockets", &["none"]),
                &[("docker", "", known(&["1: /run/outrigger/guest"], SOCKET))],
            ),
            inside("mounts/var", &["ENOENT", "EACCES"]),
            inside("mounts/run", &["ENOENT", "EACCES"]),
        ],
    ),
    row(
        12,
        "open a file by its handle (shocker)",
        &[inside("kernel/shocker", &["EPERM"]), inside("kernel/open_by_handle_at", &["EPERM"])],
    ),
    row(
        13,
        "the guest: read it, write it, signal it, take its descriptors",
        &[
            but(
                inside("guest/", &["EPERM", "EACCES", "ENOSYS", "ESRCH"]),
                &[
                    ("follow-exe", held(&["EACCES"])),
                    ("guest/affinity", held(&["EPERM", "done"])),
                    ("guest/nice", held(&["EPERM", "EACCES", "done"])),
                    ("guest/ioprio", held(&["EPERM", "done"])),
                    ("guest/signals", held(&["refused", "sent"])),
                    // It is init of its namespace: the kernel drops what it does not handle.
                    ("guest/pidfd-kill", held(&["EPERM", "done"])),
                    ("guest/process_mrelease", held(&["EPERM", "EINVAL", "ENOSYS"])),
                    ("guest/syscall", held(&["EPERM", "EACCES"])),
                ],
            ),
            inside("process/others-seen", &["none"]),
            outside("it serves afterwards", act!(requests::guest_survives), &["alive"]),
        ],
    ),
    row(
        14,
        "write through the page cache (Dirty Pipe, Dirty COW)",
        &[inside("page/dirty", &["unchanged"])],
    ),
    row(
        15,
        "setuid programs, file capabilities, other ids",
        &[
            but(
                inside("gain/", &["EPERM", "EINVAL", "EACCES"]),
                &[
                    ("own-setuid-program", held(&["agent agent 0000000000000000"])),
                    ("setuid-programs-of-the-root", held(&["0"])),
                    ("prctl-capability", held(&["EPERM", "EINVAL"])),
                ],
            ),
            inside("process/Uid", &["agent agent agent agent"]),
            inside("process/Cap", &["0000000000000000"]),
            inside("process/NoNewPrivs", &["1"]),
            inside("process/Seccomp", &["2"]),
            // By no other the kernel leaves the host's program for cores alone.
            inside("core/", &["1 1"]),
            inside("process/secrets-in-environment", &["none"]),
        ],
    ),
    row(
        16,
        "push input into a terminal, escape sequences in output",
        &[
            but(
                inside("terminal/", &["EPERM", "EACCES"]),
                &[
                    ("controlling", held(&["ENXIO", "ENOENT"])),
                    ("others", held(&["none"])),
                    ("take-console", held(&["EPERM", "EACCES", "ENOTTY"])),
                    ("steal", held(&["EPERM", "EACCES"])),
                ],
            ),
            outside("escapes come as bytes", act!(requests::escapes), &["as they are"]),
        ],
    ),
    row(
        17,
        "an image's ENTRYPOINT, USER, ONBUILD, VOLUME, HEALTHCHECK, labels, working directory",
        &[
            on(
                but(
                    outside("wishes of an image", act!(images::wishes), &["ignored"]),
                    &[
                        ("spy/directory", held(&["/workspace"])),
                        ("spy/user", held(&["agent agent"])),
                        ("spy/volumes", held(&["none"])),
                        ("left", held(&["nothing"])),
                    ],
                ),
                &[(
                    "docker",
                    "spy/volumes",
                    known(
                        &["/usr /image/volume", "/image/volume /usr"],
                        "the volumes that an image names are made, and go with the sandbox",
                    ),
                )],
            ),
            outside(
                "working directories of an image",
                act!(images::directories),
                &["/workspace", "refused"],
            ),
        ],
    ),
    row(
        18,
        "ask for privileges, devices, mounts, the host's network",
        &[
            outside(
                "fields of a spec",
                act!(requests::fields),
                &[
                    "cpu_millis_max disk_bytes_max disk_inodes_max isolation_min lifetime memory_bytes_max origin pids_max served",
                ],
            ),
            outside("names that are paths", act!(requests::names), &["refused"]),
        ],
    ),
    row(
        19,
        "a template that is not what was asked for",
        &[
            outside(
                "unknown templates",
                act!(requests::templates),
                &["absent", "invalid", "unsupported"],
            ),
            but(
                outside("layers under another digest", act!(images::forged), &["refused"]),
                &[("left", held(&["nothing"]))],
            ),
        ],
    ),
    row(
        20,
        "one sandbox spies on another",
        &[but(
            outside("marks", act!(neighbours::spy), NOTHING),
            &[
                ("spy/queue", held(&["ENOENT", "ENOSYS", "EACCES"])),
                (
                    "spy/lock",
                    known(
                        &["done", "EAGAIN", "nothing shared"],
                        "a lock on a program of the host is seen by other sandboxes that show it",
                    ),
                ),
                (
                    "spy/watch",
                    known(
                        &["nothing", "seen"],
                        "inotify tells when another sandbox opens a program of the host that both show",
                    ),
                ),
            ],
        )],
    ),
    row(
        21,
        "what a resumed or forked sandbox repeats: entropy, clock, processes",
        &[outside("resumed", act!(lives::resumed), &["differs", "running", "0"])],
    ),
    row(
        22,
        "read the disk of a sandbox that was destroyed",
        &[but(
            outside("left behind", act!(neighbours::destroyed), NOTHING),
            &[
                ("spy/queue", held(&["ENOENT", "ENOSYS", "EACCES"])),
                ("spy/lock", held(&["done", "nothing shared"])),
                (
                    "spy/watch",
                    known(
                        &["nothing", "seen"],
                        "inotify tells when another sandbox opens a program of the host that both show",
                    ),
                ),
            ],
        )],
    ),
];
