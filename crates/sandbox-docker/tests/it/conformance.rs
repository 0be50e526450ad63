//! What every backend must do.

use std::sync::Arc;

use crate::support::*;
use expect_test::expect;
use outrigger_sandbox::conformance;

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_passes() {
    let world = world().await;
    let report = conformance::run(Arc::new(world.again().await), None).await;
    println!("{report}");
    report.assert_passed();
    expect![[r#"
        it declares no cold suspension:
          frozen/then_cold
          cold/listed_and_not_found
          cold/resumed_in_the_same_generation
          cold/disk_is_kept
          cold/disk_is_verified_and_the_same
          cold/outcomes_of_commands_are_kept
          cold/outcomes_of_operations_are_kept
          cold/refused_ids_stay_refused
          cold/spilled_output_is_kept
          cold/old_handles_are_lost
          cold/repeated_is_fine
          cold/busy_while_a_command_runs
          cold/unknown_is_absent
          cold/destroyed_while_cold
          cold/resumed_at_once_is_one
          cold/again_and_again
          cold/left_processes_end
          cold/modes_and_links_are_kept
          cold/closed_directories_are_kept
          snapshot/of_a_cold_one
          fork/resumed_from_cold
          lifetime/idle_goes_cold_again_and_again
          lifetime/idle_and_frozen_goes_cold
          lifetime/old_is_destroyed_although_cold
        it declares no disk limit:
          disk/one_file_is_bounded
          disk/bytes_are_bounded
          disk/bytes_in_tmp_are_bounded
          disk/inodes_are_bounded
          disk/works_after_removal
          disk/what_fits_is_left_alone
          disk/others_go_on
          disk/forks_are_bounded_too
    "#]]
    .assert_eq(&report.let_off());
    assert_eq!(world.owned("container").len(), 0, "containers are left");
    // The guest program and its record.
    assert_eq!(world.owned("volume").len(), 2, "volumes are left");
}
