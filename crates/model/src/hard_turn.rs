//! The hard assistant turn, decoded on all wires however its bytes are cut.

use expect_test::expect_file;
use futures_util::{FutureExt as _, stream};
use proptest::prelude::*;
use std::collections::BTreeMap;

use crate::fault::Fault;
use crate::wire::{Answer, Delta};
use crate::{Api, RetryPolicy, attempt, codec, sse};

const STREAMS: [(Api, &str, &str); 4] = [
    (
        Api::AnthropicMessages,
        include_str!("../tests/hard/anthropic.sse"),
        include_str!("../tests/hard/anthropic.items"),
    ),
    (
        Api::OpenAiResponses,
        include_str!("../tests/hard/responses.sse"),
        include_str!("../tests/hard/responses.items"),
    ),
    (
        Api::OpenAiChat,
        include_str!("../tests/hard/chat.sse"),
        include_str!("../tests/hard/chat.items"),
    ),
    (
        Api::Gemini,
        include_str!("../tests/hard/gemini.sse"),
        include_str!("../tests/hard/gemini.items"),
    ),
];

/// What the deltas add up to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    text: String,
    thinking: String,
    arguments: BTreeMap<usize, (String, String)>,
}

fn decode<'a>(api: Api, pieces: impl Iterator<Item = &'a [u8]>) -> Result<(Answer, Shown), Fault> {
    let pieces = stream::iter(pieces.map(Ok::<_, Fault>));
    let mut decoder = codec::decoder(api, crate::wire::CallIds(0));
    let mut shown = Shown::default();
    let events = Box::pin(sse::events(pieces, &RetryPolicy::new(0)));
    attempt::decode(events, &mut *decoder, &mut |delta| match delta {
        Delta::Text(delta) => shown.text.push_str(delta),
        Delta::Thinking(delta) => shown.thinking.push_str(delta),
        Delta::Arguments { call, name, delta } => {
            let empty = || (name.to_owned(), String::new());
            shown.arguments.entry(call).or_insert_with(empty).1.push_str(delta);
        }
    })
    .now_or_never()
    .unwrap()?;
    Ok((decoder.finish()?, shown))
}

#[test]
fn every_item_is_kept_verbatim_and_in_order() {
    for (api, stream, items) in STREAMS {
        let (answer, _) = decode(api, std::iter::once(stream.as_bytes())).unwrap();
        let native: Vec<&str> = answer.native.iter().map(|raw| raw.as_str()).collect();
        assert_eq!(native, items.lines().collect::<Vec<_>>(), "{api}");
    }
}

#[test]
fn how_the_bytes_are_cut_does_not_matter() {
    for (api, stream, _) in STREAMS {
        let whole = decode(api, std::iter::once(stream.as_bytes())).unwrap();
        for size in [1, 2, 3, 5, 7, 11, 64, 1_000] {
            assert_eq!(decode(api, stream.as_bytes().chunks(size)).unwrap(), whole, "{api} {size}");
        }
        for cut in (0..=stream.len()).step_by(7) {
            let (head, tail) = stream.as_bytes().split_at(cut);
            assert_eq!(decode(api, [head, tail].into_iter()).unwrap(), whole, "{api} {cut}");
        }
    }
}

/// The last byte that matters ends the event with the reason why the reply ended.
#[test]
fn no_truncated_stream_is_a_reply() {
    for (api, stream, _) in STREAMS {
        let marker = match api {
            Api::AnthropicMessages => "\"web_search_requests\":1}}}\n\n",
            Api::OpenAiResponses => "\"total_tokens\":6477}}}\n\n",
            Api::OpenAiChat => "\"finish_reason\":\"tool_calls\"}]}\n\n",
            Api::Gemini => {
                "\"tokenCount\":6156}]},\"modelVersion\":\"m-hard\",\"responseId\":\"resp-hard\"}\n\n"
            }
        };
        let enough = stream.find(marker).unwrap() + marker.len();
        for end in (0..enough).rev().step_by(3) {
            let fault = decode(api, std::iter::once(&stream.as_bytes()[..end])).unwrap_err();
            assert_eq!(fault.kind, outrigger_agent::ModelFault::Garbled, "{api} {end}");
        }
        decode(api, std::iter::once(&stream.as_bytes()[..enough])).unwrap();
    }
}

#[test]
fn canonical_parts_and_deltas() {
    for ((api, stream, _), expected) in STREAMS.into_iter().zip([
        expect_file!["../tests/hard/anthropic.canonical"],
        expect_file!["../tests/hard/responses.canonical"],
        expect_file!["../tests/hard/chat.canonical"],
        expect_file!["../tests/hard/gemini.canonical"],
    ]) {
        let (answer, shown) = decode(api, std::iter::once(stream.as_bytes())).unwrap();
        let Answer { response_id, parts, stop, native: _, usage } = answer;
        let text = format!("{response_id:?} {stop:?}\n{usage:#?}\n{parts:#?}\n{shown:#?}\n");
        expected.assert_eq(&text);
    }
}

proptest! {
    /// Whatever a server sends, a decoder ends with a reply or a fault.
    #[test]
    fn noise_is_never_a_panic(at in 0usize..4_000, noise in proptest::collection::vec(any::<u8>(), 1..8)) {
        for (api, stream, _) in STREAMS {
            let mut bytes = stream.as_bytes().to_vec();
            let at = at % (bytes.len() - noise.len());
            bytes[at..at + noise.len()].copy_from_slice(&noise);
            if let Ok((answer, _)) = decode(api, std::iter::once(&bytes[..])) {
                for raw in answer.native {
                    serde_json::from_str::<serde::de::IgnoredAny>(raw.as_str()).unwrap();
                }
            }
        }
    }
}
