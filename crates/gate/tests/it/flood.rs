//! One sandbox that asks and connects as fast as it can, and another one that goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use outrigger_gate::Scheme;

use crate::support::{Gate, grant, run};
use crate::upstream::{Answer, Authority, Upstream};

/// Of the sandbox that floods, at once: more than it may have.
const FLOODING: usize = 400;
/// Of the other one, each on a connection of its own, one after another.
const ASKED: usize = 40;

#[test]
fn one_sandbox_that_floods_keeps_no_other_one_from_the_outside() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let host = Upstream::start(None, Answer::Echo).await;
        let granted = || vec![grant("127.0.0.1", host.port(), Scheme::Http)];
        let (loud, quiet) =
            (gate.open("loud", granted()).await, gate.open("quiet", granted()).await);
        let request = format!(
            "GET http://127.0.0.1:{0}/ HTTP/1.1\r\nHost: 127.0.0.1:{0}\r\n\r\n",
            host.port()
        );
        let (loud, answered) = (Arc::new(loud), Arc::new(AtomicU32::new(0)));
        let mut flood = tokio::task::JoinSet::new();
        for number in 0..FLOODING {
            let (loud, request, answered) =
                (Arc::clone(&loud), request.clone(), Arc::clone(&answered));
            flood.spawn(async move {
                loop {
                    // Half of them connect anew for each request.
                    let mut connection = loud.connect().await;
                    while connection.ask(&request).await.is_some_and(|reply| reply.status == 200) {
                        answered.fetch_add(1, Relaxed);
                        if number % 2 == 0 {
                            break;
                        }
                    }
                }
            });
        }
        while answered.load(Relaxed) < FLOODING as u32 {
            // poll: until the flood is in full flow
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let before = answered.load(Relaxed);
        for _ in 0..ASKED {
            assert_eq!(quiet.ask(&request).await.unwrap().status, 200);
        }
        assert!(answered.load(Relaxed) > before, "the flood went on meanwhile");
        flood.shutdown().await;
    });
}
