//! A world in which something never happens proves nothing about it.

use outrigger_sim::{Happening, Plans, Sim, Tally};

/// Seeds that are looked at; CI looks at more, and fails if anything never happens there.
const SEEDS: u64 = 24;

/// What many seeds have a share in, and in how many of [`SEEDS`] at least.
const SHARES: [(Happening, u64); 8] = [
    (Happening::Approved, 6),
    (Happening::Denied, 4),
    (Happening::AnsweredTwice, 6),
    (Happening::Hosts, 20),
    (Happening::Fenced, 12),
    (Happening::KilledAfter, 20),
    (Happening::LostDisk, 8),
    (Happening::AppendFailed, 4),
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
