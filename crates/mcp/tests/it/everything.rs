//! Whole calls of a server that is not ours: `@modelcontextprotocol/server-everything`,
//! over HTTP with a session.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;

use outrigger_tools::outside::{Block, Outside, shown};

use crate::installed::program;
use crate::well::{call, http, text};

/// A server that runs until it is dropped.
struct Everything {
    child: Child,
    url: String,
}

impl Everything {
    /// It takes no port of the system's choice, so it gets one that was free just now; if
    /// somebody else took it meanwhile, another.
    fn start() -> Self {
        let program = program();
        for _ in 0..20 {
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut child = Command::new("node")
                .arg(&program)
                .arg("streamableHttp")
                .env("PORT", free.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("this test needs `node`, to run @modelcontextprotocol/server-everything");
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            let listens = lines.any(|line| line.unwrap().contains("listening on port"));
            // What it says later must not fill its pipe.
            thread::spawn(move || lines.for_each(drop));
            let server = Self { child, url: format!("http://127.0.0.1:{free}/mcp") };
            if listens {
                return server;
            }
        }
        panic!("the server never found a free port");
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn a_server_of_others_is_called() {
    let server = Everything::start();
    let http = http(&server.url, Vec::new());
    let listed = http.list(None).await.unwrap().tools;
    let names: Vec<_> = listed.iter().map(|tool| tool.tool.as_str()).collect();
    assert!(names.contains(&"echo") && names.contains(&"get-sum"), "{names:?}");

    let echoed = call(&http, "echo", r#"{"message":"café"}"#, 10_000).await.unwrap();
    assert_eq!(text(&echoed), "Echo: café");
    let sum = call(&http, "get-sum", r#"{"a":2,"b":40}"#, 10_000).await.unwrap();
    assert!(text(&sum).contains("42"), "{sum:?}");

    // What is no text is named and not shown.
    let image = call(&http, "get-tiny-image", "{}", 10_000).await.unwrap();
    let named = |block: &Block| matches!(block, Block::Other { what, bytes } if what == "image/png" && *bytes > 100);
    assert!(image.blocks.iter().any(named), "{image:?}");
    assert!(shown("everything", &image, 10_000).text.contains("[image/png, "));

    // Wrong arguments are the model's to mend.
    let wrong = call(&http, "get-sum", r#"{"a":"x"}"#, 10_000).await.unwrap();
    assert!(wrong.failed, "{wrong:?}");

    // It asks its client for a sample or for words of the person's: neither is offered, so it
    // does not even list the tools that need them.
    assert!(!names.iter().any(|name| name.contains("sampling") || name.contains("elicit")));
}
