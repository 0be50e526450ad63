//! What providers do wrong, on all wires, and how each call ends.

use outrigger_agent::{ModelFault, Stop};
use outrigger_model::{Api, Error, NoFrames, Purpose, RetryPolicy};

use crate::fake::{Answer, End, Fake};
use crate::kit::{Kept, Recorder, ask, client, hard, hasty, says};

/// How a call ended.
struct Ended {
    outcome: Result<outrigger_agent::Reply, Error>,
    requests: usize,
    frames: Recorder,
}

async fn call(api: Api, answers: Vec<Answer>, policy: RetryPolicy) -> Ended {
    let fake = Fake::start(answers);
    let frames = Recorder::default();
    let model = client(api, &fake.url(), policy);
    let outcome = ask(&model, &[says("Go.")], Purpose::Turn, &frames).await;
    Ended { outcome, requests: fake.seen().len(), frames }
}

fn cause(error: &Error) -> &outrigger_model::ProviderFailure {
    match error {
        Error::Provider { cause, .. } => cause,
        Error::Script(_) => panic!("no script here"),
    }
}

/// The beginning of the hard turn: some blocks, no end.
fn begun(api: Api) -> String {
    let (stream, _) = hard(api);
    let half = stream[..stream.len() / 2].rfind("\n\n").unwrap() + 2;
    stream[..half].to_owned()
}

fn stream_of(events: &[(&str, &str)]) -> String {
    events
        .iter()
        .map(|(name, data)| match *name {
            "" => format!("data: {data}\n\n"),
            name => format!("event: {name}\ndata: {data}\n\n"),
        })
        .collect()
}

#[tokio::test]
async fn a_rate_limit_is_waited_out() {
    for api in Api::ALL {
        let limited =
            Answer::status(429, r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#);
        let answers = vec![limited.with("Retry-After", "1"), Answer::stream(hard(api).0)];
        let ended = call(api, answers, hasty()).await;
        assert_eq!(ended.outcome.unwrap().stop, Stop::End, "{api}");
        assert_eq!(ended.requests, 2, "{api}");
        let waits = ended.frames.waits();
        let [(wait_ms, reason)] = &waits[..] else { panic!("{api}: {waits:?}") };
        assert!((1_000..=1_250).contains(wait_ms), "{api}: {wait_ms}");
        assert_eq!(reason, "slow down");
    }
}

#[tokio::test]
async fn an_endless_rate_limit_ends_after_six_attempts() {
    for api in Api::ALL {
        for status in [429, 529] {
            let limited = Answer::status(status, "").with("Retry-After", "0");
            let ended = call(api, vec![limited], hasty()).await;
            let error = ended.outcome.unwrap_err();
            assert_eq!((error.fault(), ended.requests), (ModelFault::RateLimited, 6), "{api}");
            assert!(ended.frames.waits().iter().all(|(wait_ms, _)| *wait_ms <= 250), "{api}");
        }
    }
}

#[tokio::test]
async fn a_provider_that_asks_for_an_hour_is_not_asked_before() {
    for api in Api::ALL {
        let limited = Answer::status(429, "").with("Retry-After", "3600");
        let ended = call(api, vec![limited], hasty()).await;
        let error = ended.outcome.unwrap_err();
        assert_eq!((error.fault(), ended.requests), (ModelFault::RateLimited, 1), "{api}");
    }
}

/// Every stream that does not end as it should is retried, and what was shown of
/// it is superseded by the next attempt.
#[tokio::test]
async fn a_broken_stream_is_never_an_answer() {
    for api in Api::ALL {
        let begun = begun(api);
        let malformed = format!("{begun}data: {{\"type\": \n\n{}", &hard(api).0[begun.len()..]);
        let giant = format!("{begun}data: {{\"type\":\"{}\"}}\n\n", "x".repeat(20_000));
        let error = match api {
            Api::AnthropicMessages => (
                "error",
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            ),
            Api::OpenAiResponses => (
                "response.failed",
                r#"{"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"Overloaded"}}}"#,
            ),
            Api::OpenAiChat | Api::Gemini => {
                ("", r#"{"error":{"code":502,"message":"Overloaded"}}"#)
            }
        };
        let failed = format!("{begun}{}", stream_of(&[error]));
        for (broken, says) in [
            (Answer::stream(&begun), "the stream ended"),
            (Answer::ending(&begun, End::Cut), "the stream broke off"),
            (Answer::ending(&begun, End::Reset), "the stream broke off"),
            (Answer::ending(&begun, End::Silence), "the stream was silent for 2000 ms"),
            (Answer::stream(&malformed), "does not parse"),
            (Answer::stream(&giant), "is larger than 10000 bytes"),
            (Answer::stream(&failed), "Overloaded"),
            (Answer::stream(""), "the stream ended"),
        ] {
            // The next attempt has the same policy.
            let silent = matches!(broken, Answer::Stream { end: End::Silence, .. });
            let idle_ms = if silent { 2_000 } else { 60_000 };
            let policy = RetryPolicy { idle_ms, event_bytes_max: 10_000, ..hasty() };
            let answers = vec![broken.clone(), Answer::stream(hard(api).0)];
            let ended = call(api, answers, policy).await;
            let reply = ended.outcome.unwrap();
            assert_eq!(reply.native.len(), hard(api).1.len(), "{api}: {says}");
            assert_eq!(ended.requests, 2, "{api}: {says}");
            let waits = ended.frames.waits();
            assert!(waits[0].1.contains(says), "{api}: {says}: {waits:?}");
            let kept = ended.frames.all();
            let second = kept.iter().position(|kept| *kept == Kept::Started(2)).unwrap();
            assert_eq!(kept[second + 1], Kept::Answered(2));
            assert!(kept[second + 2..].iter().all(|kept| *kept == Kept::Piece { attempt: 2 }));
            assert!(kept.contains(&Kept::Answered(1)), "it is paid for: {api}: {says}");
        }
    }
}

/// What is no stream of a model is none the next time either, and is not paid for.
#[tokio::test]
async fn an_answer_that_is_no_stream_is_not_asked_for_again() {
    for api in Api::ALL {
        for (kind, body, fault, requests) in [
            ("text/html", "<html>Log in</html>", ModelFault::Garbled, 1),
            ("application/json", r#"{"id":"r","output":[]}"#, ModelFault::Garbled, 1),
            // An error that a proxy gave the wrong status is that error.
            (
                "application/json",
                r#"{"error":{"type":"overloaded_error","message":"busy"}}"#,
                ModelFault::RateLimited,
                6,
            ),
        ] {
            let answer = Answer::status(200, body).with("content-type", kind);
            let ended = call(api, vec![answer], hasty()).await;
            let error = ended.outcome.unwrap_err();
            assert_eq!((error.fault(), ended.requests), (fault, requests), "{api}: {body}");
            assert!(!ended.frames.all().contains(&Kept::Answered(1)), "{api}: {body}");
        }
    }
}

#[tokio::test]
async fn an_error_that_a_proxy_packed_is_read() {
    for api in Api::ALL {
        let packed = Answer::packed(400, r#"{"error":{"message":"no such model"}}"#);
        let error = call(api, vec![packed], hasty()).await.outcome.unwrap_err();
        assert_eq!(cause(&error).message, "no such model", "{api}");
        let bomb = Answer::packed(400, &"x".repeat(64 << 20));
        let error = call(api, vec![bomb], hasty()).await.outcome.unwrap_err();
        assert!(cause(&error).message.starts_with("xxx"), "{api}");
    }
}

/// All that is paid for has come: the finish reason, and the usage with it.
#[tokio::test]
async fn a_stream_that_breaks_off_behind_its_reply_is_whole() {
    for api in [Api::AnthropicMessages, Api::OpenAiChat, Api::Gemini] {
        let (stream, _) = hard(api);
        let end = match api {
            Api::AnthropicMessages => stream.rfind("event: message_stop").unwrap(),
            Api::OpenAiResponses | Api::OpenAiChat => stream.rfind("data: [DONE]").unwrap(),
            Api::Gemini => stream.len(),
        };
        let whole = call(api, vec![Answer::stream(stream)], hasty()).await.outcome.unwrap();
        for end_of in [End::Clean, End::Cut, End::Reset, End::Silence] {
            let answer = Answer::ending(&stream[..end], end_of);
            let policy = RetryPolicy { idle_ms: 2_000, ..hasty() };
            let ended = call(api, vec![answer], policy).await;
            assert_eq!((ended.outcome.unwrap(), ended.requests), (whole.clone(), 1), "{api}");
        }
    }
}

/// A reply with a text that is torn within a character, and a call with these arguments.
fn torn(api: Api, arguments: &str) -> String {
    match api {
        Api::AnthropicMessages => stream_of(&[
            ("", r#"{"type":"message_start","message":{"id":"m","usage":{}}}"#),
            (
                "",
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            ),
            (
                "",
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#,
            ),
            (
                "",
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00b\ud83d"}}"#,
            ),
            ("", r#"{"type":"content_block_stop","index":0}"#),
            (
                "",
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"execute","input":{}}}"#,
            ),
            (
                "",
                &format!(
                    r#"{{"type":"content_block_delta","index":1,"delta":{{"type":"input_json_delta","partial_json":"{arguments}"}}}}"#
                ),
            ),
            ("", r#"{"type":"content_block_stop","index":1}"#),
            ("", r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#),
            ("", r#"{"type":"message_stop"}"#),
        ]),
        Api::OpenAiResponses => stream_of(&[
            ("", r#"{"type":"response.output_text.delta","output_index":0,"delta":"a\ud83d"}"#),
            ("", r#"{"type":"response.output_text.delta","output_index":0,"delta":"\ude00b"}"#),
            (
                "",
                r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"a\ud83d\ude00b\ud83d"}]}}"#,
            ),
            (
                "",
                &format!(
                    r#"{{"type":"response.output_item.done","output_index":1,"item":{{"type":"function_call","call_id":"t","name":"execute","arguments":"{arguments}"}}}}"#
                ),
            ),
            ("", r#"{"type":"response.completed","response":{"id":"r"}}"#),
        ]),
        Api::OpenAiChat => stream_of(&[
            ("", r#"{"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}"#),
            ("", r#"{"choices":[{"index":0,"delta":{"content":"\ude00b\ud83d"}}]}"#),
            (
                "",
                &format!(
                    r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"t","function":{{"name":"execute","arguments":"{arguments}"}}}}]}}}}]}}"#
                ),
            ),
            ("", r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#),
        ]),
        Api::Gemini => stream_of(&[
            ("", r#"{"candidates":[{"content":{"parts":[{"text":"a\ud83d"}]}}]}"#),
            ("", r#"{"candidates":[{"content":{"parts":[{"text":"\ude00b\ud83d"}]}}]}"#),
            (
                "",
                &format!(
                    r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"id":"t","name":"execute","args":{}}}}}]}},"finishReason":"STOP"}}]}}"#,
                    arguments.replace("\\\"", "\"").replace("\\\\", "\\")
                ),
            ),
        ]),
    }
}

/// A character of two halves that come apart, halves that stay alone, and arguments that
/// readers of JSON give up on: none of it stays in a reply, nor in what goes back.
#[tokio::test]
async fn a_reply_is_well_formed_whatever_the_model_wrote() {
    let deep = format!(r#"{{\"a\":{}{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    for (arguments, kept) in [
        (r#"{\"c\":\"\\ud83d\\ude00\"}"#.to_owned(), r#"{"c":"\ud83d\ude00"}"#.to_owned()),
        (r#"{\"c\":\"\\ud800\"}"#.to_owned(), r#"{"c":"\ufffd"}"#.to_owned()),
        (deep.clone(), deep.replace("\\\"", "\"")),
    ] {
        // Gemini's arguments are no text but part of the stream, which then nests without end.
        let all = Api::ALL.into_iter().filter(|api| *api != Api::Gemini || arguments != deep);
        for api in all {
            let stream = torn(api, &arguments);
            let ended = call(api, vec![Answer::stream(&stream)], hasty()).await;
            let reply = ended.outcome.unwrap();
            assert_eq!(
                (reply.text().as_str(), ended.requests),
                ("a\u{1f600}b\u{fffd}", 1),
                "{api}"
            );
            assert_eq!(reply.calls().next().unwrap().arguments, kept, "{api}");
            for native in &reply.native {
                let read = serde_json::from_str::<serde_json::Value>(native.as_str());
                assert!(read.is_ok(), "{api}: {read:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_nests_without_end_is_refused_once() {
    for api in Api::ALL {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let stream = stream_of(&[("", &format!(r#"{{"type":"ping","x":{deep}}}"#))]);
        let ended = call(api, vec![Answer::stream(&stream)], hasty()).await;
        let error = ended.outcome.unwrap_err();
        assert_eq!((error.fault(), ended.requests), (ModelFault::Garbled, 1), "{api}");
        assert!(error.to_string().contains("nests more than 100 deep"), "{error}");
    }
}

/// Results name the call that they are of, in the whole conversation.
#[tokio::test]
async fn ids_that_a_server_leaves_out_are_made_and_not_twice() {
    let stream = stream_of(&[(
        "",
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"execute","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    )]);
    let fake = Fake::start(vec![Answer::stream(&stream)]);
    let mut ids = std::collections::BTreeSet::new();
    for seed in [7, 8] {
        let model = client(Api::OpenAiChat, &fake.url(), RetryPolicy { seed, ..hasty() });
        for _ in 0..20 {
            let reply = ask(&model, &[says("Go.")], Purpose::Turn, &NoFrames).await.unwrap();
            let id = reply.calls().next().unwrap().id.clone();
            assert!(reply.native[0].as_str().contains(&id), "{id}");
            ids.insert(id);
        }
    }
    assert_eq!(ids.len(), 40);
}

#[tokio::test]
async fn streams_that_stay_broken_end_after_six_attempts() {
    for api in Api::ALL {
        let ended = call(api, vec![Answer::ending(&begun(api), End::Cut)], hasty()).await;
        let error = ended.outcome.unwrap_err();
        assert_eq!((error.fault(), ended.requests), (ModelFault::Garbled, 6), "{api}");
        assert_eq!(cause(&error).attempts, 6);
    }
}

#[tokio::test]
async fn the_callers_own_mistakes_are_not_retried() {
    for api in Api::ALL {
        for (status, fault) in [
            (400, ModelFault::Invalid),
            (401, ModelFault::Auth),
            (403, ModelFault::Auth),
            (404, ModelFault::Invalid),
            (422, ModelFault::Invalid),
            (302, ModelFault::Invalid),
        ] {
            let answer =
                Answer::status(status, r#"{"error":{"message":"no: sk-canary-0123456789"}}"#)
                    .with("location", "http://127.0.0.1:1/elsewhere");
            let ended = call(api, vec![answer.with("Retry-After", "1")], hasty()).await;
            let error = ended.outcome.unwrap_err();
            assert_eq!((error.fault(), ended.requests), (fault, 1), "{api} {status}");
            assert_eq!(cause(&error).status, Some(status));
            assert!(!format!("{error:?} {}", error.detail()).contains("canary"), "{api}");
        }
    }
}

#[tokio::test]
async fn an_endless_failure_ends_after_exactly_six_attempts() {
    for api in Api::ALL {
        for status in [502, 500, 408, 409, 425] {
            let ended = call(api, vec![Answer::status(status, "busy")], hasty()).await;
            let error = ended.outcome.unwrap_err();
            assert_eq!((error.fault(), ended.requests), (ModelFault::Unavailable, 6), "{api}");
            assert_eq!(
                error.detail(),
                format!(
                    "127.0.0.1 answered {status}: busy (the last of 6 attempts); check the network and the base URL, or wait and resume"
                )
            );
        }
    }
}

#[tokio::test]
async fn a_silent_server_times_out() {
    for api in Api::ALL {
        let policy = RetryPolicy { first_byte_ms: 100, ..hasty() };
        let ended = call(api, vec![Answer::Nothing], policy).await;
        let error = ended.outcome.unwrap_err();
        assert_eq!((error.fault(), cause(&error).attempts), (ModelFault::Unavailable, 6), "{api}");
        assert_eq!(cause(&error).message, "no answer within 100 ms");
        let policy = RetryPolicy { attempt_ms: 100, attempts_max: 2, ..hasty() };
        let ended = call(api, vec![Answer::ending(&begun(api), End::Silence)], policy).await;
        let error = ended.outcome.unwrap_err();
        assert_eq!((error.fault(), cause(&error).attempts), (ModelFault::Unavailable, 2), "{api}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_to_be_so() {
    // Held, so that nobody else comes to listen there.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let free = held.local_addr().unwrap();
    for api in Api::ALL {
        let model = client(api, &format!("http://{free}"), hasty());
        let error = ask(&model, &[says("Go.")], Purpose::Turn, &NoFrames).await.unwrap_err();
        assert_eq!(error.fault(), ModelFault::Unavailable, "{api}");
        assert_eq!(cause(&error).attempts, 6);
        assert!(error.to_string().contains("refused"), "{error}");
    }
}

#[tokio::test]
async fn a_refusal_is_a_reply_of_its_own_kind() {
    for api in Api::ALL {
        let stream = match api {
            Api::AnthropicMessages => stream_of(&[
                ("message_start", r#"{"type":"message_start","message":{"id":"m","usage":{}}}"#),
                (
                    "message_delta",
                    r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","explanation":"I can't."}}}"#,
                ),
                ("message_stop", r#"{"type":"message_stop"}"#),
            ]),
            Api::OpenAiResponses => stream_of(&[
                (
                    "",
                    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I can't."}]}}"#,
                ),
                ("", r#"{"type":"response.completed","response":{"id":"r"}}"#),
            ]),
            Api::OpenAiChat => stream_of(&[
                ("", r#"{"choices":[{"index":0,"delta":{"role":"assistant","refusal":"I "}}]}"#),
                (
                    "",
                    r#"{"choices":[{"index":0,"delta":{"refusal":"can't."},"finish_reason":"stop"}]}"#,
                ),
                ("", "[DONE]"),
            ]),
            Api::Gemini => continue,
        };
        let ended = call(api, vec![Answer::stream(&stream)], hasty()).await;
        assert_eq!(ended.outcome.unwrap().stop, Stop::Refused("I can't.".into()), "{api}");
        assert_eq!(ended.requests, 1, "{api}");
        let filtered =
            Answer::status(400, r#"{"error":{"code":"content_filter","message":"filtered"}}"#);
        let ended = call(api, vec![filtered], hasty()).await;
        assert_eq!(ended.outcome.unwrap().stop, Stop::Refused("filtered".into()), "{api}");
    }
}

#[tokio::test]
async fn a_content_filter_is_a_refusal() {
    let chat = stream_of(&[
        (
            "",
            r#"{"choices":[{"index":0,"delta":{"content":"I"},"finish_reason":"content_filter"}]}"#,
        ),
        ("", "[DONE]"),
    ]);
    let responses = stream_of(&[(
        "",
        r#"{"type":"response.incomplete","response":{"id":"r","incomplete_details":{"reason":"content_filter"}}}"#,
    )]);
    let refused =
        r#"{"candidates":[{"content":{"parts":[{"text":"I"}]},"finishReason":"SAFETY"}]}"#;
    let blocked = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}"#;
    let gemini = |event| stream_of(&[("", event)]);
    for (api, stream, says) in [
        (Api::OpenAiChat, chat, "content filter"),
        (Api::OpenAiResponses, responses, "content filter"),
        (Api::Gemini, gemini(refused), "safety"),
        (Api::Gemini, gemini(blocked), "the prompt was blocked: prohibited content"),
    ] {
        let ended = call(api, vec![Answer::stream(&stream)], hasty()).await;
        assert_eq!(ended.outcome.unwrap().stop, Stop::Refused(says.into()), "{api}");
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_said_to_be_so() {
    for api in Api::ALL {
        let mut answers = vec![match api {
            Api::AnthropicMessages => Answer::status(
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ),
            Api::Gemini => Answer::status(
                400,
                r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#,
            ),
            Api::OpenAiResponses | Api::OpenAiChat => Answer::status(
                400,
                r#"{"error":{"message":"Your input is too long.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            ),
        }];
        answers.push(Answer::stream(&match api {
            Api::AnthropicMessages => stream_of(&[
                ("message_start", r#"{"type":"message_start","message":{"id":"m","usage":{}}}"#),
                ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}"#),
                ("message_stop", r#"{"type":"message_stop"}"#),
            ]),
            Api::OpenAiResponses => stream_of(&[("", r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"too long"}}}"#)]),
            Api::OpenAiChat | Api::Gemini => stream_of(&[("", r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#)]),
        }));
        for answer in answers {
            let ended = call(api, vec![answer], hasty()).await;
            let error = ended.outcome.unwrap_err();
            assert_eq!((error.fault(), ended.requests), (ModelFault::ContextTooLong, 1), "{api}");
        }
    }
}

#[tokio::test]
async fn a_cut_reply_says_so_and_malformed_arguments_are_kept_as_they_are() {
    for api in Api::ALL {
        let stream = match api {
            Api::AnthropicMessages => stream_of(&[
                ("message_start", r#"{"type":"message_start","message":{"id":"m","usage":{}}}"#),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"execute","input":{}}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"l"}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
                (
                    "message_delta",
                    r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#,
                ),
                ("message_stop", r#"{"type":"message_stop"}"#),
            ]),
            Api::OpenAiResponses => stream_of(&[
                (
                    "",
                    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","status":"incomplete","call_id":"t","name":"execute","arguments":"{\"command\": \"l"}}"#,
                ),
                (
                    "",
                    r#"{"type":"response.incomplete","response":{"id":"r","incomplete_details":{"reason":"max_output_tokens"}}}"#,
                ),
            ]),
            Api::OpenAiChat => stream_of(&[
                (
                    "",
                    r#"{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"t","function":{"name":"execute","arguments":"{\"command\": \"l"}}]}}]}"#,
                ),
                ("", r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#),
            ]),
            // Its calls come whole or not at all.
            Api::Gemini => continue,
        };
        let ended = call(api, vec![Answer::stream(&stream)], hasty()).await;
        let reply = ended.outcome.unwrap();
        assert_eq!(reply.stop, Stop::OutputLimit, "{api}");
        assert_eq!(reply.calls().next().unwrap().arguments, "{\"command\": \"l", "{api}");
        let replayed = reply.native[0].as_str();
        let as_object = match api {
            Api::AnthropicMessages => r#""input":{"_raw":"{\"command\": \"l"}"#,
            Api::OpenAiResponses => r#""arguments":"{\"command\": \"l""#,
            Api::OpenAiChat => r#""arguments":"{\"_raw\":\"{\\\"command\\\": \\\"l\"}""#,
            Api::Gemini => continue,
        };
        assert!(replayed.contains(as_object), "{api}: {replayed}");
    }
}
