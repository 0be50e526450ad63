//! A seed says everything.

use outrigger_sim::{Plans, Sim, Without};

#[test]
fn a_seed_is_the_same_every_time() {
    let sims = [Sim::new(Plans::Drawn), Sim::new(Plans::Drawn)];
    for seed in 100..102 {
        let [once, again] = sims.each_ref().map(|sim| sim.check(seed).unwrap());
        assert_eq!(once, again, "seed {seed}");
    }
}

#[test]
fn a_seed_alone_goes_through_more_and_finds_the_same() {
    let some = Sim::new(Plans::Drawn).without(Without::Intent);
    let every = Sim::new(Plans::Every).without(Without::Intent).telling();
    let (some, every) = (some.check(7).unwrap_err(), every.check(7).unwrap_err());
    assert_eq!(some.violation, every.violation);
    assert!(some.story.is_empty() && !every.story.is_empty());
}

#[test]
fn a_death_at_every_write_changes_nothing_that_is_done() {
    let report = Sim::new(Plans::Every).check(1).unwrap();
    assert!(report.runs > 40, "{} runs", report.runs);
}
