//! Asks the model.

use outrigger_agent::{
    Amounts, Failure, Item, ModelFault, Outcome, Product, Reply, Seq, SessionId, Spec, State, Work,
};
use outrigger_model::{Frame, Frames, Purpose, Request};
use std::sync::Arc;
use std::time::Duration;

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
        let clock = Arc::clone(&self.parts.clock);
        let reserved = live.state.reserved_for(effect);
        let frames = Told { feed: self.feed().clone(), session: live.session.clone(), effect };
        async move {
            let request = question.request(frames.session.as_str());
            let since_ms = clock.now_ms();
            let asking = model.reply(&request, &frames);
            let patience = Duration::from_millis(reserved.wall_ms.max(1));
            let Ok(replied) = tokio::time::timeout(patience, asking).await else {
                // What the provider counted is not known: the worst case is.
                return Completed::new(effect, too_late(), reserved);
            };
            let wall_ms = clock.now_ms().saturating_sub(since_ms).min(reserved.wall_ms);
            let step = Amounts { steps: 1, wall_ms, ..Amounts::default() };
            match replied {
                Ok(reply) => {
                    let spent = Amounts { wall_ms, ..question.cost(&reply, reserved) };
                    Completed::new(effect, Outcome::Done(Product::Reply(Arc::new(reply))), spent)
                }
                Err(error) => {
                    let (fault, detail) = (error.fault(), error.detail());
                    Completed::new(effect, Outcome::Failed(Failure::Model { fault, detail }), step)
                }
            }
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

    /// What a reply cost. Where the provider counts nothing and its tokens cost money, the
    /// worst case stands: an unknown cost is not zero.
    fn cost(&self, reply: &Reply, reserved: Amounts) -> Amounts {
        let price = self.spec.as_ref().and_then(|spec| spec.model.price);
        let usage = &reply.usage;
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        let money_nanos = price.map_or(0, |price| price.nanos(usage));
        match price {
            Some(_) if tokens == 0 => reserved,
            _ => Amounts { steps: 1, tokens, money_nanos, ..Amounts::default() },
        }
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

/// The end of a call that took all the time that was reserved for it.
fn too_late() -> Outcome {
    let detail = "The model did not answer in the time that the budget leaves it.".to_owned();
    Outcome::Failed(Failure::Model { fault: ModelFault::Unavailable, detail })
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
