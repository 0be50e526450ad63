//! Dependencies point down only.
//!
//! Owns the table of floors and the few rules that a floor can't say. Judges
//! normal and build dependencies; what only tests see is free. Must never read
//! files: it gets the workspace as a value.

use crate::finding::Finding;
use crate::workspace::{Member, Workspace};

/// Where a crate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Floor {
    /// Counted from the ground; a crate depends on lower numbers only.
    At(u8),
    /// Outside the house: depends on no crate of the project, and none depends on it.
    Outside,
}

/// Every crate of the project and its floor.
///
/// `sim` is a tool for tests, and yet stands above `engine`: it drives a real
/// engine over a made-up world, so it needs the engine below it. `attack`, `evil` and
/// `sandbox-testing` are tools for tests as well: the first drives backends, the second
/// runs inside them, and the third says what every backend must do.
const FLOORS: &[(&str, Floor)] = &[
    ("beneath", Floor::At(0)),
    ("policy", Floor::At(0)),
    ("sandbox", Floor::At(0)),
    ("shell", Floor::At(0)),
    ("agent", Floor::At(1)),
    ("repository", Floor::At(1)),
    ("skills", Floor::At(1)),
    ("evil", Floor::At(0)),
    ("guest", Floor::At(1)),
    ("sandbox-client", Floor::At(1)),
    ("sandbox-testing", Floor::At(1)),
    ("gate", Floor::At(1)),
    ("sandbox-native", Floor::At(2)),
    ("sandbox-docker", Floor::At(2)),
    ("sandbox-kube", Floor::At(2)),
    ("sandbox-remote", Floor::At(2)),
    ("model", Floor::At(2)),
    ("audit", Floor::At(2)),
    ("api", Floor::At(2)),
    ("telemetry", Floor::At(2)),
    ("attack", Floor::At(3)),
    ("client", Floor::At(3)),
    ("store", Floor::At(3)),
    ("tools", Floor::At(3)),
    ("mcp", Floor::At(4)),
    ("oidc", Floor::At(4)),
    ("engine", Floor::At(4)),
    ("sim", Floor::At(5)),
    ("host-restate", Floor::At(5)),
    ("host-temporal", Floor::At(5)),
    ("server", Floor::At(5)),
    ("outrigger", Floor::At(6)),
    ("xtask", Floor::Outside),
];

/// Crates that may depend on these crates of the project and no other, whatever
/// the floors allow.
const NARROW: &[(&str, &[&str], &str)] = &[
    (
        "attack",
        &["evil", "gate", "guest", "sandbox", "sandbox-native", "sandbox-docker"],
        "sandboxes are attacked through their port and their gate, whoever uses them",
    ),
    ("client", &["api"], "a client of the server knows nothing but the contract"),
    ("guest", &["sandbox"], "the guest takes nothing but the types and the wire of `sandbox`"),
    ("sandbox-client", &["sandbox"], "a connection to a guest knows nothing but the wire"),
    ("sandbox-testing", &["sandbox"], "backends are tested by their port alone"),
    (
        "sandbox-native",
        &["sandbox", "sandbox-client"],
        "the composition root hands a backend its guest program",
    ),
    ("sandbox-docker", &["sandbox", "sandbox-client"], "a backend knows nothing but its port"),
    ("sandbox-kube", &["sandbox", "sandbox-client"], "a backend knows nothing but its port"),
    ("sandbox-remote", &["sandbox", "sandbox-client"], "a backend knows nothing but its port"),
];

/// The floor of a crate, by its short name.
pub(crate) fn floor(short: &str) -> Option<Floor> {
    FLOORS.iter().find(|(name, _)| *name == short).map(|(_, floor)| *floor)
}

/// Every dependency that points up or sideways, and every crate without a floor.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &workspace.members {
        let Some(own) = floor(member.short()) else {
            findings.push(Finding::error(
                member.manifest(),
                1,
                "layers",
                format!("`{}` has no floor: add it to the table in xtask's layers.rs", member.name),
            ));
            continue;
        };
        for dependency in member.dependencies.iter().filter(|dependency| !dependency.dev) {
            if let Some(lower) = workspace.member(&dependency.name)
                && let Some(problem) = judge(member, own, lower)
            {
                findings.push(Finding::error(member.manifest(), 1, "layers", problem));
            }
        }
    }
    findings
}

fn judge(member: &Member, own: Floor, lower: &Member) -> Option<String> {
    let (from, to) = (&member.name, &lower.name);
    match (own, floor(lower.short())?) {
        (Floor::Outside, _) => {
            return Some(format!("`{from}` -> `{to}`: the checks build without the project"));
        }
        (Floor::At(_), Floor::Outside) => {
            return Some(format!("`{from}` -> `{to}`: nothing depends on the checks"));
        }
        (Floor::At(own), Floor::At(under)) if under >= own => {
            let way = if under > own { "up" } else { "sideways" };
            return Some(format!(
                "`{from}` (floor {own}) -> `{to}` (floor {under}) points {way}; dependencies point down"
            ));
        }
        (Floor::At(_), Floor::At(_)) => {}
    }
    NARROW
        .iter()
        .find(|(name, allowed, _)| *name == member.short() && !allowed.contains(&lower.short()))
        .map(|(_, _, reason)| format!("`{from}` -> `{to}`: {reason}"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::finding::listed;
    use crate::workspace::{Dependency, fixture};

    fn check_members(members: Vec<Member>, expected: &Expect) {
        expected.assert_eq(&listed(&check(&Workspace { members, ..Workspace::default() })));
    }

    #[test]
    fn down_is_fine_and_foreign_crates_are_no_matter() {
        check_members(
            vec![
                fixture("outrigger-policy", &["serde"]),
                fixture("outrigger-agent", &["outrigger-policy"]),
                fixture("outrigger-store", &["outrigger-agent", "sqlx"]),
                fixture("outrigger", &["outrigger-store", "outrigger-policy"]),
            ],
            &expect![""],
        );
    }

    #[test]
    fn up_and_sideways_name_both() {
        check_members(
            vec![
                fixture("outrigger-sandbox", &["outrigger-store"]),
                fixture("outrigger-store", &["outrigger-tools"]),
                fixture("outrigger-tools", &[]),
            ],
            &expect![[r"
                crates/sandbox/Cargo.toml:1: layers: `outrigger-sandbox` (floor 0) -> `outrigger-store` (floor 3) points up; dependencies point down
                crates/store/Cargo.toml:1: layers: `outrigger-store` (floor 3) -> `outrigger-tools` (floor 3) points sideways; dependencies point down
            "]],
        );
    }

    #[test]
    fn floor_0_holds_no_internal_dependency() {
        check_members(
            vec![
                fixture("outrigger-sandbox", &["outrigger-policy"]),
                fixture("outrigger-policy", &[]),
            ],
            &expect![[r"
                crates/sandbox/Cargo.toml:1: layers: `outrigger-sandbox` (floor 0) -> `outrigger-policy` (floor 0) points sideways; dependencies point down
            "]],
        );
    }

    #[test]
    fn guest_and_backends_know_only_the_port() {
        check_members(
            vec![
                fixture("outrigger-guest", &["outrigger-policy", "outrigger-sandbox"]),
                fixture("outrigger-sandbox-native", &["outrigger-sandbox", "outrigger-policy"]),
                fixture("outrigger-policy", &[]),
                fixture("outrigger-sandbox", &[]),
            ],
            &expect![[r"
                crates/guest/Cargo.toml:1: layers: `outrigger-guest` -> `outrigger-policy`: the guest takes nothing but the types and the wire of `sandbox`
                crates/sandbox-native/Cargo.toml:1: layers: `outrigger-sandbox-native` -> `outrigger-policy`: the composition root hands a backend its guest program
            "]],
        );
    }

    #[test]
    fn a_backend_gets_the_guest_only_in_its_tests() {
        let mut native = fixture("outrigger-sandbox-native", &[]);
        native.dependencies.push(Dependency { name: "outrigger-guest".to_owned(), dev: true });
        check_members(vec![native.clone(), fixture("outrigger-guest", &[])], &expect![""]);

        native.dependencies[0].dev = false;
        check_members(
            vec![native, fixture("outrigger-guest", &[])],
            &expect![[r"
                crates/sandbox-native/Cargo.toml:1: layers: `outrigger-sandbox-native` -> `outrigger-guest`: the composition root hands a backend its guest program
            "]],
        );
    }

    #[test]
    fn the_checks_stand_apart() {
        check_members(
            vec![fixture("xtask", &["outrigger-sim"]), fixture("outrigger-sim", &["xtask"])],
            &expect![[r"
                crates/xtask/Cargo.toml:1: layers: `xtask` -> `outrigger-sim`: the checks build without the project
                crates/sim/Cargo.toml:1: layers: `outrigger-sim` -> `xtask`: nothing depends on the checks
            "]],
        );
    }

    #[test]
    fn an_unknown_crate_needs_a_floor() {
        check_members(
            vec![fixture("outrigger-bilge", &[])],
            &expect![[r"
                crates/bilge/Cargo.toml:1: layers: `outrigger-bilge` has no floor: add it to the table in xtask's layers.rs
            "]],
        );
    }
}
