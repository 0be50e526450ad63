//! What the sandboxes of people reach, through the real gate: what they may, who says so, what is
//! written down of it.

use crate::serve::{Served, served, served_in};
use crate::serve_egress::host;
use crate::support::World;
use crate::tls_host::kill_gates;
use serde_json::{Value, json};
use std::fs;

const CURL: &str = "curl -sS --max-time 20 -o got -w '%{http_code}'";

/// What a command gets of an address: the status, or nothing where there was no answer.
fn got(served: &Served, sandbox: &str, url: &str) -> String {
    let (status, done) = served.run(sandbox, &json!({ "shell": format!("{CURL} {url}/") }));
    assert_eq!((status, &done["state"]), (200, &json!("ended")), "{done}");
    done["stdout"].as_str().unwrap().to_owned()
}

fn egress(served: &Served, sandbox: &str) -> Vec<Value> {
    let (status, list) = served.get(&format!("{sandbox}/egress"));
    assert_eq!(status, 200, "{list}");
    list["data"].as_array().unwrap().clone()
}

fn set(served: &Served, sandbox: &str, words: &[&str]) -> (u16, Value) {
    let body = json!({ "network": words }).to_string();
    let args = ["--request", "PUT", "--json", &body];
    served.problem(&args, &format!("{sandbox}/network"))
}

#[test]
fn a_sandbox_reaches_what_was_asked_for_and_what_it_reached_is_told() {
    let (mut served, _) = served(&[]);
    let (word, other) = (host(), host());
    let own = served.sandbox(&json!({ "network": [word] }));
    assert_eq!(served.get(&own).1["network"], json!([word]));
    assert_eq!(got(&served, &own, &word), "200");
    assert_eq!(served.shell(&own, "cat got")["stdout"], "hello");
    assert_eq!(got(&served, &own, &other), "403");
    let noted = egress(&served, &own);
    let of = |at: usize| (&noted[at]["verdict"], noted[at]["port"].as_u64().unwrap());
    let port = |word: &str| word.rsplit(':').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(noted.len(), 2, "{noted:?}");
    assert_eq!(of(0), (&json!("forbid"), port(&other)));
    assert_eq!(of(1), (&json!("permit"), port(&word)));
    assert_eq!(
        (&noted[1]["grant"], noted[1]["received_bytes"].as_u64() > Some(4)),
        (&json!(word), true)
    );
    let why = noted[0]["refusal"].as_str().unwrap();
    let advice = format!("`127.0.0.2:{}` among the words of its `network` allows it", port(&other));
    assert!(why.ends_with(&advice), "{why}");

    // It can be told otherwise, and keeps that over the death of the gate and of the server.
    assert_eq!(set(&served, &own, &[&other]).0, 204);
    assert_eq!(
        (got(&served, &own, &word), got(&served, &own, &other)),
        ("403".into(), "200".into())
    );
    kill_gates(&served.world);
    assert_eq!(got(&served, &own, &other), "200");
    served.restart();
    assert_eq!(served.get(&own).1["network"], json!([other]));
    assert_eq!(got(&served, &own, &other), "200");
    assert_eq!(egress(&served, &own).len(), 6);
    // So does a fork, and the variables of a command go before those of the network.
    let (status, fork) = served.post(&format!("{own}/forks"), &json!({}));
    assert_eq!((status, &fork["network"]), (201, &json!([other])), "{fork}");
    let fork = format!("/v1/sandboxes/{}", fork["id"].as_str().unwrap());
    assert_eq!(got(&served, &fork, &other), "200");
    let elsewhere = json!({ "shell": format!("{CURL} {other}/"), "env": { "http_proxy": "http://127.0.0.1:9" } });
    assert_eq!(served.run(&fork, &elsewhere).1["exit_code"], 7);

    // What is taken back is so at once.
    assert_eq!(set(&served, &own, &["none"]).0, 204);
    assert_ne!(got(&served, &own, &other), "200");
    for (words, wanted) in [
        (&["none", "packages"][..], "`none` stands alone"),
        (&["git"], "there is none here"),
        (&["secret:NONE"], "there is no secret NONE"),
        (&["a b"], "`network`: "),
    ] {
        let (status, problem) = set(&served, &own, words);
        let detail = problem["detail"].as_str().unwrap();
        assert!((400..500).contains(&status) && detail.contains(wanted), "{problem}");
    }
    assert_eq!(served.delete(&own), 204);
    for path in ["egress", "network"] {
        assert_eq!(
            served.send(&["--request", "PUT"], &format!("{own}/{path}")).0 / 100,
            4,
            "{path}"
        );
    }
}

#[test]
fn rules_and_the_configuration_go_before_what_is_asked_for() {
    let world = World::new();
    let (word, other) = (host(), host());
    let port = other.rsplit(':').next().unwrap();
    let rules = world.path("hosts.cedar");
    let rule = format!(
        "@id(\"no-other\") @reason(\"Not from here.\") forbid(principal == Person::\"local\", action == Action::\"egress\", resource) when {{ context has port && context.port == {port} }};"
    );
    fs::write(&rules, rule).unwrap();
    world.configure(&format!(
        "[policy]\nfiles = [{rules:?}]\n[sandbox]\nnetwork = [{word:?}, \"git\"]\n"
    ));
    let (served, _) = served_in(world, &[]);
    // As the configuration says of sandboxes, but for what means a repository.
    let usual = served.sandbox(&json!({}));
    assert_eq!(served.get(&usual).1["network"], json!([word]));
    assert_eq!(got(&served, &usual, &word), "200");
    let less = served.sandbox(&json!({ "network": ["none"] }));
    assert_ne!(got(&served, &less, &word), "200");
    assert_eq!(egress(&served, &less), Vec::<Value>::new());
    let forbidden = served.sandbox(&json!({ "network": [other] }));
    assert_ne!(got(&served, &forbidden, &other), "200");
    let noted = egress(&served, &forbidden);
    assert!(noted[0]["refusal"].as_str().unwrap().contains("Not from here."), "{noted:?}");
}
