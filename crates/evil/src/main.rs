//! For tests: a program that attacks the sandbox it runs in.
//!
//! Owns the attempts that are made from inside and the words for what came of them.
//! It never decides whether that is good: the table of attacks holds what is
//! expected. Run outside of a sandbox it does harm, but for `objects one`.

#![expect(unsafe_code, reason = "raw system calls are what this program is for")]

mod bomb;
mod calls;
mod cores;
mod disk;
mod egress;
mod gain;
mod landlock;
mod limits;
mod objects;
mod paths;
mod process;
mod rare;
mod report;
mod sockets;
mod spy;
mod sys;
mod whiteout;

use std::io::Write;
use std::process::ExitCode;

use report::Report;

/// Attempts that are made together.
type Group = (&'static str, fn(&Report));

const GROUPS: &[Group] = &[
    ("namespace", calls::namespace),
    ("kernel", calls::kernel),
    ("alien", calls::alien),
    ("socket", sockets::sockets),
    ("network", sockets::network),
    ("device", paths::devices),
    ("proc", paths::proc),
    ("mask", paths::masks),
    ("walk", paths::walk),
    ("mounts", paths::mounts),
    ("process", process::process),
    ("core", cores::cores),
    ("rare", rare::rare),
    ("guest", process::guest),
    ("terminal", process::terminal),
    ("gain", gain::gain),
    ("page", gain::pages),
    ("link", paths::links),
    ("landlock", landlock::landlock),
    ("whiteout", whiteout::whiteouts),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (mode, rest) = match words.split_first() {
        Some((mode, rest)) => (mode.as_str(), rest),
        None => ("", &[][..]),
    };
    match mode {
        "try" => {
            for (name, group) in GROUPS {
                if rest.is_empty() || rest.iter().any(|word| word == name) {
                    group(&Report);
                }
            }
            ExitCode::SUCCESS
        }
        "bomb" => bomb::run(rest),
        "disk" => disk::run(rest),
        "egress" => egress::run(rest),
        "spy" => spy::run(rest),
        "objects" => objects::run(rest),
        _ => {
            let usage = b"try GROUP... | bomb KIND [N] | disk KIND [N] | spy plant|look WORD | \
                          objects take|one KIND | egress wire PORT|slow PORT N|hunt WORD\n";
            // There is nowhere to complain to.
            let _ = std::io::stderr().write_all(usage);
            ExitCode::from(2)
        }
    }
}
