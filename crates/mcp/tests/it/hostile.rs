//! Servers that are dead, slow, endless, malformed, or want more than they should: each
//! gives a typed result in bounded time and memory, and none is asked twice.

use expect_test::expect;
use outrigger_tools::outside::Outside;

use crate::server::{Nature, Server, Way};
use crate::well::{call, calling, http, text};

const JSON: &str = "200 OK\r\ncontent-type: application/json";
const SSE: &str = "200 OK\r\ncontent-type: text/event-stream";

#[tokio::test]
async fn every_fault_of_a_call_is_told_apart() {
    let ways = [
        ("hangs", Way::Hang),
        ("hangs up", Way::HangUp),
        ("no JSON", Way::Raw(JSON, "{\"jsonrpc\": \"2.0\", ")),
        ("another protocol", Way::Raw(JSON, "{\"hello\": \"there\"}")),
        (
            "answer to another call",
            Way::Raw(JSON, r#"{"jsonrpc":"2.0","id":999,"result":{"content":[]}}"#),
        ),
        ("a page", Way::Raw("200 OK\r\ncontent-type: text/html", "<html>")),
        ("a stream without an answer", Way::Raw(SSE, "data: {}\n\n")),
        ("an empty stream", Way::Raw(SSE, "")),
        ("redirect", Way::Raw("302 Found\r\nlocation: http://169.254.169.254/", "")),
        ("no credentials", Way::Raw("401 Unauthorized", "")),
        ("too many", Way::Raw("429 Too Many Requests", "")),
        ("broken", Way::Raw("500 Internal Server Error", "secret words of the server")),
        ("endless JSON", Way::Endless("application/json")),
        ("endless stream", Way::Endless("text/event-stream")),
        ("refuses", Way::Refuse),
        ("asks back", Way::AskBack),
    ];
    let mut said = String::new();
    for (name, way) in ways {
        let server = Server::new(Nature::that(way));
        // What never answers is waited for to the end; all else has time.
        let policy = match name {
            "hangs" => 3_000,
            "answer to another call" | "endless stream" => 5_000,
            _ => 60_000,
        };
        let outcome = call(&http(&server.url, Vec::new()), "note", "{}", policy).await;
        let outcome = match &outcome {
            Ok(answered) => format!("answered ({}): {}", answered.failed, text(answered)),
            Err(fault) => format!("{fault:?}"),
        };
        assert_eq!(server.calls(), 1, "{name}: it is asked once");
        said += &format!("{name}: {outcome}\n");
    }
    expect![[r#"
        hangs: MayHaveHappened { detail: "no answer within 3000 ms" }
        hangs up: MayHaveHappened { detail: "the connection broke: connection closed before message completed" }
        no JSON: MayHaveHappened { detail: "the answer is not of the protocol" }
        another protocol: MayHaveHappened { detail: "the answer is not of the protocol" }
        answer to another call: MayHaveHappened { detail: "no answer within 5000 ms" }
        a page: MayHaveHappened { detail: "the answer is neither JSON nor a stream of events" }
        a stream without an answer: MayHaveHappened { detail: "the connection ended before the answer" }
        an empty stream: MayHaveHappened { detail: "the connection ended before the answer" }
        redirect: MayHaveHappened { detail: "the server points to another address (HTTP 302), which is not followed; configure that address" }
        no credentials: NotAsked { detail: "the server does not accept the credentials (HTTP 401); see `token_env` in its configuration" }
        too many: NotAsked { detail: "the server refused the request (HTTP 429)" }
        broken: MayHaveHappened { detail: "the server answered with HTTP 500" }
        endless JSON: MayHaveHappened { detail: "the answer has more than 16777216 bytes" }
        endless stream: MayHaveHappened { detail: "no answer within 5000 ms" }
        refuses: answered (true): The server refused: not today[2J (code -32000)
        asks back: answered (true): The server asks for something more before it goes on, and is not answered. Nothing is known to have happened.
    "#]].assert_eq(&said);
}

#[tokio::test]
async fn every_fault_of_a_connection_means_that_nothing_was_asked() {
    let ways = [
        ("hangs up", Way::HangUp),
        ("no JSON", Way::Raw(JSON, "hello")),
        ("a page", Way::Raw("200 OK\r\ncontent-type: text/html", "<html>")),
        ("redirect", Way::Raw("307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/", "")),
        ("no credentials", Way::Raw("401 Unauthorized\r\nwww-authenticate: Bearer", "")),
        ("broken", Way::Raw("503 Service Unavailable", "")),
        ("endless", Way::Endless("application/json")),
    ];
    let mut said = String::new();
    for (name, first) in ways {
        let nature = Nature { first: Some(first), ..Nature::that(Way::Well) };
        let server = Server::new(nature);
        let fault = http(&server.url, Vec::new()).list(None).await.unwrap_err();
        said += &format!("{name}: {fault:?}\n");
    }
    let fault = http("http://127.0.0.1:1/mcp", Vec::new()).list(None).await.unwrap_err();
    said += &format!("nobody: {fault:?}\n");
    expect![[r#"
        hangs up: NotAsked { detail: "the connection broke: connection closed before message completed" }
        no JSON: NotAsked { detail: "the answer is not of the protocol" }
        a page: NotAsked { detail: "the answer is neither JSON nor a stream of events" }
        redirect: NotAsked { detail: "the server points to another address (HTTP 307), which is not followed; configure that address" }
        no credentials: NotAsked { detail: "the server does not accept the credentials (HTTP 401); see `token_env` in its configuration" }
        broken: NotAsked { detail: "the server answered with HTTP 503" }
        endless: NotAsked { detail: "the answer has more than 16777216 bytes" }
        nobody: NotAsked { detail: "the server can't be reached: Connection refused (os error 111)" }
    "#]].assert_eq(&said);
}

#[tokio::test]
async fn a_list_has_an_end() {
    let endless = Nature { pages: true, ..Nature::that(Way::Well) };
    let fault = http(&Server::new(endless).url, Vec::new()).list(None).await.unwrap_err();
    let many = (0..200).map(|n| (format!("t{n}"), String::new())).collect();
    let many = Nature { tools: many, ..Nature::that(Way::Well) };
    let other = http(&Server::new(many).url, Vec::new()).list(None).await.unwrap_err();
    let long = Nature::new(&[("a", &"x".repeat(3 << 20)), ("b", &"y".repeat(3 << 20))]);
    let long = http(&Server::new(long).url, Vec::new()).list(None).await.unwrap_err();
    let other = format!("{other:?}\n{long:?}");
    expect![[r#"
        NotAsked { detail: "the server's list of tools has more than 32 pages" }
        NotAsked { detail: "the server has more than 128 tools" }
        NotAsked { detail: "the server says more than 4194304 bytes of its tools" }
    "#]]
    .assert_eq(&format!("{fault:?}\n{other}\n"));
    // Of two of one name the first counts: a later one can't take its place.
    let twice = Nature::new(&[("note", "first"), ("note", "second")]);
    let listed = http(&Server::new(twice).url, Vec::new()).list(None).await.unwrap();
    let said: Vec<_> = listed.tools.iter().map(|it| it.description.as_str()).collect();
    assert_eq!(said, ["first"]);
}

/// Names are pasted into commands and written into rules.
#[tokio::test]
async fn a_name_that_is_none_is_left_out_and_counted() {
    let long = "x".repeat(129);
    let names =
        ["note", "", "a b", "a;rm -rf ~", "a\nb", "a\tb", "$(id)", "caf\u{e9}", &long, "a.b-c_9"];
    let tools: Vec<_> = names.iter().map(|name| (*name, "Does it.")).collect();
    let listed = http(&Server::new(Nature::new(&tools)).url, Vec::new()).list(None).await.unwrap();
    let kept: Vec<_> = listed.tools.iter().map(|it| it.tool.as_str()).collect();
    assert_eq!((kept, listed.left_out), (vec!["note", "a.b-c_9"], 8));
}

/// A long list of tools that all have one name, and one name that is too long.
#[tokio::test]
async fn a_list_is_given_up_with_the_first_tool_that_is_too_much() {
    let same = vec![("note".to_owned(), String::new()); 1_000];
    let same = Nature { tools: same, ..Nature::that(Way::Well) };
    let fault = http(&Server::new(same).url, Vec::new()).list(None).await.unwrap_err();
    let long = Nature::new(&[(&"n".repeat(5 << 20), "")]);
    let long = http(&Server::new(long).url, Vec::new()).list(None).await.unwrap_err();
    expect![[r#"
        NotAsked { detail: "the server has more than 128 tools" }
        NotAsked { detail: "the server says more than 4194304 bytes of its tools" }
    "#]]
    .assert_eq(&format!("{fault:?}\n{long:?}\n"));
}

/// From its connection to its answer a call has one time limit, whatever the server holds up.
#[tokio::test]
async fn a_call_ends_in_its_time_wherever_it_hangs() {
    let server = Server::new(Nature::that(Way::Well));
    let digest = http(&server.url, Vec::new()).list(None).await.unwrap().tools[0].digest();
    server.becomes(|nature| nature.first = Some(Way::Hang));
    let fresh = http(&server.url, Vec::new());
    let fault = calling(&fresh, "note", "{}", 200, &digest).await.unwrap_err();
    expect![[r#"NotAsked { detail: "the server could not be asked within 200 ms" }"#]]
        .assert_eq(&format!("{fault:?}"));
    assert_eq!(server.calls(), 0);
    server.becomes(|nature| nature.first = None);
    calling(&fresh, "note", "{}", 30_000, &digest).await.unwrap();
}

/// It asks for more and more, and does not take the answers.
#[tokio::test]
async fn a_flood_of_requests_ends_the_connection() {
    let server = Server::new(Nature::that(Way::Flood));
    let fault = call(&http(&server.url, Vec::new()), "note", "{}", 60_000).await.unwrap_err();
    expect![[r#"MayHaveHappened { detail: "the connection ended before the answer" }"#]]
        .assert_eq(&format!("{fault:?}"));
    assert_eq!(server.calls(), 1);
}
