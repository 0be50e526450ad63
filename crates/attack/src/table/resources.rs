//! Attacks 23 to 39: take more than was given.

use super::row::{Expect, Row, act, but, held, known, not_applicable, on, outside, row};
use crate::outside::{bombs, limits_asked, lives, objects, output, pressure};

/// How a bomb of the kernel's memory ends where the guest is no safer from the kernel's
/// choice than a command.
const ENDED: &[&str] = &[
    "lost; restarted; neighbour served",
    "lost; alive; neighbour served",
    "out of memory; alive; neighbour served",
    "out of memory; restarted; neighbour served",
    "ended: EFBIG; alive; neighbour served",
    "ended: ENOSPC; alive; neighbour served",
    "ended: EMFILE; alive; neighbour served",
    "ended: EAGAIN; alive; neighbour served",
    "ended: ENOMEM; alive; neighbour served",
];
/// The kernel counts processes that ended until it has time to free them.
const FORKED: &[&str] =
    &["deadline: EAGAIN; alive; neighbour served", "lost; restarted; neighbour served"];
/// As SECURITY.md says it.
const RESTARTS: &str = "a command that takes all its memory through the kernel can end the guest";

/// As SECURITY.md says it, of Docker.
const TERMINALS: &str = "one sandbox can take all terminals of the host but root's";
/// As SECURITY.md says it, of an ordinary user.
const PIPES: &str = "one sandbox can leave all others of the user small pipes";
/// Where sandboxes have one user.
const SHARING: &[(&str, &str, Expect)] = &[
    ("docker", "objects/terminals", known(&["host done; neighbour *"], TERMINALS)),
    ("rootless_single", "objects/pipes", known(&["host *"], PIPES)),
    ("rootless_range", "objects/pipes", known(&["host *"], PIPES)),
];

pub(super) const ROWS: &[Row] = &[
    row(
        23,
        "fork bomb",
        &[on(
            outside("fork", act!(bombs::forks), &["deadline: EAGAIN; alive; neighbour served"]),
            &[("docker", "bomb/fork", known(FORKED, RESTARTS))],
        )],
    ),
    row(
        24,
        "memory, by every door that it can be taken through",
        &[on(
            but(
                outside("memory", act!(bombs::memory), &["out of memory; alive; neighbour served"]),
                &[
                    // The kernel keeps these within limits of its own.
                    (
                        "bomb/memfd",
                        held(&[
                            "out of memory; alive; neighbour served",
                            "ended: EFBIG; alive; neighbour served",
                        ]),
                    ),
                    (
                        "bomb/pipes",
                        held(&[
                            "ended: EMFILE; alive; neighbour served",
                            "ended: EAGAIN; alive; neighbour served",
                            "out of memory; alive; neighbour served",
                            "ended: ENOMEM; alive; neighbour served",
                        ]),
                    ),
                    (
                        "bomb/sockets",
                        held(&[
                            "ended: EMFILE; alive; neighbour served",
                            "out of memory; alive; neighbour served",
                            "ended: ENOMEM; alive; neighbour served",
                        ]),
                    ),
                    (
                        "bomb/locked",
                        held(&[
                            "out of memory; alive; neighbour served",
                            "ended: refused; alive; neighbour served",
                        ]),
                    ),
                    (
                        "bomb/shm",
                        held(&[
                            "ended: EFBIG; alive; neighbour served",
                            "out of memory; alive; neighbour served",
                            "out of memory; restarted; neighbour served",
                            "ended: ENOSPC; alive; neighbour served",
                        ]),
                    ),
                    (
                        "bomb/sysv",
                        held(&[
                            "out of memory; alive; neighbour served",
                            "out of memory; restarted; neighbour served",
                        ]),
                    ),
                ],
            ),
            &[
                ("rootless_single", "bomb/memfd", known(ENDED, RESTARTS)),
                ("rootless_single", "bomb/sockets", known(ENDED, RESTARTS)),
                ("rootless_range", "bomb/memfd", known(ENDED, RESTARTS)),
                ("rootless_range", "bomb/sockets", known(ENDED, RESTARTS)),
                ("docker", "bomb/memfd", known(ENDED, RESTARTS)),
                ("docker", "bomb/sockets", known(ENDED, RESTARTS)),
                ("docker", "bomb/pipes", known(ENDED, RESTARTS)),
                ("docker", "bomb/shm", known(ENDED, RESTARTS)),
                ("docker", "bomb/sysv", known(ENDED, RESTARTS)),
            ],
        )],
    ),
    row(
        25,
        "fill the disk, files longer than any disk",
        &[
            outside(
                "fill",
                act!(bombs::disk),
                &[
                    "disk full; alive; neighbour served",
                    "ended: ENOSPC; alive; neighbour served",
                    "ended: EDQUOT; alive; neighbour served",
                ],
            ),
            outside("sparse", act!(bombs::sparse), &["8 EiB EFBIG, 1 TiB EFBIG"]),
            outside("room taken without writing", act!(bombs::allocate), &["EOPNOTSUPP, ENOTTY"]),
        ],
    ),
    row(
        26,
        "inodes, depth, long names",
        &[
            outside(
                "inodes",
                act!(bombs::inodes),
                &[
                    "disk full; alive; neighbour served",
                    "ended: ENOSPC; alive; neighbour served",
                    "ended: EDQUOT; alive; neighbour served",
                ],
            ),
            outside("depth", act!(bombs::depth), &["destroyed"]),
            outside("a full directory", act!(bombs::listing), &["truncated"]),
        ],
    ),
    row(
        27,
        "output without end, without lines, without sense",
        &[outside("flood", act!(output::floods), &["capped, counted to the byte, memory flat"])],
    ),
    row(
        28,
        "a background child holds the output open",
        &[outside("hold", act!(output::hold), &["ended"])],
    ),
    row(
        29,
        "outlive the deadline: deaf, stopped, waiting in the kernel",
        &[outside(
            "deadline",
            act!(bombs::outlive),
            &["deadline; alive; neighbour served; nothing left"],
        )],
    ),
    row(
        30,
        "zombies, double forks, new sessions",
        &[outside(
            "zombies",
            act!(bombs::zombies),
            &["ended: EAGAIN; alive; neighbour served; nothing left"],
        )],
    ),
    row(
        31,
        "descriptors, ports, timers, watches, names; what all of a user or a host share",
        &[
            on(
                but(
                    outside("objects", act!(objects::taken), &["host done; neighbour done"]),
                    // There are none for anybody inside.
                    &[("objects/aio", held(&["host done; neighbour ENOSYS"]))],
                ),
                SHARING,
            ),
            but(
                outside(
                    "kernel objects",
                    act!(bombs::objects),
                    &[
                        "ended: EMFILE; alive; neighbour served",
                        "ended: EAGAIN; alive; neighbour served",
                        "ended: ENOMEM; alive; neighbour served",
                    ],
                ),
                &[(
                    "bomb/names",
                    held(&[
                        "ended: never refused; alive; neighbour served",
                        "out of memory; alive; neighbour served",
                    ]),
                )],
            ),
        ],
    ),
    row(
        32,
        "all at once, and what a neighbour feels of it",
        &[but(
            outside("pressure", act!(pressure::pressure), &["served", "p99 within 50 ms"]),
            &[("the attacker", held(&["alive", "restarted"]))],
        )],
    ),
    row(
        33,
        "requests that are refused, without end",
        &[outside("denials", act!(limits_asked::denials), &["refused, memory flat"])],
    ),
    row(
        34,
        "commands and environments that are too long",
        &[outside("too long", act!(limits_asked::too_long), &["invalid", "cannot_start"])],
    ),
    row(
        35,
        "deadlines and caps that are no numbers to work with",
        &[outside("numbers", act!(limits_asked::numbers), &["invalid"])],
    ),
    row(
        36,
        "write through to the disk without end",
        &[
            outside("fsync", act!(bombs::fsync), &["ended: done; alive; neighbour served"]),
            but(
                outside("bandwidth of the disk", act!(bombs::bandwidth), &["unlimited"]),
                &[("unlimited", known(&["unlimited"], "how fast a sandbox writes is not limited"))],
            ),
        ],
    ),
    row(
        37,
        "sandboxes without number",
        &[outside("many", act!(lives::many), &["made and destroyed"])],
    ),
    row(
        38,
        "suspended in the middle of writes",
        &[outside("suspended", act!(lives::suspended_writes), &["nothing lost"])],
    ),
    not_applicable(
        39,
        "the clock is set back",
        "a sandbox can't set it (2); only the machine's owner can, which `--qemu` does: deadlines and ages hold there",
    ),
];
