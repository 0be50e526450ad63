//! The hard assistant turn goes through the journal's form and back to its
//! provider, byte for byte; to another provider it goes in canonical form.

use std::sync::Arc;

use outrigger_agent::{Item, Part, Reply, Status};
use outrigger_model::{Api, NoFrames, Purpose};

use crate::fake::{Answer, Fake};
use crate::kit::{ask, client, hard, hasty, result, says};

/// What the journal does to a reply.
fn journalled(reply: &Reply) -> Reply {
    let text = serde_json::to_string(reply).unwrap();
    let back: Reply = serde_json::from_str(&text).unwrap();
    assert_eq!(&back, reply);
    back
}

fn conversation(reply: Reply) -> Vec<Item> {
    let calls: Vec<String> = reply.calls().map(|call| call.id.clone()).collect();
    let mut items = vec![says("Look around."), Item::Reply(Arc::new(reply))];
    for (call, status) in calls.iter().zip([Status::Ok, Status::Error]) {
        items.push(result(call, status, "out \"1\"\n"));
    }
    items
}

/// The native items, then the results, as they stand in the next request.
fn expected(api: Api) -> String {
    let items = hard(api).1.join(",");
    match api {
        Api::AnthropicMessages => format!(
            r#",{{"role":"assistant","content":[{items}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_01A","content":"out \"1\"\n"}},{{"type":"tool_result","tool_use_id":"toolu_01B","content":"out \"1\"\n","is_error":true,"cache_control":{{"type":"ephemeral"}}}}]}}]}}"#
        ),
        Api::OpenAiResponses => format!(
            r#",{items},{{"type":"function_call_output","call_id":"call_A","output":"out \"1\"\n"}},{{"type":"function_call_output","call_id":"call_B","output":"out \"1\"\n"}}]}}"#
        ),
        Api::OpenAiChat => format!(
            r#",{items},{{"role":"tool","tool_call_id":"call_A","content":"out \"1\"\n"}},{{"role":"tool","tool_call_id":"call_B","content":"out \"1\"\n"}}]}}"#
        ),
        Api::Gemini => format!(
            r#",{{"role":"model","parts":[{items}]}},{{"role":"user","parts":[{{"functionResponse":{{"id":"call_A","name":"execute","response":{{"output":"out \"1\"\n"}}}}}},{{"functionResponse":{{"id":"call_B","name":"execute","response":{{"error":"out \"1\"\n"}}}}}}]}}]}}"#
        ),
    }
}

#[tokio::test]
async fn a_providers_own_items_come_back_byte_for_byte() {
    for api in Api::ALL {
        let fake = Fake::start(vec![Answer::stream(hard(api).0)]);
        let model = client(api, &fake.url(), hasty());
        let first = ask(&model, &[says("Look around.")], Purpose::Turn, &NoFrames).await.unwrap();
        let items = conversation(journalled(&first));
        ask(&model, &items, Purpose::Turn, &NoFrames).await.unwrap();
        let body = fake.seen()[1].body.clone();
        serde_json::from_str::<serde_json::Value>(&body).unwrap();
        let expected = expected(api);
        assert!(body.ends_with(&expected), "{api}\n{body}\n{expected}");
        assert_eq!(fake.connections(), 1, "{api}: the connection is used again");
    }
}

#[tokio::test]
async fn another_provider_gets_the_canonical_form() {
    let ours = Api::ALL.into_iter().flat_map(|from| Api::ALL.map(|to| (from, to)));
    for (from, to) in ours.filter(|(from, to)| from != to) {
        let source = Fake::start(vec![Answer::stream(hard(from).0)]);
        let target = Fake::start(vec![Answer::stream(hard(to).0)]);
        let model = client(from, &source.url(), hasty());
        let reply = ask(&model, &[says("Look around.")], Purpose::Turn, &NoFrames).await.unwrap();
        let model = client(to, &target.url(), hasty());
        ask(&model, &conversation(reply), Purpose::Turn, &NoFrames).await.unwrap();
        let body = target.seen()[0].body.clone();
        let value: serde_json::Value = serde_json::from_str(&body).unwrap();
        for foreign in
            ["thinking", "sig/", "encrypted", "Let me look", "rs_01", "reasoning_details"]
        {
            let found = ["messages", "input", "contents"].iter().find_map(|name| value.get(name));
            let found = found.unwrap().to_string();
            assert!(!found.contains(foreign), "{from} to {to}: {foreign}\n{body}");
        }
        for (call, command) in [("execute", "ls -la"), ("read_file", "/workspace/ü")] {
            assert!(body.contains(call) && body.contains(command), "{from} to {to}\n{body}");
        }
    }
}

#[tokio::test]
async fn a_changed_reply_is_not_given_back_as_it_was() {
    for api in Api::ALL {
        let fake = Fake::start(vec![Answer::stream(hard(api).0)]);
        let model = client(api, &fake.url(), hasty());
        let mut reply = ask(&model, &[says("Look.")], Purpose::Turn, &NoFrames).await.unwrap();
        for part in &mut reply.parts {
            if let Part::Text(text) = part {
                "[redacted]".clone_into(text);
            }
        }
        // As the fold of the journal does it.
        assert!(!reply.native_is_current(), "{api}");
        reply.native.clear();
        ask(&model, &conversation(reply), Purpose::Turn, &NoFrames).await.unwrap();
        let body = fake.seen()[1].body.clone();
        assert!(body.contains("[redacted]"), "{api}\n{body}");
        for gone in ["I look", "the web", "sig/", "encrypted_index"] {
            assert!(!body.contains(gone), "{api}: {gone}\n{body}");
        }
    }
}
