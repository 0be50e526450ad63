//! How full the context is, and what a compaction makes of the conversation.

use expect_test::expect;
use outrigger_agent::{
    Author, Event, Failure, Limit, Message, ModelFault, ModelSpec, Outcome, Raw, Reply, Spec, Stop,
    Usage, Work, limits,
};
use std::sync::Arc;

use crate::bench::{Bench, entry};
use crate::build::{answer, call, output, reply, said, spec};

fn too_long() -> Outcome {
    let detail = "prompt is too long".to_owned();
    Outcome::Failed(Failure::Model { fault: ModelFault::ContextTooLong, detail })
}

fn counted(input_tokens: u64, reply: Reply) -> Reply {
    let usage = Usage { input_tokens, output_tokens: 10, ..Usage::default() };
    Reply { usage, ..reply }
}

#[test]
fn a_full_context_is_compacted_before_the_next_model_call() {
    let mut bench = Bench::with_task(spec());
    bench.reply(counted(700, reply(vec![call("a", "recall", "{}")])));
    bench.settle(output(&"x".repeat(400)));
    bench.append(said("Mind the gap."));
    bench.reply(answer("We did half of it."));
    bench.reply(answer("Done."));
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        started compact (attempt 1, 1 steps, 944 tokens)
        said "Mind the gap."
        settled compact: done
        started ask_model (attempt 1, 1 steps, 158 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
    expect![[r#"
        message "Do it."
        summary "We did half of it."
        message "Mind the gap."
        reply "Done." []
    "#]]
    .assert_eq(&bench.conversation());
}

#[test]
fn an_overflow_is_compacted_once_and_a_second_one_ends_the_turn() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    bench.settle(too_long());
    bench.reply(answer("We began."));
    bench.settle(too_long());
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long" }
        started compact (attempt 1, 1 steps, 201 tokens)
        settled compact: done
        started ask_model (attempt 1, 1 steps, 151 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long" }
        ended ModelFailed { fault: ContextTooLong, detail: "prompt is too long" }
        park Message
    "#]]
    .assert_eq(&bench.log());
    expect![[r#"
        message "Do it."
        summary "We began."
    "#]]
    .assert_eq(&bench.conversation());
}

#[test]
fn an_overflow_of_the_very_first_request_ends_the_turn() {
    let mut bench = Bench::with_task(spec());
    bench.settle(too_long());
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long" }
        ended ModelFailed { fault: ContextTooLong, detail: "prompt is too long" }
        park Message
    "#]]
    .assert_eq(&bench.log());
}

#[test]
fn an_overflow_of_the_compaction_itself_ends_the_turn() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    bench.settle(too_long()).settle(too_long());
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long" }
        started compact (attempt 1, 1 steps, 201 tokens)
        settled compact: Model { fault: ContextTooLong, detail: "prompt is too long" }
        ended ModelFailed { fault: ContextTooLong, detail: "prompt is too long" }
        park Message
    "#]]
    .assert_eq(&bench.log());
}

#[test]
fn an_empty_summary_does_not_take_the_place_of_the_conversation() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    let before = bench.conversation();
    bench.settle(too_long());
    bench.reply(Reply { stop: Stop::Refused("no".to_owned()), ..answer(" \n") });
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long" }
        started compact (attempt 1, 1 steps, 201 tokens)
        settled compact: done
        ended ModelFailed { fault: Garbled, detail: "The model was asked for a summary and wrote none to its end." }
        park Message
    "#]].assert_eq(&bench.log());
    assert_eq!(bench.conversation(), before);
}

#[test]
fn a_compaction_keeps_the_first_and_last_word_of_people_and_shows_cut_results() {
    let context = ModelSpec { context_tokens: 2_000, ..spec().model };
    let mut bench = Bench::new(Spec { model: context, ..spec() });
    let author = Author::Untrusted("stdin".to_owned());
    bench.append(Event::Said(Arc::new(Message { author, text: "Obey me.".to_owned() })));
    for text in ["First.", "Second.", "Third."] {
        bench.append(said(text));
        bench.reply(answer(text));
    }
    bench.append(said("Fourth."));
    bench.reply(reply(vec![call("a", "recall", "{}")]));
    bench.settle(output(&"é".repeat(limits::COMPACT_RESULT_BYTES_MAX * 2)));
    let items = bench.state.request_items(&Work::Compact);
    let last = items.last().unwrap();
    let outrigger_agent::Item::Result(cut) = last else { panic!("{}", entry(last)) };
    let middle: String = cut.text.chars().filter(|c| *c != 'é').collect();
    expect![[r#"

        [... 6000 bytes left out ...]
    "#]]
    .assert_eq(&middle);
    assert!(cut.text.len() < limits::COMPACT_RESULT_BYTES_MAX + 50);
    bench.reply(answer("All of it."));
    bench.flying();
    expect![[r#"
        message "First."
        message "Fourth."
        summary "All of it."
    "#]]
    .assert_eq(&bench.conversation());
}

/// Three bytes count as a token where no provider counted, everything that a
/// request carries is in it, and a reply puts the provider's own count in its place.
#[test]
fn the_estimate_forgets_nothing() {
    let tokens = |bench: &Bench| bench.state.input_tokens_estimate();
    let mut bench = Bench::new(spec());
    let fixed = tokens(&bench);
    let bytes =
        |tool: &outrigger_agent::ToolSpec| tool.description.len() + tool.schema.as_str().len();
    let spec = spec();
    let sum = spec.system.len() + spec.tools.iter().map(bytes).sum::<usize>();
    assert_eq!(fixed, (sum as u64).div_ceil(3));
    bench.append(said(&"x".repeat(300)));
    assert_eq!(tokens(&bench), (sum as u64 + 300).div_ceil(3));
    bench.flying();
    // Said while the model thinks, so not in what the provider counts.
    bench.append(said(&"y".repeat(300)));
    bench.reply(counted(500, answer("z")));
    assert_eq!(tokens(&bench), 510 + 100);
    // A provider that counts nothing does not empty the context.
    bench.reply(Reply { usage: Usage::default(), ..answer(&"z".repeat(90)) });
    assert_eq!(tokens(&bench), 510 + 130);
    bench.append(said("w"));
    bench.settle(too_long());
    bench.append(said(&"v".repeat(30)));
    bench.reply(answer("Summary."));
    let kept = bench.state.conversation().iter().map(|item| match item {
        outrigger_agent::Item::Message(message) => message.text.len(),
        outrigger_agent::Item::Summary(text) => text.len(),
        other => panic!("{other:?}"),
    });
    let kept = kept.sum::<usize>();
    assert_eq!(tokens(&bench), ((sum + kept) as u64).div_ceil(3));
}

#[test]
fn native_items_are_kept_only_while_they_stand_for_the_parts() {
    let native = vec![Raw::new(r#"{"type": "thinking",  "signature":"s"}"#.to_owned()).unwrap()];
    let mut bench = Bench::with_task(spec());
    bench.reply(Reply { native: native.clone(), ..answer("As said.") });
    bench.append(said("More."));
    let mut redacted = Reply { native: native.clone(), ..answer("As said.") };
    redacted.parts = answer("[redacted]").parts;
    bench.reply(redacted);
    let kept: Vec<Option<&[Raw]>> = bench
        .state
        .conversation()
        .iter()
        .filter_map(|item| match item {
            outrigger_agent::Item::Reply(reply) => Some(reply.native_for("wire", "host", "m")),
            _ => None,
        })
        .collect();
    assert_eq!(kept, [Some(&native[..]), None]);
    let outrigger_agent::Item::Reply(first) = &bench.state.conversation()[1] else { panic!() };
    for (api, provider, model) in
        [("other", "host", "m"), ("wire", "other", "m"), ("wire", "host", "n")]
    {
        assert_eq!(first.native_for(api, provider, model), None, "{api} {provider} {model}");
    }
}

#[test]
fn a_paused_reply_is_taken_up_with_the_same_conversation() {
    let mut bench =
        Bench::with_task(Spec { budget: Limit { steps: Some(1), ..spec().budget }, ..spec() });
    bench.reply(Reply { stop: Stop::Paused, ..answer("Wait") });
    let budget = Some(spec().budget);
    bench.append(Event::Resumed { by: "p".to_owned(), budget, turn: None });
    bench.flying();
    expect![[r#"
        message "Do it."
        reply "Wait" []
    "#]]
    .assert_eq(&bench.conversation());
}
