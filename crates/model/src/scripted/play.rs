//! Plays a script: chooses the turn that fits a request, and replies with it.
//!
//! Must never remember anything between requests.

use async_trait::async_trait;
use outrigger_agent::{Author, Call, Item, Origin, Part, Price, Reply, Stop, ToolResult, Usage};
use std::time::Duration;

use super::file::{Error, Turn, When, WrittenPrice, read};
use super::unmatched::UnmatchedRequest;
use crate::limits::SCRIPT_EXCERPT_BYTES_MAX;
use crate::{Description, Frame, Frames, Model, Purpose, Request};

/// Name of the wire and of the provider in what a script says.
pub const API: &str = "scripted";
/// What every scripted text begins with.
pub const MARK: &str = "[scripted]";

/// A model that plays a script.
#[derive(Debug)]
pub struct ScriptedModel {
    description: Description,
    summary: String,
    price: Option<Price>,
    turns: Vec<Turn>,
}

impl ScriptedModel {
    /// Reads a script, in the format that this module describes.
    ///
    /// # Errors
    /// What is wrong with it, and in which turn.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (file, turns) = read(text)?;
        let description = Description {
            name: file.name,
            provider: API.to_owned(),
            api: API.to_owned(),
            scripted: true,
            context_tokens: file.context_tokens,
            output_tokens_max: file.output_tokens_max,
        };
        let price = file.price.map(WrittenPrice::ready).transpose()?;
        Ok(Self { description, summary: file.summary, price, turns })
    }

    /// What its tokens cost, if the script says so.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        self.price
    }

    fn reply_of(&self, parts: Vec<Part>, usage: Usage) -> Reply {
        Reply {
            origin: Origin {
                api: API.to_owned(),
                provider: API.to_owned(),
                model: self.description.name.clone(),
                response_id: None,
            },
            fingerprint: Reply::fingerprint_of(&parts),
            parts,
            native: Vec::new(),
            stop: Stop::End,
            usage,
        }
    }

    fn choose(&self, scene: &Scene<'_>) -> Result<&Turn, UnmatchedRequest> {
        self.turns.iter().find(|turn| turn.when.holds(scene)).ok_or_else(|| UnmatchedRequest {
            script: self.description.name.clone(),
            turn: scene.turn,
            message: excerpt(scene.message),
            results: scene.results.iter().map(|result| excerpt(&result.text)).collect(),
        })
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn describe(&self) -> &Description {
        &self.description
    }

    async fn reply(
        &self,
        request: &Request<'_>,
        frames: &dyn Frames,
    ) -> Result<Reply, crate::Error> {
        frames.frame(Frame::AttemptStarted { attempt: 1 });
        if request.purpose == Purpose::Compact {
            let parts = vec![Part::Text(format!("{MARK} {}", self.summary))];
            let usage = estimate(request, &parts);
            return Ok(self.reply_of(parts, usage));
        }
        let scene = Scene::of(request.items);
        let turn = self.choose(&scene)?;
        if turn.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(turn.delay_ms)).await;
        }
        let parts = turn.parts(scene.turn);
        show(&parts, frames);
        let usage = match turn.tokens {
            Some(tokens) => Usage {
                input_tokens: tokens.input_tokens,
                output_tokens: tokens.output_tokens,
                ..Usage::default()
            },
            None => estimate(request, &parts),
        };
        Ok(self.reply_of(parts, usage))
    }
}

/// What a turn is chosen by.
struct Scene<'a> {
    turn: usize,
    message: &'a str,
    results: Vec<&'a ToolResult>,
}

impl<'a> Scene<'a> {
    fn of(items: &'a [Item]) -> Self {
        let replies = items.iter().filter(|item| matches!(item, Item::Reply(_))).count();
        let message = items.iter().rev().find_map(|item| match item {
            Item::Message(message) => match message.author {
                Author::Person(_) | Author::Agent(_) => Some(message.text.as_str()),
                Author::Untrusted(_) | Author::Trusted(_) => None,
            },
            _ => None,
        });
        let since = items.iter().rposition(|item| matches!(item, Item::Reply(_)));
        let results = items[since.map_or(0, |at| at + 1)..].iter().filter_map(|item| match item {
            Item::Result(result) => Some(&**result),
            _ => None,
        });
        Self { turn: replies + 1, message: message.unwrap_or_default(), results: results.collect() }
    }
}

impl When {
    fn holds(&self, scene: &Scene<'_>) -> bool {
        let any = |fits: &dyn Fn(&str) -> bool| scene.results.iter().any(|r| fits(&r.text));
        self.turn.is_none_or(|turn| turn == scene.turn)
            && self.result_contains.as_ref().is_none_or(|text| any(&|r| r.contains(text)))
            && self.result_matches.as_ref().is_none_or(|pattern| any(&|r| pattern.is_match(r)))
            && self.message_contains.as_ref().is_none_or(|text| scene.message.contains(text))
    }
}

impl Turn {
    fn parts(&self, number: usize) -> Vec<Part> {
        let text = match &self.text {
            Some(text) => format!("{MARK} {text}"),
            None => MARK.to_owned(),
        };
        let calls = self.calls.iter().enumerate().map(|(at, (name, arguments))| {
            let id = format!("call_{number}_{at}");
            Part::Call(Call { id, name: name.clone(), arguments: arguments.clone() })
        });
        let thinking = self.thinking.clone().map(Part::Thinking);
        thinking.into_iter().chain([Part::Text(text)]).chain(calls).collect()
    }
}

fn show(parts: &[Part], frames: &dyn Frames) {
    let mut calls = 0;
    for part in parts {
        match part {
            Part::Text(delta) => frames.frame(Frame::Text { attempt: 1, delta }),
            Part::Thinking(delta) => frames.frame(Frame::Thinking { attempt: 1, delta }),
            Part::Call(Call { id: _, name, arguments: delta }) => {
                frames.frame(Frame::ToolArguments { attempt: 1, call: calls, name, delta });
                calls += 1;
            }
            Part::Opaque(_) => {}
        }
    }
}

/// A token is taken for four bytes, as models have it roughly.
fn estimate(request: &Request<'_>, parts: &[Part]) -> Usage {
    let tokens = |bytes: usize| (bytes / 4) as u64 + 1;
    let input: usize = request
        .items
        .iter()
        .map(|item| match item {
            Item::Message(message) => usize::try_from(message.bytes()).unwrap_or(0),
            Item::Result(result) => result.text.len(),
            Item::Reply(reply) => bytes_of(&reply.parts),
            Item::Summary(summary) => usize::try_from(summary.bytes()).unwrap_or(0),
            Item::Notice(text) => text.len(),
        })
        .sum();
    Usage {
        input_tokens: tokens(input + request.system.len()),
        output_tokens: tokens(bytes_of(parts)),
        ..Usage::default()
    }
}

fn bytes_of(parts: &[Part]) -> usize {
    let bytes = parts.iter().map(|part| match part {
        Part::Text(text) | Part::Thinking(text) | Part::Opaque(text) => text.len(),
        Part::Call(call) => call.name.len() + call.arguments.len(),
    });
    bytes.sum()
}

/// The end of a text, where commands say how they went.
fn excerpt(text: &str) -> String {
    let start = text.len().saturating_sub(SCRIPT_EXCERPT_BYTES_MAX);
    let start = text.ceil_char_boundary(start);
    if start == 0 { text.to_owned() } else { format!("…{}", &text[start..]) }
}
