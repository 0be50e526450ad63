//! The simulated model: what it says depends on the seed and on how often it has
//! spoken, of a subagent also on its task, and on nothing else, so that a run with crashes can be compared with
//! one without.

use async_trait::async_trait;
use outrigger_agent::{
    Call, Item, ModelFault, Origin, Part, Reply, Stop, ToolKind, ToolSpec, Usage,
};
use outrigger_model::{Description, Error, Frames, Model, ProviderFailure, Request};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::family::{self, Who};
use crate::store::Life;
use crate::tally::Happening;
use crate::witness::Witness;
use crate::{limits, outside_tools};

#[derive(Debug)]
pub(crate) struct SimulatedModel {
    seed: u64,
    description: Description,
    witness: Arc<Witness>,
    /// When it fails is drawn from it, if it ever does.
    mood: Option<Mutex<fastrand::Rng>>,
}

impl SimulatedModel {
    pub(crate) fn new(seed: u64, witness: Arc<Witness>, mood: Option<fastrand::Rng>) -> Self {
        let description = Description {
            name: "simulated".to_owned(),
            provider: "simulated".to_owned(),
            api: "simulated".to_owned(),
            scripted: true,
            context_tokens: 200_000,
            output_tokens_max: 4_000,
        };
        Self { seed, description, witness, mood: mood.map(Mutex::new) }
    }

    fn parts(&self, who: &Who, tools: &[ToolSpec], spoken: u64) -> Vec<Part> {
        let seed = self.seed ^ who.number() ^ spoken.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = fastrand::Rng::with_seed(seed);
        let most = if who.is_below() { limits::REPLIES_BELOW_MAX } else { limits::REPLIES_MAX };
        let last = spoken + 1 >= most || rng.u8(..) < 40;
        let has = |kind| tools.iter().any(|tool| tool.kind == kind);
        let (starts, calls_out) = (has(ToolKind::Subagent), has(ToolKind::Outside));
        let mut parts = vec![Part::Text(format!("reply {spoken}"))];
        if !last || spoken == 0 {
            let count = 1 + rng.u64(..limits::CALLS_MAX);
            let calls = (0..count).map(|index| {
                let word = who.word(spoken, index);
                if starts && rng.u8(..3) == 0 {
                    let (name, arguments) = ("task", family::task(&mut rng, self.seed, &word));
                    return called(&word, name, arguments);
                }
                if calls_out && rng.bool() {
                    let (name, arguments) = outside_tools::call(&mut rng, &word);
                    return called(&word, name, arguments);
                }
                call(&mut rng, &word)
            });
            parts.extend(calls.map(Part::Call));
        }
        parts
    }
}

fn called(word: &str, name: &str, arguments: String) -> Call {
    let id = format!("call_{}", word.replace('.', "_"));
    Call { id, name: name.to_owned(), arguments }
}

/// Every command that changes something appends a word of its own to a log, so
/// that running twice shows.
fn call(rng: &mut fastrand::Rng, of: &str) -> Call {
    let word = format!("w{of}");
    let (name, arguments) = match rng.u8(..13) {
        0..=3 => ("execute", format!(r#"{{"command":"append /workspace/log {word}"}}"#)),
        4 => {
            let ms = rng.u64(1..limits::COMMAND_MS_MAX);
            (
                "execute",
                format!(
                    r#"{{"command":"append /workspace/log {word}; sleep {ms}ms; append /workspace/log {word}-end"}}"#
                ),
            )
        }
        5 => ("execute", r#"{"command":"fail"}"#.to_owned()),
        6 => ("write_file", format!(r#"{{"file_path":"/workspace/{word}","content":"{word}"}}"#)),
        7 => (
            "edit_file",
            r#"{"file_path":"/workspace/seed","old_string":"a","new_string":"ab"}"#.to_owned(),
        ),
        8 => ("read_file", r#"{"file_path":"/workspace/log"}"#.to_owned()),
        9 => ("ls", r#"{"path":"/workspace"}"#.to_owned()),
        10 => ("execute", r#"{"command": "#.to_owned()),
        11 => {
            let ms = rng.u64(1..limits::COMMAND_MS_MAX);
            (
                "execute",
                format!(
                    r#"{{"command":"append /workspace/log {word}; sleep 999","timeout":{ms}}}"#
                ),
            )
        }
        _ => ("teleport", "{}".to_owned()),
    };
    called(of, name, arguments)
}

/// The model as one process reaches it.
#[derive(Debug)]
pub(crate) struct ModelClient {
    pub(crate) model: Arc<SimulatedModel>,
    pub(crate) life: Arc<Life>,
}

#[async_trait]
impl Model for ModelClient {
    fn describe(&self) -> &Description {
        &self.model.description
    }

    async fn reply(&self, request: &Request<'_>, _: &dyn Frames) -> Result<Reply, Error> {
        self.model.reply(request, &self.life).await
    }
}

/// What a provider charges for the rest of a reply: it writes on for a process that died,
/// and stops for one that hangs up.
struct ReplyCharge<'a> {
    witness: &'a Witness,
    session: &'a str,
    tokens: u64,
    life: &'a Life,
    done: bool,
}

impl Drop for ReplyCharge<'_> {
    fn drop(&mut self) {
        if self.done || self.life.is_dead() {
            self.witness.burns(self.session, self.tokens);
        }
    }
}

impl SimulatedModel {
    async fn reply(&self, request: &Request<'_>, life: &Life) -> Result<Reply, Error> {
        let replies = request.items.iter().filter(|item| matches!(item, Item::Reply(_)));
        let spoken = replies.count() as u64;
        let who = Who::of(request.items);
        let wait = fastrand::Rng::with_seed(self.seed.rotate_left(17) ^ spoken ^ who.number())
            .u64(..limits::REPLY_MS_MAX);
        // Every third reply is as long as it may get, and what was said is read again: as
        // much as the engine expects, but for what came from elsewhere.
        let output = |reply| if reply % 3 == 1 { request.output_tokens_max } else { 20 };
        let before = request.items.iter().filter_map(|item| match item {
            Item::Reply(reply) => Some(reply.usage.output_tokens),
            _ => None,
        });
        let input_tokens = 100 + before.sum::<u64>();
        let usage = Usage { input_tokens, output_tokens: output(spoken), ..Usage::default() };
        let fails = self.mood.as_ref().is_some_and(|mood| {
            mood.lock().expect("nobody panics who draws").u8(..) < limits::MODEL_FAILS_OF_256
        });
        // What was sent is charged whether anybody waits for the reply or not.
        let charged = |tokens| if fails { 0 } else { tokens };
        self.witness.asked(request.session, charged(usage.input_tokens));
        let (witness, tokens) = (&*self.witness, charged(usage.output_tokens));
        let mut writing =
            ReplyCharge { witness, session: request.session, tokens, life, done: false };
        tokio::time::sleep(Duration::from_millis(wait)).await;
        writing.done = true;
        drop(writing);
        if fails {
            self.witness.count(Happening::ModelFailed);
            let (provider, message) = ("simulated".to_owned(), "simulated".to_owned());
            // Now and then it takes no more requests, and does later.
            let throttled = spoken % 3 == 2;
            let retry_after_ms = throttled.then_some(0);
            let fault = if throttled { ModelFault::RateLimited } else { ModelFault::Unavailable };
            let cause =
                ProviderFailure { provider, attempts: 1, status: None, message, retry_after_ms };
            return Err(Error::Provider { fault, cause });
        }
        let parts = self.parts(&who, request.tools, spoken);
        let origin = Origin {
            api: "simulated".to_owned(),
            provider: "simulated".to_owned(),
            model: "simulated".to_owned(),
            response_id: None,
        };
        let fingerprint = Reply::fingerprint_of(&parts);
        Ok(Reply { origin, parts, native: Vec::new(), fingerprint, stop: Stop::End, usage })
    }
}
