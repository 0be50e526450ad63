//! What each wire is sent, for every kind of item.

use std::sync::Arc;

use expect_test::expect_file;
use outrigger_agent::{
    Author, Call, Digest, Item, MediaType, Message, Origin, Part, Picture, Raw, Reply, Status,
    Stop, Usage,
};
use outrigger_model::{Api, NoFrames, Purpose};

use crate::fake::{Answer, Fake};
use crate::kit::{PICTURE, ask, client, client_of, endpoint, hard, hasty, result, says};

fn reply(parts: Vec<Part>) -> Item {
    Item::Reply(Arc::new(Reply {
        origin: Origin {
            api: "elsewhere".into(),
            provider: "example.org".into(),
            model: "other".into(),
            response_id: None,
        },
        fingerprint: Reply::fingerprint_of(&parts),
        parts,
        native: vec![Raw::new(r#"{"foreign":true}"#.into()).unwrap()],
        stop: Stop::End,
        usage: Usage::default(),
    }))
}

fn call(id: &str, arguments: &str) -> Part {
    Part::Call(Call { id: id.into(), name: "execute".into(), arguments: arguments.into() })
}

fn every_kind_of_item() -> Vec<Item> {
    let data = Message::new(Author::Untrusted("AGENTS.md".into()), "Use tabs.".into());
    vec![
        Item::Summary(Arc::new("We began.".into())),
        Item::Message(Arc::new(data)),
        says("Repair the \"build\"\n"),
        reply(vec![
            Part::Thinking("secret thought".into()),
            Part::Text("I look.".into()),
            Part::Opaque("server_tool_use".into()),
            call("functions.execute:0", r#"{"command": "ls", "n": 1.0}"#),
            call("b", r#"{"command": "#),
        ]),
        says("And hurry."),
        result("functions.execute:0", Status::Ok, ""),
        result("b", Status::Denied, "the arguments are no JSON"),
        Item::Notice("the sandbox was lost".into()),
        reply(vec![Part::Text("Done.".into())]),
        reply(Vec::new()),
        says("  "),
    ]
}

/// A message with a picture that is known, and one with a picture that is not.
fn shows() -> Vec<Item> {
    let shown = |text: &str, picture: &[u8]| {
        let picture = Picture {
            digest: Digest::of(picture),
            media_type: MediaType::Png,
            bytes: picture.len() as u64,
            width: 1_280,
            height: 720,
            name: "shot.png".into(),
        };
        let author = Author::Person("person:local".into());
        let message = Message { pictures: vec![picture], ..Message::new(author, text.into()) };
        Item::Message(Arc::new(message))
    };
    vec![
        says("Hello."),
        shown("What is wrong here?", PICTURE),
        reply(vec![Part::Text("It is red.".into())]),
        shown("And here?", b"another"),
    ]
}

async fn written(api: Api, purpose: Purpose, items: &[Item]) -> String {
    let fake = Fake::start(vec![Answer::stream(hard(api).0)]);
    ask(&client(api, &fake.url(), hasty()), items, purpose, &NoFrames).await.unwrap();
    fake.seen()[0].body.clone()
}

async fn body(api: Api, purpose: Purpose, items: &[Item]) -> String {
    let body: serde_json::Value =
        serde_json::from_str(&written(api, purpose, items).await).unwrap();
    serde_json::to_string_pretty(&body).unwrap() + "\n"
}

#[tokio::test]
async fn anthropic_messages() {
    let body = body(Api::AnthropicMessages, Purpose::Turn, &every_kind_of_item()).await;
    assert!(body.matches("cache_control").count() <= 4, "the API allows four");
    expect_file!["../bodies/anthropic.json"].assert_eq(&body);
}

#[tokio::test]
async fn openai_responses() {
    let body = body(Api::OpenAiResponses, Purpose::Turn, &every_kind_of_item()).await;
    expect_file!["../bodies/responses.json"].assert_eq(&body);
}

#[tokio::test]
async fn openai_chat() {
    let body = body(Api::OpenAiChat, Purpose::Turn, &every_kind_of_item()).await;
    expect_file!["../bodies/chat.json"].assert_eq(&body);
}

#[tokio::test]
async fn gemini() {
    let body = body(Api::Gemini, Purpose::Turn, &every_kind_of_item()).await;
    expect_file!["../bodies/gemini.json"].assert_eq(&body);
}

/// A picture stands before the text that it came with, and one that the model is not shown is
/// told; where nothing is shown a message stays as it was.
#[tokio::test]
async fn pictures() {
    for (api, name) in [
        (Api::AnthropicMessages, "anthropic"),
        (Api::OpenAiResponses, "responses"),
        (Api::OpenAiChat, "chat"),
        (Api::Gemini, "gemini"),
    ] {
        let shown = body(api, Purpose::Turn, &shows()).await;
        expect_file![format!("../bodies/{name}_pictures.json")].assert_eq(&shown);
    }
}

/// What was sent before is sent again as it was, so that the provider finds it in its cache.
#[tokio::test]
async fn a_conversation_that_goes_on_begins_with_the_same_bytes() {
    for api in [Api::OpenAiResponses, Api::OpenAiChat, Api::Gemini] {
        let before = written(api, Purpose::Turn, &shows()[..2]).await;
        let after = written(api, Purpose::Turn, &shows()).await;
        let end = before.rfind("What is wrong here?").unwrap();
        assert_eq!(before[..end], after[..end], "{api}");
    }
}

#[tokio::test]
async fn a_summary_is_asked_for_with_the_same_beginning() {
    for api in Api::ALL {
        let items = [says("Hello.")];
        let turn = body(api, Purpose::Turn, &items).await;
        let compact = body(api, Purpose::Compact, &items).await;
        let turn: serde_json::Value = serde_json::from_str(&turn).unwrap();
        let compact: serde_json::Value = serde_json::from_str(&compact).unwrap();
        assert_eq!(turn["tools"], compact["tools"], "{api}");
        match api {
            // Another choice would empty its cache of the conversation.
            Api::AnthropicMessages => assert_eq!(compact["tool_choice"], turn["tool_choice"]),
            Api::OpenAiResponses | Api::OpenAiChat => assert_eq!(compact["tool_choice"], "none"),
            Api::Gemini => {
                let mode = &compact["toolConfig"]["functionCallingConfig"]["mode"];
                assert_eq!(mode, "NONE");
            }
        }
        let names = ["messages", "input", "contents"];
        let messages = names.iter().find_map(|name| compact.get(name)).unwrap();
        let last = messages.as_array().unwrap().last().unwrap();
        assert_eq!(last["role"], "user", "{api}");
        assert!(last.to_string().contains("Summarise this conversation"), "{api}");
    }
}

/// Providers refuse reasoning that leads to nothing, so a reply that was cut while
/// the model reasoned must not make every later request fail.
#[tokio::test]
async fn reasoning_at_the_end_of_a_cut_reply_is_not_given_back() {
    for (api, kind) in [(Api::AnthropicMessages, "thinking"), (Api::OpenAiResponses, "reasoning")] {
        for kept in [0, 1] {
            let parts = vec![Part::Thinking("hm".into())];
            let native = [
                r#"{"type":"text","text":"kept"}"#.into(),
                format!(r#"{{"type":"{kind}","x":"hm"}}"#),
            ];
            let reply = Item::Reply(Arc::new(Reply {
                origin: Origin {
                    api: api.as_str().into(),
                    provider: "127.0.0.1".into(),
                    model: "m-hard".into(),
                    response_id: None,
                },
                fingerprint: Reply::fingerprint_of(&parts),
                parts,
                native: native
                    .into_iter()
                    .skip(1 - kept)
                    .map(|text| Raw::new(text).unwrap())
                    .collect(),
                stop: Stop::OutputLimit,
                usage: Usage::default(),
            }));
            let body = body(api, Purpose::Turn, &[says("Go."), reply, says("Go on.")]).await;
            assert_eq!(body.matches("kept").count(), kept, "{api}");
            assert!(!body.contains("hm"), "{api}: {body}");
        }
    }
}

#[tokio::test]
async fn headers_and_fields_of_the_endpoint_are_sent() {
    for api in Api::ALL {
        let fake = Fake::start(vec![Answer::stream(hard(api).0)]);
        let mut endpoint = endpoint(api, &format!("{}/base/v1", fake.url()));
        endpoint.headers = vec![("x-team".into(), "blue".into())];
        endpoint.body = vec![("temperature".into(), Raw::new("1.50".into()).unwrap())];
        endpoint.prompt_cache_key = false;
        let model = client_of(endpoint, hasty());
        ask(&model, &[says("Hello.")], Purpose::Turn, &NoFrames).await.unwrap();
        let seen = &fake.seen()[0];
        let (path, key) = match api {
            Api::AnthropicMessages => ("messages", seen.header("x-api-key")),
            Api::OpenAiResponses => ("responses", seen.header("authorization")),
            Api::OpenAiChat => ("chat/completions", seen.header("authorization")),
            Api::Gemini => {
                ("models/m-hard:streamGenerateContent?alt=sse", seen.header("x-goog-api-key"))
            }
        };
        assert_eq!(seen.head[0], format!("POST /base/v1/{path} HTTP/1.1"));
        assert!(key.unwrap().ends_with("sk-canary-0123456789"), "{api}");
        assert_eq!(seen.header("x-team"), Some("blue"), "{api}");
        assert_eq!(seen.header("content-type"), Some("application/json"), "{api}");
        let agent = seen.header("user-agent").unwrap();
        assert!(agent.starts_with("outrigger/"), "{api}");
        assert!(seen.body.contains(r#","temperature":1.50,"#), "{api}");
        assert!(!seen.body.contains("prompt_cache_key"), "{api}");
        assert!(!format!("{model:?}").contains("canary"), "{api}");
    }
}
