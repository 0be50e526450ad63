//! A server outside with tools. In a concurrent run it hangs, fails, or does what is asked and
//! dies before it answers.

use async_trait::async_trait;
use outrigger_engine::OutsideServer;
use outrigger_tools::outside::{Block, Fault, Outside, OutsideCall, ToolAnswer, ToolListing};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::ledger::Under;
use crate::limits;
use crate::outside_tools::{SERVER, TOOLS, described};
use crate::store::Life;
use crate::tally::Happening;
use crate::witness::Witness;

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
    async fn list(
        &self,
        _: Option<&Arc<dyn outrigger_sandbox::Sandbox>>,
    ) -> Result<ToolListing, Fault> {
        let tools = TOOLS.iter().map(|(tool, _)| described(tool)).collect();
        Ok(ToolListing { tools, left_out: 0 })
    }

    async fn call(&self, call: &OutsideCall<'_>) -> Result<ToolAnswer, Fault> {
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
        Ok(ToolAnswer { blocks, failed: false })
    }
}
