//! With any one safeguard taken away a seed fails, and soon. These take them away from
//! outside the product; `cargo xtask sim --mutants` takes away the very lines.

use outrigger_sim::{Plans, SeedFailure, Sim, Violation, Without};

/// Seeds that a missing safeguard may go unnoticed in.
const SEEDS_MAX: u64 = 1_000;

fn first_failure(without: Without) -> (u64, SeedFailure) {
    let sim = Sim::new(Plans::Drawn).without(without);
    let failure = |seed| Some((seed, sim.check(seed).err()?));
    (0..SEEDS_MAX).find_map(failure).unwrap()
}

#[test]
fn a_store_without_a_fence_is_noticed() {
    let (_, failed) = first_failure(Without::Fencing);
    // Whatever two drivers that can't see each other do first.
    let only_stopped = matches!(failed.violation, Violation::Engine(_) | Violation::Livelock(_));
    assert!(!only_stopped, "{failed}");
}

#[test]
fn an_effect_before_its_intent_is_noticed() {
    let (_, failed) = first_failure(Without::Intent);
    assert!(failed.violation.to_string().contains("without a durable intent"), "{failed}");
}

#[test]
fn an_engine_without_reservation_is_noticed() {
    let (_, failed) = first_failure(Without::Reservation);
    assert!(failed.violation.to_string().contains("beyond the budget"), "{failed}");
}

#[test]
fn an_engine_that_goes_by_old_rules_is_noticed() {
    let (_, failed) = first_failure(Without::Redecision);
    assert!(failed.violation.to_string().contains("rules do not permit it"), "{failed}");
}
