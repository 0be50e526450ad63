//! Asks the model.

use outrigger_agent::{
    Amounts, Failure, Item, Outcome, Product, Seq, SessionId, Spec, State, Work,
};
use outrigger_model::{Frame, Frames, Purpose, Request};
use std::sync::Arc;

use crate::live::{Completed, Live};
use crate::{Engine, Feed, LiveOutput, Notice};

impl Engine {
    pub(super) fn ask_model(
        &self,
        live: &Live,
        effect: Seq,
        work: &Work,
    ) -> impl Future<Output = Completed> + Send + use<> {
        let question = Question::of(&live.state, work);
        let model = Arc::clone(&self.parts.model);
        let frames = Told { feed: self.feed().clone(), session: live.session.clone(), effect };
        async move {
            let request = question.request(frames.session.as_str());
            let (outcome, tokens) = match model.reply(&request, &frames).await {
                Ok(reply) => {
                    let tokens = reply.usage.input_tokens + reply.usage.output_tokens;
                    (Outcome::Done(Product::Reply(Arc::new(reply))), tokens)
                }
                Err(error) => {
                    let detail = error.detail();
                    let fault = error.fault();
                    (Outcome::Failed(Failure::Model { fault, detail }), 0)
                }
            };
            Completed::new(effect, outcome, Amounts { steps: 1, tokens })
        }
    }
}

/// What the model is asked, held apart from the state, which moves on meanwhile.
/// Items are shared, so that this costs a pointer each.
struct Question {
    spec: Option<Arc<Spec>>,
    items: Vec<Item>,
    purpose: Purpose,
}

impl Question {
    fn of(state: &State, work: &Work) -> Self {
        let purpose = match work {
            Work::Compact => Purpose::Compact,
            Work::AskModel | Work::Provision { .. } | Work::CallTool(_) => Purpose::Turn,
        };
        let items = state.request_items(work).into_owned();
        Self { spec: state.spec().cloned(), items, purpose }
    }

    fn request<'a>(&'a self, session: &'a str) -> Request<'a> {
        let spec = self.spec.as_deref();
        Request {
            system: spec.map_or("", |spec| &spec.system),
            tools: spec.map_or(&[], |spec| &spec.tools),
            items: &self.items,
            output_tokens_max: spec.map_or(1, |spec| spec.model.output_tokens_max),
            session,
            purpose: self.purpose,
        }
    }
}

/// Passes a model's frames on to who listens.
struct Told {
    feed: Feed,
    session: SessionId,
    effect: Seq,
}

impl Frames for Told {
    fn frame(&self, frame: Frame<'_>) {
        self.feed.tell(&self.session, || {
            let live = match frame {
                Frame::AttemptStarted { attempt } => LiveOutput::Attempt(attempt),
                Frame::Retrying { wait_ms, reason, .. } => {
                    LiveOutput::Retrying { wait_ms, reason: reason.to_owned() }
                }
                Frame::Text { delta, .. } => LiveOutput::Text(delta.to_owned()),
                Frame::Thinking { delta, .. } => LiveOutput::Thinking(delta.to_owned()),
                Frame::ToolArguments { name, .. } => LiveOutput::Calling(name.to_owned()),
            };
            Notice::Live(self.effect, live)
        });
    }
}
