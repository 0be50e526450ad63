//! A world in which something never happens proves nothing about it.

use outrigger_sim::{Happening, Plans, Sim, Tally};

/// Seeds that are looked at; CI looks at more, and fails if anything never happens there.
const SEEDS: u64 = 12;

/// What many seeds have a share in, and in how many of [`SEEDS`] at least.
const SHARES: [(Happening, u64); 8] = [
    (Happening::Approved, 3),
    (Happening::Denied, 2),
    (Happening::AnsweredTwice, 3),
    (Happening::Hosts, 10),
    (Happening::Fenced, 6),
    (Happening::KilledAfter, 10),
    (Happening::LostDisk, 4),
    (Happening::AppendFailed, 2),
];

#[test]
fn people_hosts_and_faults_have_a_fair_share_of_the_seeds() {
    let sim = Sim::new(Plans::Drawn);
    let tallies: Vec<Tally> = (0..SEEDS).map(|seed| sim.check(seed).unwrap().tally).collect();
    for (what, least) in SHARES {
        let seeds = tallies.iter().filter(|tally| tally.of(what) > 0).count() as u64;
        assert!(seeds >= least, "{what}: in {seeds} of {SEEDS} seeds");
    }
}
