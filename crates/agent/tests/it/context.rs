//! How full the context is, and what a compaction makes of the conversation.

use expect_test::expect;
use outrigger_agent::{
    Author, Digest, Event, Failure, Limit, MediaType, Message, ModelFault, ModelSpec, Outcome,
    Picture, Raw, Reply, Spec, Stop, Usage, Work, limits,
};
use std::sync::Arc;

use crate::bench::{Bench, entry};
use crate::build::{answer, call, output, reply, said, spec};

fn too_long() -> Outcome {
    let detail = "prompt is too long".to_owned();
    Outcome::Failed(Failure::Model { fault: ModelFault::ContextTooLong, detail, retry_at_ms: None })
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
fn a_compaction_that_a_person_asks_for_comes_before_the_next_model_call() {
    let request = || Event::CompactionRequested { by: "person:local".to_owned() };
    let mut bench = Bench::with_task(spec());
    // There is nothing to summarise yet, and a reply that is under way is not lost.
    bench.append(request());
    bench.reply(answer("Half of it."));
    bench.append(said("Go on."));
    bench.reply(answer("We did half of it."));
    bench.reply(answer("Done."));
    expect![[r#"
        said "Do it."
        compaction requested
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        ended Answered
        said "Go on."
        started compact (attempt 1, 1 steps, 202 tokens)
        settled compact: done
        started ask_model (attempt 1, 1 steps, 156 tokens)
        settled ask_model: done
        ended Answered
        park Message
    "#]]
    .assert_eq(&bench.log());
    expect![[r#"
        message "Do it."
        summary "We did half of it."
        message "Go on."
        reply "Done." []
    "#]]
    .assert_eq(&bench.conversation());
}

#[test]
fn an_overflow_is_compacted_and_further_ones_shorten_what_is_left_until_the_turn_ends() {
    let mut bench = Bench::with_task(spec());
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    bench.settle(too_long());
    bench.reply(answer("We began."));
    bench.settle(too_long()).settle(too_long()).settle(too_long());
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long", retry_at_ms: None }
        started compact (attempt 1, 1 steps, 201 tokens)
        settled compact: done
        started ask_model (attempt 1, 1 steps, 151 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long", retry_at_ms: None }
        started ask_model (attempt 1, 1 steps, 197 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long", retry_at_ms: None }
        started ask_model (attempt 1, 1 steps, 198 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long", retry_at_ms: None }
        ended ModelFailed { fault: ContextTooLong, detail: "prompt is too long. The next message goes on with the newest task and the last that was said and done." }
        park Message
    "#]]
    .assert_eq(&bench.log());
    expect![[r#"
        message "Do it."
        summary "Most of the conversation was left out, because it did not fit. What is left of it:\n\n[... 148 bytes left out; the journal of the session has them ...]\n"
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
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long", retry_at_ms: None }
        ended ModelFailed { fault: ContextTooLong, detail: "prompt is too long. The next message goes on with the newest task and the last that was said and done." }
        park Message
    "#]]
    .assert_eq(&bench.log());
}

#[test]
fn an_overflow_of_the_compaction_itself_asks_for_a_shorter_one() {
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
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long", retry_at_ms: None }
        started compact (attempt 1, 1 steps, 201 tokens)
        settled compact: Model { fault: ContextTooLong, detail: "prompt is too long", retry_at_ms: None }
        started compact (attempt 1, 1 steps, 201 tokens)
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
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long", retry_at_ms: None }
        started compact (attempt 1, 1 steps, 201 tokens)
        settled compact: done
        started compact (attempt 1, 1 steps, 201 tokens)
    "#]]
    .assert_eq(&bench.log());
    assert_eq!(bench.conversation(), before);
}

/// A session of which two tenths of the context are full, and which the provider says is
/// too long.
fn overflowed(spec: Spec) -> Bench {
    let mut bench = Bench::with_task(spec);
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    bench.settle(too_long());
    bench
}

fn untrusted(source: &str, text: &str) -> Event {
    let author = Author::Untrusted(source.to_owned());
    Event::Said(Arc::new(Message::new(author, text.to_owned())))
}

#[test]
fn a_compaction_keeps_what_defines_the_work() {
    let context = ModelSpec { context_tokens: 20_000, ..spec().model };
    let mut bench = Bench::new(Spec { model: context, ..spec() });
    bench.append(untrusted("AGENTS.md", "Use tabs."));
    bench.append(untrusted("stdin", "A log."));
    for text in ["First.", "Second.", "Third."] {
        bench.append(said(text));
        bench.reply(answer(text));
    }
    // Larger than its share: it is cut, and says so.
    bench.append(said(&format!("Fourth. {} And mind the end.", "x".repeat(40_000))));
    let write = |id: &str, path: &str| {
        call(id, "write", &serde_json::json!({ "file_path": path, "content": "" }).to_string())
    };
    bench.reply(reply(vec![write("w", "/workspace/b"), write("v", "/workspace/a")]));
    bench.settle(crate::build::sandbox("g"));
    bench.settle(output("written"));
    bench.settle(Outcome::Unknown { evidence: "lost".to_owned() });
    bench.settle(too_long());
    bench.reply(answer("All of it."));
    bench.flying();
    let Some(outrigger_agent::Item::Summary(summary)) = bench.state.conversation().last() else {
        panic!("{}", bench.conversation())
    };
    let labels = ["from:AGENTS.md", "from:stdin", "untrusted"].map(str::to_owned);
    assert_eq!(summary.labels, labels.into());
    assert_eq!(summary.files, ["/workspace/b".to_owned()].into());
    let kept = bench.state.conversation().iter().map(|item| match item {
        outrigger_agent::Item::Message(message) => message.text.replace('x', "") + "\n",
        other => entry(other) + "\n",
    });
    expect![[r#"
        Use tabs.
        A log.
        First.
        Fourth. 
        [... 36286 bytes left out; the journal of the session has them ...]
         And mind the end.
        summary "All of it."
    "#]]
    .assert_eq(&kept.collect::<String>());
}

/// A message with a picture of so many pixels.
fn shown(text: &str, (width, height): (u32, u32)) -> Event {
    let Event::Said(message) = said(text) else { unreachable!("it is said") };
    let picture = Picture {
        digest: Digest::of(b"a picture"),
        media_type: MediaType::Png,
        bytes: 3_000_000,
        width,
        height,
        name: "shot.png".to_owned(),
    };
    let message = Message { pictures: vec![picture], ..Message::clone(&message) };
    Event::Said(Arc::new(message))
}

#[test]
fn a_picture_counts_by_its_pixels_and_goes_with_a_compaction() {
    let mut bench = Bench::new(spec());
    bench.append(said("Look."));
    let before = bench.state.input_tokens_estimate();
    bench.append(shown("What is this?", (1_500, 1_000)));
    let text = "What is this?".len() as u64;
    let counted = before + 2_000 + text.div_ceil(limits::BYTES_PER_TOKEN);
    assert!(bench.state.input_tokens_estimate().abs_diff(counted) <= 1);
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    assert_eq!(bench.state.pictures().count(), 1);
    bench.settle(too_long());
    let asked = bench.state.request_items(&Work::Compact).into_owned();
    assert_eq!(outrigger_agent::pictures(&asked).count(), 0, "there is little room");
    bench.reply(answer("It is a boat."));
    expect![[r#"
        message "Look."
        message "[picture shot.png]\nWhat is this?"
        summary "It is a boat."
    "#]]
    .assert_eq(&bench.conversation());
    assert_eq!(bench.state.pictures().count(), 0);
}

#[test]
fn the_task_of_a_subagent_stays() {
    let mut bench = Bench::new(spec());
    let author = Author::Agent("default".to_owned());
    let task = Message::new(author, "Review it.".to_owned());
    bench.append(Event::Said(Arc::new(task)));
    bench.reply(reply(vec![call("a", "recall", "{}")])).settle(output("a"));
    bench.settle(too_long());
    bench.reply(answer("We began."));
    expect![[r#"
        message "Review it."
        summary "We began."
    "#]]
    .assert_eq(&bench.conversation());
}

/// What the provider has in its cache is asked about as it is.
#[test]
fn a_summary_is_asked_of_the_whole_conversation_first_and_then_of_less() {
    let context = ModelSpec { context_tokens: 40_000, ..spec().model };
    let mut bench = Bench::with_task(Spec { model: context, ..spec() });
    let arguments =
        serde_json::json!({ "file_path": "/workspace/a", "content": "y".repeat(90_000) });
    bench.reply(reply(vec![call("a", "recall", &arguments.to_string())]));
    bench.settle(output(&"é".repeat(limits::COMPACT_RESULT_BYTES_MAX * 2)));
    bench.reply(counted(39_000, reply(vec![call("b", "recall", "{}")])));
    bench.settle(output("b"));
    let asked = |bench: &Bench| bench.state.request_items(&Work::Compact).into_owned();
    let [id] = bench.flying()[..] else { panic!("one") };
    assert_eq!(bench.state.effect(id).unwrap().work, Work::Compact);
    assert_eq!(asked(&bench), bench.state.conversation());
    let mut shown = String::new();
    for _ in 0..limits::COMPACT_ATTEMPTS_MAX {
        bench.settle(too_long());
        let items = asked(&bench);
        let text: String = items.iter().map(|item| entry(item) + "\n").collect();
        shown += &text.replace(['é', 'y'], "");
        shown += "\n";
    }
    expect![[r#"
        message "Do it."
        repl "" [a=recall]
        result a Ok "... (2068 btes)"
        repl "" [b=recall]
        result b Ok "b"
        notice "There is little room for the summar: write at most 1872 words."

        message "Do it."
        repl "" [a=recall]
        result a Ok "\n[... 7500 btes left out; the journal of the session has them ...]\n... (568 btes)"
        repl "" [b=recall]
        result b Ok "b"
        notice "There is little room for the summar: write at most 936 words."

        message "Do it."
        repl "" [a=recall]
        result a Ok "\n[... 7744 btes left out; the journal of the session has them ...]\n"
        repl "" [b=recall]
        result b Ok "b"
        notice "There is little room for the summar: write at most 468 words."

    "#]].assert_eq(&shown);
}

/// Shorter, and shorter again; then the turn ends, and the next message goes on.
#[test]
fn a_summary_that_comes_to_nothing_is_not_paid_for_for_ever() {
    let cut = || Reply { stop: Stop::OutputLimit, ..answer(" ") };
    let mut bench = overflowed(spec());
    for _ in 0..limits::COMPACT_ATTEMPTS_MAX {
        bench.reply(cut());
    }
    expect![[r#"
        said "Do it."
        started ask_model (attempt 1, 1 steps, 148 tokens)
        settled ask_model: done
        started call a recall (attempt 1, 1 steps, 0 tokens)
        settled call a recall: done
        started ask_model (attempt 1, 1 steps, 201 tokens)
        settled ask_model: Model { fault: ContextTooLong, detail: "prompt is too long", retry_at_ms: None }
        started compact (attempt 1, 1 steps, 201 tokens)
        settled compact: done
        started compact (attempt 1, 1 steps, 201 tokens)
        settled compact: done
        started compact (attempt 1, 1 steps, 201 tokens)
        settled compact: done
        ended ModelFailed { fault: Garbled, detail: "The conversation is too long for the model's context, and no summary of it came to its end. The next message goes on with the newest task and the last that was said and done." }
        park Message
    "#]].assert_eq(&bench.log());
    bench.append(said("Go on, then."));
    let [id] = bench.flying()[..] else { panic!("one") };
    assert_eq!(bench.state.effect(id).unwrap().work, Work::AskModel);
    expect![[r#"
        message "Do it."
        summary "Most of the conversation was left out, because it did not fit. What is left of it:\nyou:  [called recall]\nrecall: a"
        message "Go on, then."
    "#]].assert_eq(&bench.conversation());
    bench.reply(answer("I do."));
    // Where even that does not fit, each further message goes on with less.
    bench.append(said("More."));
    bench.settle(too_long()).reply(cut()).reply(cut()).reply(cut());
    let mut sizes = Vec::new();
    for _ in 0..3 {
        bench.append(said("More."));
        bench.settle(too_long());
        sizes.push(bench.state.input_tokens_estimate());
    }
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    bench.append(said("More."));
    bench.reply(answer("There is room."));
}

#[test]
fn a_summary_that_is_too_long_or_cut_is_asked_for_again() {
    let context = ModelSpec { context_tokens: 3_000, ..spec().model };
    let mut bench = overflowed(Spec { model: context, ..spec() });
    bench.reply(answer(&"long ".repeat(2_000)));
    bench.reply(Reply { stop: Stop::OutputLimit, ..answer("Half of") });
    // The last time half of it is taken.
    bench.reply(Reply { stop: Stop::OutputLimit, ..answer("Half of it") });
    expect![[r#"
        message "Do it."
        summary "Half of it"
    "#]]
    .assert_eq(&bench.conversation());
    bench.reply(answer("Done."));
    bench.park();
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
        outrigger_agent::Item::Summary(summary) => summary.text.len(),
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
    bench.append(Event::Resumed {
        by: "p".to_owned(),
        budget,
        turn: None,
        model: None,
        network: None,
    });
    bench.flying();
    expect![[r#"
        message "Do it."
        reply "Wait" []
    "#]]
    .assert_eq(&bench.conversation());
}
