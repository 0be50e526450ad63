//! Attacks 59 to 85: on what a sandbox may reach, and on the secrets that it uses.

use super::isolation::UNREACHABLE;
use super::row::{Expect, Row, act, but, held, known, not_applicable, outside, row};
use crate::egress::{lives, places, requests, secrets, streams};

/// What the gate says of what is not granted, or is no host.
const REFUSED: &[&str] = &["not_granted", "malformed"];
/// What is no request to it.
const MALFORMED: &[&str] = &["malformed"];
/// Of what must not leave.
const NOTHING_LEFT: (&str, Expect) = ("what left", held(&["nothing"]));
const PASSED: Expect = held(&["passed"]);

/// Of an echo.
const FORMS: &str = "a host that sends a secret back in a form that is not looked for";
/// Of a host that may be reached.
const CARRIED: &str = "Whatever the agent reads it can send there";

pub(super) const ROWS: &[Row] = &[
    row(
        59,
        "look for the secret inside: environment, files, memory",
        &[but(
            outside("hunt", act!(secrets::hunt), &["nothing"]),
            &[
                ("used before", held(&["swapped"])),
                // Else nothing was looked at.
                ("the placeholder: hunt/environments", held(&["found"])),
                ("the placeholder: hunt/files", held(&["found", "nothing"])),
                ("the placeholder: hunt/memory", held(&["found", "nothing"])),
            ],
        )],
    ),
    row(
        60,
        "metadata services and private addresses in all their spellings",
        &[but(outside("addresses", act!(places::addresses), REFUSED), &[NOTHING_LEFT])],
    ),
    row(
        61,
        "what was granted as a public host and lies inside",
        &[but(
            outside("inside", act!(places::inside), &["private"]),
            // Where no file of hosts has it.
            &[("localhost", held(&["private", "unresolved"]))],
        )],
    ),
    not_applicable(
        62,
        "a name that leads elsewhere a moment later",
        "the host's own resolver can't be made to lie here; the gate looks at what it resolved and dials that",
    ),
    row(
        63,
        "a redirect to a metadata service",
        &[but(
            outside("redirect", act!(places::redirect), REFUSED),
            &[("the redirect", held(&["handed back"])), NOTHING_LEFT],
        )],
    ),
    row(
        64,
        "names that are nearly the granted one",
        &[but(
            outside("names", act!(places::names), &["not_granted", "malformed", "mismatch"]),
            &[
                NOTHING_LEFT,
                ("the granted one, good.test", PASSED),
                ("the granted one, GOOD.TEST", PASSED),
            ],
        )],
    ),
    row(
        65,
        "different hosts in CONNECT, TLS and the request",
        &[but(
            outside(
                "three names",
                act!(streams::three_names),
                &["refused", "mismatch", "not_granted"],
            ),
            &[(": one host", PASSED)],
        )],
    ),
    row(
        66,
        "what is not TLS, or names no host in it",
        &[outside("not TLS", act!(streams::not_tls), &["closed, nothing left"])],
    ),
    row(
        67,
        "requests that two servers read differently",
        &[but(
            outside("ambiguous", act!(requests::ambiguous), MALFORMED),
            &[
                NOTHING_LEFT,
                // It may be cut off before it was sent whole, and the answer with it.
                ("a header of 1 MiB, by URL", held(&["malformed", "closed"])),
                ("a header of 1 MiB, in TLS", held(&["malformed", "closed"])),
            ],
        )],
    ),
    row(
        68,
        "floods of HTTP/2",
        &[outside("floods", act!(streams::floods), &["others are served, memory flat"])],
    ),
    row(
        69,
        "requests that never end",
        &[
            but(
                outside("slow", act!(streams::slow), &["served"]),
                &[("heads that never end", held(&["200 of 200 closed"]))],
            ),
            but(
                outside("hoarded", act!(streams::hoarded), &[]),
                &[(
                    "",
                    known(
                        &["not served", "closed", "unreachable"],
                        "One sandbox can take all that the gate has",
                    ),
                )],
            ),
        ],
    ),
    row(
        70,
        "a placeholder where its secret does not go",
        &[but(
            outside("elsewhere", act!(secrets::elsewhere), &["blocked"]),
            &[("where it goes", held(&["swapped"])), ("told", held(&["alarm"]))],
        )],
    ),
    row(
        71,
        "a placeholder in pieces and in other forms",
        &[but(
            outside("forms", act!(secrets::forms), &["blocked"]),
            &[
                ("Basic", held(&["swapped"])),
                (
                    "JSON in a body",
                    known(
                        &["left without it"],
                        "A placeholder in a form that is not looked for leaves as it is",
                    ),
                ),
                (
                    "over two headers",
                    known(
                        &["left without it"],
                        "A placeholder in a form that is not looked for leaves as it is",
                    ),
                ),
            ],
        )],
    ),
    row(
        72,
        "a host that sends the secret back",
        &[outside("echoes", act!(secrets::echoes), &["the placeholder came, alarm"])],
    ),
    row(
        73,
        "a host that sends it back in another form",
        &[but(
            outside("other forms", act!(secrets::transformed), &["the placeholder came, alarm"]),
            ECHOES,
        )],
    ),
    row(
        74,
        "a token that a host makes for the secret",
        &[but(
            outside("minted", act!(secrets::minted), &["a placeholder came"]),
            &[(
                "a token that was made",
                known(&["it came in"], "tokens that a host makes for who shows a secret"),
            )],
        )],
    ),
    row(
        75,
        "signatures of Amazon's (SigV4)",
        &[but(
            outside("signed", act!(requests::signed), &["blocked"]),
            &[("a signature", known(&["as it was signed"], "Nothing is signed with a secret"))],
        )],
    ),
    row(
        76,
        "a placeholder behind more than is looked through",
        &[outside("padded", act!(requests::padded), &["cut off, alarm"])],
    ),
    row(
        77,
        "other protocols out of HTTP",
        &[but(
            outside("upgrades", act!(requests::upgrades), MALFORMED),
            &[
                (
                    "websocket to a host that was named",
                    known(&["the wish left"], "Frames of websockets are not looked through"),
                ),
                ("websocket where reading is", held(&["method"])),
                // Served as the HTTP/1.1 that it is.
                ("h2c", PASSED),
            ],
        )],
    ),
    row(
        78,
        "a host of the secret without a valid certificate",
        &[but(
            outside("certificates", act!(secrets::certificates), &["certificate, blocked"]),
            &[("a place without TLS", known(&["swapped"], "goes there in clear"))],
        )],
    ),
    row(
        79,
        "round the gate: other addresses, datagrams, resolvers",
        &[but(
            outside("round", act!(places::round), UNREACHABLE),
            &[
                ("link-local-six", held(&["EINVAL", "ENETUNREACH", "EPERM", "EACCES"])),
                ("interfaces", held(&["lo"])),
                ("routes", held(&["0"])),
                ("sockets-named", held(&[""])),
                NOTHING_LEFT,
                ("by the gate", PASSED),
            ],
        )],
    ),
    row(
        80,
        "data in the names that are asked for",
        &[but(
            outside("labels", act!(places::labels), REFUSED),
            &[
                NOTHING_LEFT,
                ("names/asked", held(&["told where names lead"])),
                ("names/beside", held(&["no answer"])),
                ("a name beneath one that is granted", known(&["passed"], CARRIED)),
            ],
        )],
    ),
    row(
        81,
        "push elsewhere, delete, or go round by git's other ways",
        &[but(
            outside("git", act!(requests::git), &["push", "path", "method", "not_granted"]),
            &[("delete its own branch", held(&["push"])), ("its own branch", PASSED)],
        )],
    ),
    row(
        82,
        "carry something out by a host that may be reached in part",
        &[but(
            outside("carried", act!(requests::carried), &["method", "path"]),
            &[("in a query of what may be read", known(&["it left"], CARRIED))],
        )],
    ),
    row(
        83,
        "a secret that is revoked or rotated while it is used",
        &[but(
            outside("revoked", act!(lives::revoked), &["ended"]),
            &[
                ("afterwards", held(&["no secret left"])),
                ("rotated", held(&["passed, no secret left"])),
            ],
        )],
    ),
    row(
        84,
        "the gate, killed while it holds a secret",
        &[but(
            outside("killed", act!(lives::killed), &["none", "nothing", "ended"]),
            &[
                ("the next gate", PASSED),
                (
                    "its memory",
                    known(&["may be swapped", "is locked"], "The gate's memory may be swapped"),
                ),
            ],
        )],
    ),
    row(
        85,
        "one sandbox's authority and placeholder in another",
        &[but(
            outside("exchanged", act!(lives::exchanged), &["refused"]),
            &[
                ("what is told of it", held(&["no key"])),
                ("its placeholder elsewhere", held(&["no secret left"])),
            ],
        )],
    ),
];

const ECHOES: &[(&str, Expect)] = &[
    ("packed", held(&["refused"])),
    ("name", known(&["it came in, no alarm"], FORMS)),
    ("reversed", known(&["it came in, no alarm"], FORMS)),
    ("in two halves", known(&["it came in, no alarm"], FORMS)),
    ("by another host", known(&["it came in, no alarm"], "by way of another host")),
];
