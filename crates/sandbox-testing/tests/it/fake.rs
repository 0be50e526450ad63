//! The fake: what it claims, its clock, and its ends.

use expect_test::{Expect, expect};
use outrigger_sandbox::{
    Backend, Command, End, Error, ExecId, ExecOutcome, Execute, Sandbox, SandboxId,
};
use outrigger_sandbox_testing::conformance::{self, SuiteTarget};
use outrigger_sandbox_testing::fake::{Disk, Fake};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

fn name() -> SandboxId {
    SandboxId::new("box").expect("a valid name")
}

fn shell(id: &str, line: &str) -> Execute {
    Execute::new(ExecId::new(id).expect("a valid id"), Command::Shell(line.to_owned()))
}

async fn made(fake: &Fake) -> Arc<dyn Sandbox> {
    fake.create(&name(), &Fake::spec()).await.expect("the fake does as asked")
}

async fn run(sandbox: &dyn Sandbox, id: &str, line: &str) -> ExecOutcome {
    sandbox.execute(shell(id, line), &()).await.expect("the fake does as asked")
}

/// What the fake need not pass, and why.
const LET_OFF: Expect = expect![[r#"
    it runs no real programs:
      exec/places_are_named
      exec/directory_by_any_name
      exec/program_by_its_path
      exec/argument_not_utf8
      exec/environment_is_constructed
      exec/variables_do_not_stay
      output/spilled_where_commands_see_it
      output/not_utf8
      output/flood_of_both
      output/one_gigabyte_is_read_to_its_end
      output/spill_is_capped_by_its_limit
      output/held_open_by_a_child
      limits/many_processes_are_bounded
      tree/deadline_although_term_is_ignored
      tree/deadline_although_forked_twice
      tree/deadline_although_in_a_new_session
      tree/deadline_although_stopped
      tree/kill_takes_the_whole_tree
      tree/kill_takes_orphans
      tree/kill_spares_the_others
      tree/deadline_ends_a_flood
      read/what_commands_made
      write/sets_when_it_was_changed
      write/written_files_can_run
      write/replaced_under_a_reader
      write/owned_by_the_user
      errors/fifo_never_hangs
      errors/socket_is_refused
      search/manifest_of_what_commands_made
      search/manifest_of_a_file_too_large
      transfer/hundred_megabytes_of_a_command
      transfer/ten_thousand_files_of_a_command
      users/own_places_are_writable
      users/name_and_home_agree
      lifecycle/destroyed_takes_processes
      declared/served_folders
      frozen/processes_stop_and_go_on
      frozen/destroyed_with_its_processes
      cold/left_processes_end
      cold/modes_and_links_are_kept
      fork/holds_every_kind_of_thing
      fork/renames_stay_apart
      fork/renames_of_directories_stay_apart
      fork/directories_made_anew_are_empty
      fork/hard_links_stay_apart
      fork/symlinks_stay_apart
      fork/other_kinds_in_the_same_place_stay_apart
      fork/large_files_stay_apart
      lifetime/idle_after_a_command_left_processes
    no kernel stands behind it:
      exec/streams_by_name
      exec/directory_is_no_descriptor
      exec/user_is_not_root
      exec/no_network
      limits/files_are_bounded
      errors/unreadable_file
      errors/system_files_stay_as_they_are
      search/manifest_of_what_commands_closed
      search/manifest_of_a_deep_tree_that_is_closed
      users/places_of_others_are_not
      users/files_of_commands_and_operations_have_one_owner
      users/modes_are_kept_to
      users/owners_cannot_be_given_away
      users/nobody_can_be_become
      users/first_process_is_out_of_reach
      users/no_devices_are_made
      users/nothing_is_mounted
      cold/closed_directories_are_kept
      fork/modes_stay_apart
      fork/closed_files_are_its_own
    it declares no terminals:
      terminal/standard_streams_are_one
      terminal/opens_by_its_name
      terminal/size_is_as_given
      terminal/output_is_merged
      terminal/input_arrives
      terminal/input_comes_after_stdin
      terminal/input_in_many_pieces
      terminal/end_of_input_ends_a_reader
      terminal/interrupt_is_a_signal
      terminal/interrupt_ends_a_program
      terminal/size_change_is_a_signal
      terminal/has_a_session_of_its_own
      terminal/attached_again
      terminal/repeated_gives_the_kept_outcome
      terminal/capped_with_exact_count
      terminal/killed_with_its_tree
      terminal/deadline_ends_it
      terminal/held_open_by_a_child
      terminal/many_at_once
      terminal/input_to_an_ended_one_is_refused
      terminal/input_without_a_terminal_is_refused
      terminal/input_above_its_limit_is_refused
      terminal/input_that_nobody_reads_does_not_hold_up_others
    it declares no resource limits:
      resources/memory_of_one_process
      resources/memory_of_many_processes
      resources/memory_of_a_child_is_the_childs
      resources/peak_memory_is_told
      resources/processes_are_bounded
      resources/fork_bomb_ends_at_its_deadline
      resources/cpu_is_bounded
      resources/others_go_on
    it declares no disk limit:
      disk/one_file_is_bounded
      disk/bytes_are_bounded
      disk/bytes_in_tmp_are_bounded
      disk/inodes_are_bounded
      disk/works_after_removal
      disk/what_fits_is_left_alone
      disk/others_go_on
      disk/forks_are_bounded_too
    it declares no served trees:
      served/read_as_files
      served/nothing_else_is_there
      served/long_folders_are_listed_whole
      served/written_as_files
      served/lengths_are_set
      served/made_moved_and_removed
      served/edited_in_place
      served/replaced_by_a_temporary_file
      served/reached_by_links
      served/mapped_to_memory
      served/open_files_outlive_their_names
      served/programs_start_from_it
      served/a_directory_to_work_in
      served/large_files_are_whole
      served/a_repository_lives_in_it
      served/what_ends_with_its_command_is_outside
      served/another_writer_is_seen_by_the_next_open
      served/another_writer_is_seen_beside_other_readers
      served/another_writer_is_seen_by_the_next_stat
      served/what_one_file_says_of_another_holds
      served/an_overtaken_writer_is_told
      served/a_replacement_of_what_nobody_saw_is_refused
      served/what_is_added_is_never_lost
      served/adding_goes_on_beside_others
      served/locks_by_new_files_are_exact
      served/each_close_is_one_change
      served/what_may_not_be_written_is_refused
      served/without_a_tree_it_fails_at_once
      served/a_kill_ends_what_waits_for_an_answer
      served/a_deadline_ends_what_waits_to_be_written
      served/what_waits_holds_up_nothing_else
      served/destroyed_while_something_waits
      served/frozen_and_thawed
      served/cold_and_resumed
      served/restored_from_a_snapshot
      served/wrong_folders_are_refused
    it declares no way out:
      network/what_connects_arrives
      network/bytes_are_whole_in_both_directions
      network/it_goes_on_while_another_is_not_read
      network/asked_again_it_is_the_same
      network/it_is_of_one_sandbox
      network/names_of_hosts_lead_there_too
      network/more_ports_are_captured_as_they_are_named
      network/names_that_are_nobodys_lead_nowhere
      network/names_lead_nowhere_without_a_way_out
      network/own_servers_have_their_ports
"#]];

#[tokio::test(start_paused = true)]
async fn passes_the_suite_as_far_as_it_claims_to() {
    let report = conformance::run(SuiteTarget::new(Arc::new(Fake::new())), None).await;
    report.assert_passed();
    LET_OFF.assert_eq(&report.let_off());
    let last = report.to_string().lines().last().unwrap().to_owned();
    expect!["fake: 224 passed, 0 failed, 154 not applicable"].assert_eq(&last);
}

#[tokio::test]
async fn a_filter_chooses_cases_and_none_is_no_success() {
    let report =
        conformance::run(SuiteTarget::new(Arc::new(Fake::new())), Some("exec/exit_codes")).await;
    report.assert_passed();
    assert_eq!(report.cases.len(), 1);
    let empty =
        conformance::run(SuiteTarget::new(Arc::new(Fake::new())), Some("no such case")).await;
    assert!(std::panic::catch_unwind(|| empty.assert_passed()).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_crashed_driver_is_replaced_and_nothing_runs_twice() {
    let fake = Fake::new();
    let line = "append log one; sleep 5; append log two; echo done";
    let first = made(&fake).await;
    let begun = Instant::now();
    timeout(Duration::from_secs(1), first.execute(shell("e", line), &())).await.unwrap_err();
    drop(first);
    let second = fake.clone().find(&name()).await.unwrap().unwrap();
    assert_eq!(run(&*second, "e", line).await.stdout, b"done\n");
    assert_eq!(begun.elapsed(), Duration::from_secs(5), "the virtual clock is followed");
    assert_eq!(fake.peek(&name(), "log").unwrap(), b"onetwo");
    assert_eq!(fake.starts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_sandbox_says_so_and_has_another_life() {
    for (disk, left) in [(Disk::Kept, Some(b"one".to_vec())), (Disk::Dropped, None)] {
        let fake = Fake::new();
        let old = made(&fake).await;
        let running = old.execute(shell("e", "append log one; sleep 9; append log two"), &());
        let losing = async {
            tokio::time::advance(Duration::from_secs(1)).await;
            fake.lose(&name(), disk);
        };
        let (lost, ()) = tokio::join!(running, losing);
        assert!(matches!(lost, Err(Error::Lost { .. })));
        assert!(fake.find(&name()).await.unwrap().is_none());
        let new = made(&fake).await;
        assert_ne!(old.generation(), new.generation());
        assert_eq!(fake.peek(&name(), "log"), left);
        assert!(matches!(old.execute(shell("f", "true"), &()).await, Err(Error::Lost { .. })));
        assert_eq!(run(&*new, "e", "exit 4").await.end, End::Exited(4));
        assert_eq!(fake.starts().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn what_its_shell_knows_and_what_not() {
    let fake = Fake::new();
    let sandbox = made(&fake).await;
    let mut shown = String::new();
    for (number, line) in [
        "write f a b; append f c; cat f; fail",
        "echo oops >&2; false || echo ok",
        "nonsense; exit",
        "echo a | cat",
        "kill -9 $$",
        "cat missing",
    ]
    .iter()
    .enumerate()
    {
        let done = run(&*sandbox, &format!("e{number}"), line).await;
        let (out, err) = (String::from_utf8(done.stdout), String::from_utf8(done.stderr));
        shown += &format!("{line:?} {:?} {:?} {:?}\n", out.unwrap(), err.unwrap(), done.end);
    }
    expect![[r#"
        "write f a b; append f c; cat f; fail" "a bc" "failed\n" Exited(1)
        "echo oops >&2; false || echo ok" "ok\n" "oops\n" Exited(0)
        "nonsense; exit" "" "sh: nonsense: not found\n" Exited(127)
        "echo a | cat" "" "fake shell: unknown syntax: `|`\n" Exited(2)
        "kill -9 $$" "" "" Signalled(9)
        "cat missing" "" "cat: missing: there is nothing at that path\n" Exited(1)
    "#]]
    .assert_eq(&shown);
}
