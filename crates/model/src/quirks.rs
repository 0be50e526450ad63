//! Streams as servers really send them, where they differ from the books.

use expect_test::{Expect, expect};
use futures_util::{FutureExt as _, stream};

use crate::wire::CallIds;
use crate::{Api, RetryPolicy, attempt, codec, sse};

/// Decodes events, one per line, and shows the reply or the fault.
fn check(api: Api, events: &[&str], expected: Expect) {
    let mut decoder = codec::decoder(api, CallIds(0xab));
    let mut deltas = Vec::new();
    let text: String = events.iter().map(|data| format!("data: {data}\n\n")).collect();
    let events = Box::pin(sse::events(stream::iter([Ok(text)]), &RetryPolicy::new(0)));
    let fed = attempt::decode(events, &mut *decoder, &mut |delta| {
        deltas.push(format!("{delta:?}"));
    })
    .now_or_never()
    .unwrap();
    let shown = match fed.and_then(|_| decoder.finish()) {
        Ok(answer) => {
            let native: Vec<&str> = answer.native.iter().map(|raw| raw.as_str()).collect();
            format!("{:?}\n{:?}\n{}\n", answer.stop, answer.parts, native.join("\n"))
        }
        Err(fault) => format!("{:?} {:?} {}\n", fault.kind, fault.retry, fault.message),
    };
    expected.assert_eq(&format!("{}\n{shown}", deltas.join("\n")));
}

fn chat(deltas: &[&str], expected: Expect) {
    let mut events: Vec<String> = deltas
        .iter()
        .map(|delta| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#))
        .collect();
    events.push(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.into());
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    check(Api::OpenAiChat, &events, expected);
}

#[test]
fn calls_under_one_index_or_none_are_told_apart_by_their_ids() {
    chat(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"ls","arguments":"{\"x\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"ls","arguments":"1}"}}]}"#,
        ],
        expect![[r#"
            Arguments { call: 0, name: "ls", delta: "{}" }
            Arguments { call: 1, name: "ls", delta: "{\"x\":" }
            Arguments { call: 1, name: "ls", delta: "1}" }
            End
            [Call(Call { id: "a", name: "ls", arguments: "{}" }), Call(Call { id: "b", name: "ls", arguments: "{\"x\":1}" })]
            {"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{}"},"type":"function"},{"id":"b","function":{"name":"ls","arguments":"{\"x\":1}"},"type":"function"}],"content":""}
        "#]],
    );
    chat(
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"ls","arguments":{"path":"/"}}},{"id":"b","function":{"name":"ls"}}]}"#,
        ],
        expect![[r#"
            Arguments { call: 0, name: "ls", delta: "{\"path\":\"/\"}" }
            Arguments { call: 1, name: "ls", delta: "" }
            End
            [Call(Call { id: "a", name: "ls", arguments: "{\"path\":\"/\"}" }), Call(Call { id: "b", name: "ls", arguments: "{}" })]
            {"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{\"path\":\"/\"}"},"type":"function"},{"id":"b","function":{"name":"ls","arguments":"{}"},"type":"function"}],"content":""}
        "#]],
    );
}

#[test]
fn a_call_without_an_id_gets_one_and_without_a_name_is_a_fault() {
    chat(
        &[r#"{"tool_calls":[{"index":0,"function":{"name":"ls","arguments":""}}]}"#],
        expect![[r#"
            Arguments { call: 0, name: "ls", delta: "" }
            End
            [Call(Call { id: "call_ab_0", name: "ls", arguments: "{}" })]
            {"role":"assistant","tool_calls":[{"function":{"name":"ls","arguments":"{}"},"id":"call_ab_0","type":"function"}],"content":""}
        "#]],
    );
    chat(
        &[r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}"#],
        expect![[r#"

            Garbled Backoff a tool call of the stream has no name
        "#]],
    );
}

#[test]
fn done_without_a_finish_reason_is_no_end() {
    let begun = r#"{"choices":[{"index":0,"delta":{"content":"I"}}]}"#;
    check(
        Api::OpenAiChat,
        &[begun, "[DONE]"],
        expect![[r#"
        Text("I")
        Garbled Backoff the stream ended without a finish reason
    "#]],
    );
    check(
        Api::OpenAiResponses,
        &["[DONE]"],
        expect![[r#"

        Garbled Backoff the stream ended before its `response.completed`
    "#]],
    );
}

#[test]
fn a_stream_that_finishes_with_an_error_is_none() {
    let event = r#"{"choices":[{"index":0,"delta":{"content":"I"},"finish_reason":"error"}]}"#;
    check(
        Api::OpenAiChat,
        &[event, "[DONE]"],
        expect![[r#"
        Text("I")
        Unavailable Backoff the stream finished with `error`
    "#]],
    );
}

#[test]
fn items_that_come_only_at_the_end_are_taken_from_there() {
    check(
        Api::OpenAiResponses,
        &[
            r#"{"type":"response.completed","response":{"id":"r","output":[{"type":"message","content":[{"type":"output_text","text":"Hi."}]}]}}"#,
        ],
        expect![[r#"

            End
            [Text("Hi.")]
            {"type":"message","content":[{"type":"output_text","text":"Hi."}]}
        "#]],
    );
}

fn anthropic(events: &[&str], expected: Expect) {
    let start = r#"{"type":"message_start","message":{"id":"m","usage":{}}}"#;
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let all: Vec<&str> =
        [start].into_iter().chain(events.iter().copied()).chain([delta, stop]).collect();
    check(Api::AnthropicMessages, &all, expected);
}

#[test]
fn deltas_of_a_later_version_are_kept() {
    anthropic(
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"later","content":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"later_delta","content":"b","list":[1.0],"what":{"x":1},"no":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"later_delta","content":"c","list":[2],"what":{"y":1e2}}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
        ],
        expect![[r#"

            End
            [Opaque("later")]
            {"type":"later","content":"abc","list":[1.0,2],"what":{"y":1e2}}
        "#]],
    );
}

#[test]
fn an_empty_text_is_left_out_because_it_would_be_refused() {
    anthropic(
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"ls","input":{"path": "/"}}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
        ],
        expect![[r#"
            Arguments { call: 0, name: "ls", delta: "" }
            End
            [Call(Call { id: "t", name: "ls", arguments: "{\"path\": \"/\"}" })]
            {"type":"tool_use","id":"t","name":"ls","input":{"path": "/"}}
        "#]],
    );
}

#[test]
fn blocks_out_of_order_or_without_an_end_are_faults() {
    let block = |index: usize| {
        format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"text","text":""}}}}"#
        )
    };
    anthropic(
        &[&block(1)],
        expect![[r#"

        Garbled Backoff a content block of the stream is out of order
    "#]],
    );
    anthropic(
        &[&block(0)],
        expect![[r#"

        Garbled Backoff a content block of the stream never ended
    "#]],
    );
    anthropic(
        &[r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#],
        expect![[r#"

            Garbled Backoff the stream goes on with a block that it never began
        "#]],
    );
}
