//! A server outside with tools: one that acts, one that acts once for a key however often
//! it is asked, and one that only reads. In a concurrent run it hangs, fails, or does what is asked
//! and dies before it answers.

use async_trait::async_trait;
use outrigger_agent::{Concurrency, Raw, ToolSpec};
use outrigger_engine::OutsideServer;
use outrigger_tools::outside::{
    Answered, Block, Calling, Declared, Fault, Listed, Offer, Outside, ToolDescription,
};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::family;
use crate::ledger::Under;
use crate::limits;
use crate::store::Life;
use crate::tally::Happening;
use crate::witness::Witness;

/// Its name.
const SERVER: &str = "outside";
/// Its tools, and what our configuration says of each.
const TOOLS: [(&str, Declared); 3] =
    [("send", Declared::Acts), ("put", Declared::Idempotent), ("look", Declared::ReadOnly)];

/// Whether a seed's sessions have its tools.
pub(crate) fn has(seed: u64) -> bool {
    family::is_one_of(seed, 53, limits::DESKS_OF_256)
}

fn described(tool: &str) -> ToolDescription {
    let schema = Raw::new(r#"{"type":"object"}"#.to_owned()).expect("it is JSON");
    ToolDescription { tool: tool.to_owned(), description: format!("Does {tool}."), schema }
}

/// Its tools, as a session is opened with them.
pub(crate) fn tools(seed: u64) -> Vec<ToolSpec> {
    if !has(seed) {
        return Vec::new();
    }
    let spec = |(tool, declared): (&str, Declared)| {
        let described = described(tool);
        let offer = Offer {
            server: SERVER,
            described: &described,
            changed: None,
            declared,
            concurrency: Concurrency::Exclusive,
            sandbox: None,
            timeout_ms: limits::DESK_MS_MAX,
        };
        offer.spec().expect("its name and schema are plain")
    };
    TOOLS.into_iter().map(spec).collect()
}

/// A call that a model makes of one of them.
pub(crate) fn call(rng: &mut fastrand::Rng, word: &str) -> (&'static str, String) {
    let name = ["mcp__outside__send", "mcp__outside__put", "mcp__outside__look"][rng.usize(..3)];
    (name, format!(r#"{{"what":"{word}"}}"#))
}

/// Whether a call may be made again after a crash.
pub(crate) fn may_repeat(tool: &str) -> bool {
    tool != "send"
}

/// The way of one process to it.
#[derive(Debug)]
pub(crate) struct ToolServer {
    pub(crate) witness: Arc<Witness>,
    pub(crate) under: Under,
    pub(crate) life: Arc<Life>,
    /// What it does wrong is drawn from it, if anything.
    pub(crate) mood: Option<Mutex<fastrand::Rng>>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sound,
    Refused,
    DiesAfter,
    Hangs,
}

impl ToolServer {
    pub(crate) fn servers(self) -> BTreeMap<String, OutsideServer> {
        let port = Arc::new(self);
        let (timeout_ms, result_bytes_max) = (limits::DESK_MS_MAX, limits::DESK_BYTES_MAX);
        [(SERVER.to_owned(), OutsideServer { port, timeout_ms, result_bytes_max })].into()
    }

    fn fate(&self, what: &str) -> (Fate, u64) {
        let Some(mood) = &self.mood else {
            let number = what.bytes().fold(7, |sum: u64, byte| sum * 31 % 997 + u64::from(byte));
            return (Fate::Sound, number % limits::COMMAND_MS_MAX);
        };
        let mut rng = mood.lock().expect("nobody panics who draws");
        let fate = match rng.u8(..16) {
            0 => Fate::Refused,
            1..4 => Fate::DiesAfter,
            4..7 => Fate::Hangs,
            _ => Fate::Sound,
        };
        (fate, rng.u64(..limits::COMMAND_MS_MAX))
    }

    fn lost(&self, how: Happening) -> Fault {
        self.witness.count(how);
        Fault::MayHaveHappened { detail: "simulated".to_owned() }
    }
}

#[async_trait]
impl Outside for ToolServer {
    async fn list(&self, _: Option<&Arc<dyn outrigger_sandbox::Sandbox>>) -> Result<Listed, Fault> {
        let tools = TOOLS.iter().map(|(tool, _)| described(tool)).collect();
        Ok(Listed { tools, left_out: 0 })
    }

    async fn call(&self, call: &Calling<'_>) -> Result<Answered, Fault> {
        let refused = || Fault::NotAsked { detail: "simulated".to_owned() };
        if self.life.is_dead() {
            return Err(refused());
        }
        let (fate, wait_ms) = self.fate(call.arguments);
        if fate == Fate::Refused {
            return Err(refused());
        }
        // It is on its way now, and done whether anybody waits for an answer or not.
        call.sends.fetch_add(1, Ordering::Relaxed);
        self.witness.called(call, self.under);
        match fate {
            Fate::DiesAfter => return Err(self.lost(Happening::DeskDied)),
            Fate::Hangs => {
                tokio::time::sleep(Duration::from_millis(call.timeout_ms)).await;
                return Err(self.lost(Happening::DeskHung));
            }
            Fate::Sound | Fate::Refused => {}
        }
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        let blocks = vec![Block::Text(format!("done: {}", call.tool))];
        Ok(Answered { blocks, failed: false })
    }
}
