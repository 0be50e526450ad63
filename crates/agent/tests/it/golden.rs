//! Journals written once and never again: every later program folds them to the
//! same state, or says so by a new `FOLD`.

use expect_test::{ExpectFile, expect_file};
use outrigger_agent::{FOLD, FORMAT, Record, State};

/// Folds the lines and shows the state after the events at these places.
fn check(lines: &str, shown: &[u64], expected: &ExpectFile) {
    let mut state = State::default();
    let mut text = format!("fold {FOLD}\n");
    for line in lines.lines() {
        let record: Record = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert_eq!(serde_json::to_string(&record).unwrap(), line, "it is written as it was read");
        state = state.apply(&record);
        if shown.contains(&record.seq.0) {
            let json = serde_json::to_string_pretty(&state).unwrap();
            text += &format!("after event {}\n{json}\n", record.seq);
        }
    }
    // If this fails because the fold was changed: raise `FOLD`, then update the file.
    expected.assert_eq(&text);
}

#[test]
fn a_turn_with_a_tool_call_of_format_1() {
    // In the middle of the round, and at the end.
    let shown = [15, 21];
    check(include_str!("../golden/v1.jsonl"), &shown, &expect_file!["../golden/v1.state.txt"]);
}

#[test]
fn an_amended_and_approved_call_of_format_2() {
    // Asked about, amended, and at the end.
    let shown = [8, 13, 20];
    check(include_str!("../golden/v2.jsonl"), &shown, &expect_file!["../golden/v2.state.txt"]);
}

#[test]
fn money_accounts_and_soft_limits_of_format_3() {
    // Asked about, withheld, and at the end.
    let (shown, state) = ([5, 7, 12], expect_file!["../golden/v3-budget.state.txt"]);
    check(include_str!("../golden/v3-budget.jsonl"), &shown, &state);
}

#[test]
fn tools_outside_and_labels_of_format_3() {
    // In the middle of the round, and after it.
    let shown = [12, 15];
    check(include_str!("../golden/v3.jsonl"), &shown, &expect_file!["../golden/v3.state.txt"]);
}

#[test]
fn changes_of_memory_of_format_4() {
    check(include_str!("../golden/v4.jsonl"), &[22], &expect_file!["../golden/v4.state.txt"]);
}

#[test]
fn a_compaction_and_an_estimate_of_format_5() {
    // Before the summary, behind it, and at the end.
    let shown = [19, 23, 29];
    check(include_str!("../golden/v5.jsonl"), &shown, &expect_file!["../golden/v5.state.txt"]);
}

#[test]
fn another_model_of_format_6() {
    // Refused, and with the other one under way.
    check(include_str!("../golden/v6.jsonl"), &[7, 11], &expect_file!["../golden/v6.state.txt"]);
}

#[test]
fn a_trusted_file_of_format_7() {
    // Of the session's own person, and of another one.
    check(include_str!("../golden/v7.jsonl"), &[6, 13], &expect_file!["../golden/v7.state.txt"]);
}

#[test]
fn a_shared_session_of_format_8() {
    // Shared, with somebody else's words under way, and at the end.
    check(include_str!("../golden/v8.jsonl"), &[4, 7, 10], &expect_file!["../golden/v8.state.txt"]);
}

#[test]
fn a_session_that_a_trigger_opened_of_format_9() {
    // Of the trigger, and then of a person.
    check(include_str!("../golden/v9.jsonl"), &[3, 8], &expect_file!["../golden/v9.state.txt"]);
}

#[test]
fn a_turn_that_waits_for_its_provider_of_format_10() {
    assert_eq!(FORMAT, 10, "a new format needs a golden journal of its own");
    // It waits, asks again, and is over.
    let shown = [7, 10, 13];
    check(include_str!("../golden/v10.jsonl"), &shown, &expect_file!["../golden/v10.state.txt"]);
}

#[test]
fn a_message_of_a_named_request_of_format_10() {
    // Said by one request, and by another one after the first is forgotten.
    let (shown, state) = ([2, 5], expect_file!["../golden/v10-request.state.txt"]);
    check(include_str!("../golden/v10-request.jsonl"), &shown, &state);
}
