//! A model that says what it was told to say, one reply after the other.

use async_trait::async_trait;
use outrigger_agent::{Call, Item, Origin, Part, Reply, Stop, Usage};
use outrigger_model::{Description, Error, Frames, Model, Request};
use std::time::Duration;

/// A reply: what it calls, and how long it takes.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    calls: Vec<(String, serde_json::Value)>,
    think_ms: u64,
}

/// A reply that runs this.
pub(crate) fn run(command: &str) -> Step {
    call("execute", serde_json::json!({ "command": command }))
}

/// A reply that calls this.
pub(crate) fn call(tool: &str, arguments: serde_json::Value) -> Step {
    Step { calls: vec![(tool.to_owned(), arguments)], think_ms: 0 }
}

/// A reply that calls all of these.
pub(crate) fn calls(tool: &str, arguments: &[serde_json::Value]) -> Step {
    let calls = arguments.iter().map(|arguments| (tool.to_owned(), arguments.clone()));
    Step { calls: calls.collect(), think_ms: 0 }
}

/// A last word.
pub(crate) fn done() -> Step {
    Step { calls: Vec::new(), think_ms: 0 }
}

impl Step {
    /// A reply that calls all of these.
    pub(crate) fn of(calls: impl IntoIterator<Item = (&'static str, serde_json::Value)>) -> Self {
        let owned = |(tool, arguments): (&str, serde_json::Value)| (tool.to_owned(), arguments);
        Self { calls: calls.into_iter().map(owned).collect(), think_ms: 0 }
    }

    /// Has the model think so long before this step.
    pub(crate) fn after(self, think_ms: u64) -> Self {
        Self { think_ms, ..self }
    }
}

#[derive(Debug)]
pub(crate) struct FakeModel {
    steps: Vec<Step>,
    next: Option<Step>,
    /// What it says in conversations that begin with this.
    elsewhere: Vec<(String, Vec<Step>)>,
    description: Description,
}

impl FakeModel {
    pub(crate) fn new(steps: &[Step]) -> Self {
        let description = Description {
            name: "told".to_owned(),
            provider: "told".to_owned(),
            api: "told".to_owned(),
            scripted: true,
            context_tokens: 200_000,
            output_tokens_max: 1_000,
        };
        Self { steps: steps.to_vec(), next: None, elsewhere: Vec::new(), description }
    }

    /// Whatever was said before, it does this next and is done then.
    pub(crate) fn next(step: Step) -> Self {
        Self { next: Some(step), ..Self::new(&[]) }
    }

    /// Has conversations that begin with one of these texts take these steps instead.
    pub(crate) fn and(self, elsewhere: &[(String, Vec<Step>)]) -> Self {
        Self { elsewhere: elsewhere.to_vec(), ..self }
    }

    fn steps(&self, items: &[Item]) -> &[Step] {
        let begins = |text: &String| match items.first() {
            Some(Item::Message(message)) => message.text.starts_with(text.as_str()),
            _ => false,
        };
        let other = self.elsewhere.iter().find(|(text, _)| begins(text));
        other.map_or(&self.steps, |(_, steps)| steps)
    }
}

#[async_trait]
impl Model for FakeModel {
    fn describe(&self) -> &Description {
        &self.description
    }

    async fn reply(&self, request: &Request<'_>, _: &dyn Frames) -> Result<Reply, Error> {
        let spoken = request.items.iter().filter(|item| matches!(item, Item::Reply(_))).count();
        let step = match (&self.next, request.items.last()) {
            (Some(next), Some(Item::Message(_))) => next.clone(),
            (Some(_), _) => done(),
            (None, _) => self.steps(request.items).get(spoken).cloned().unwrap_or_else(done),
        };
        tokio::time::sleep(Duration::from_millis(step.think_ms)).await; // poll: none; the clock is paused, this is the model thinking
        let mut parts = vec![Part::Text(format!("reply {spoken}"))];
        parts.extend(step.calls.into_iter().enumerate().map(|(index, (name, arguments))| {
            let id = format!("call_{spoken}_{index}");
            // For a tool that needs none, models write nothing at all.
            let arguments = if arguments.is_null() { String::new() } else { arguments.to_string() };
            Part::Call(Call { id, name, arguments })
        }));
        let origin = Origin {
            api: "told".to_owned(),
            provider: "told".to_owned(),
            model: "told".to_owned(),
            response_id: None,
        };
        let usage = Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() };
        let fingerprint = Reply::fingerprint_of(&parts);
        Ok(Reply { origin, parts, native: Vec::new(), fingerprint, stop: Stop::End, usage })
    }
}
