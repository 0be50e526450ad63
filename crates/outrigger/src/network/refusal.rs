//! What came of a sandbox's connections, in words: where to, why not, what would allow it.

use outrigger_agent::EgressFlow;
use outrigger_engine::HostRules;
use outrigger_gate::{Destination, Flow, Refusal};
use outrigger_policy::HostVerdict;

use super::choice::is_registry;
use super::words::PACKAGES;

/// What would allow a place: its word, and what of it.
pub(crate) type Advice = fn(&str, &str) -> String;

/// Where a person is at the command line.
pub(super) fn on_the_command_line(place: &str, what: &str) -> String {
    format!("the person can allow {what} with `--net {place}`, or `/net {place}` in a conversation")
}

/// Where a person made the sandbox.
pub(crate) fn by_hand(place: &str, what: &str) -> String {
    format!("`outrigger sandbox create NAME --net {place}` allows {what}")
}

/// Where an application made the sandbox.
pub(crate) fn over_http(place: &str, what: &str) -> String {
    format!("`{place}` among the words of its `network` allows {what}")
}

/// As the journal has it.
pub(super) fn flow(flow: Flow, rules: Option<&HostRules>, advice: Advice) -> EgressFlow {
    let refusal = flow.refusal.map(|refusal| {
        let unnamed =
            matches!(refusal, Refusal::NotGranted | Refusal::Declined) && !flow.host.is_empty();
        match rules.filter(|_| unnamed).map(|rules| rules.judge(&flow.host, flow.port)) {
            Some(HostVerdict::Forbid(why)) => format!("{} was not reached. {why}", place(&flow)),
            _ => sentence(&flow, refusal, advice),
        }
    });
    let Flow { host, port, grant, requests, sent_bytes, received_bytes, .. } = flow;
    EgressFlow { host, port, grant, refusal, requests, sent_bytes, received_bytes }
}

/// Where to.
fn place(flow: &Flow) -> String {
    match (flow.host.as_str(), flow.port) {
        ("", 0) => "a connection".to_owned(),
        ("", port) => format!("a connection to port {port}"),
        (host, 443 | 80) => host.to_owned(),
        (host, port) => format!("{host}:{port}"),
    }
}

/// What was refused, and what would allow it.
fn sentence(flow: &Flow, refusal: Refusal, advice: Advice) -> String {
    let (place, words) = (place(flow), refusal.words());
    match refusal {
        Refusal::NotGranted if !flow.host.is_empty() => {
            let named = Destination { host: flow.host.clone(), port: flow.port }.words();
            let word = if is_registry(&named) { PACKAGES } else { &place };
            let advice = advice(word, "it");
            format!("{place} was not reached: it is not in the network of this sandbox; {advice}")
        }
        Refusal::Method | Refusal::Path => {
            let path = flow.path.as_deref().unwrap_or("/");
            format!("{place}{path} was not reached: {words}; {}", advice(&place, "all of the host"))
        }
        Refusal::Secret => format!("a request to {place} was blocked: {words}"),
        Refusal::Push => {
            let why = flow.path.as_deref().map_or(words, |why| why.trim_end_matches('.'));
            format!("{place} was not pushed to: {why}")
        }
        Refusal::Rule => {
            format!("{place} was not reached: {}", flow.path.as_deref().unwrap_or(words))
        }
        Refusal::Echo => format!("{place} {words}"),
        _ => format!("{place} was not reached: {words}"),
    }
}
