//! Asks the model.

use outrigger_agent::{
    Amounts, Failure, Item, ModelFault, Outcome, Product, Seq, SessionId, Spec, State, Work,
    pictures,
};
use outrigger_model::{Frame, Frames, PictureBytes, Purpose, Request, sees_pictures};
use outrigger_store::Blobs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::cost::{Attempts, ModelCost};
use crate::driver::session::{Completion, SessionRun};
use crate::{Engine, Feed, LiveOutput, Notice};

pub(super) fn ask(
    engine: &Engine,
    run: &SessionRun,
    effect: Seq,
    work: &Work,
) -> impl Future<Output = Completion> + Send + use<> {
    let request = ModelRequest::of(&run.state, work);
    let (model, blobs) = (Arc::clone(&engine.parts.model), Arc::clone(&engine.parts.blobs));
    let clock = Arc::clone(&engine.parts.clock);
    let cost = ModelCost::of(&run.state, run.state.reserved_for(effect));
    let frames = FrameForwarder {
        feed: engine.feed().clone(),
        session: run.session.clone(),
        effect,
        attempts: Mutex::default(),
    };
    let mut stopping = run.stopping.subscribe();
    async move {
        let pictures = match request.pictures(&*blobs).await {
            Ok(pictures) => pictures,
            Err(error) => {
                let outcome = unreadable(&error);
                return Completion::new(effect, outcome, Amounts::default());
            }
        };
        let request = request.borrowed(frames.session.as_str(), &pictures);
        let since_ms = clock.now_ms();
        let asking = model.reply(&request, &frames);
        let policy = Duration::from_millis(cost.reserved.wall_ms.max(1));
        let replied = tokio::select! {
            biased;
            replied = tokio::time::timeout(policy, asking) => Some(replied),
            _ = stopping.wait_for(|stopping| *stopping) => None,
        };
        let mut attempts = frames.attempts();
        let wall_ms = clock.now_ms().saturating_sub(since_ms).min(cost.reserved.wall_ms);
        let replied = match replied {
            Some(Ok(replied)) => replied,
            Some(Err(_)) => {
                let spent = cost.given_up(&attempts);
                let outcome = too_late(cost.is_short_of_time());
                return Completion::new(effect, outcome, spent).estimated();
            }
            None => {
                let spent = Amounts { wall_ms, ..cost.stopped(&mut attempts) };
                return Completion::new(effect, Outcome::Cancelled, spent).estimated();
            }
        };
        match replied {
            Ok(mut reply) => {
                reply.usage = cost.believed(reply.usage);
                let spent = Amounts { wall_ms, ..cost.replied(&reply.usage, &attempts) };
                let estimated = attempts.were_lost() || ModelCost::is_uncounted(&reply.usage);
                let outcome = Outcome::Done(Product::Reply(Arc::new(reply)));
                Completion { estimated, ..Completion::new(effect, outcome, spent) }
            }
            Err(error) => {
                attempts.lose();
                let spent = Amounts { wall_ms, ..cost.failed(&attempts) };
                let (fault, detail) = (error.fault(), error.detail());
                let retry_after_ms = error.retry_after_ms();
                let outcome = Outcome::Failed(Failure::Model { fault, detail, retry_at_ms: None });
                let estimated = attempts.were_lost();
                Completion { estimated, retry_after_ms, ..Completion::new(effect, outcome, spent) }
            }
        }
    }
}

/// What the model is asked, held apart from the state, which moves on meanwhile.
/// Items are shared, so that this costs a pointer each.
struct ModelRequest {
    spec: Option<Arc<Spec>>,
    items: Vec<Item>,
    output_tokens_max: u64,
    purpose: Purpose,
}

impl ModelRequest {
    fn of(state: &State, work: &Work) -> Self {
        let purpose = match work {
            Work::Compact => Purpose::Compact,
            Work::AskModel | Work::Provision { .. } | Work::CallTool(_) => Purpose::Turn,
        };
        let items = state.request_items(work).into_owned();
        let output_tokens_max = state.output_tokens_max(work);
        Self { spec: state.spec().cloned(), items, output_tokens_max, purpose }
    }

    /// The pictures of it, if the model sees any.
    async fn pictures(&self, blobs: &dyn Blobs) -> Result<PictureBytes, outrigger_store::Error> {
        let mut shown = PictureBytes::new();
        if !self.spec.as_ref().is_some_and(|spec| sees_pictures(&spec.model.name)) {
            return Ok(shown);
        }
        for picture in pictures(&self.items) {
            if !shown.contains_key(&picture.digest) {
                shown.insert(picture.digest.clone(), blobs.get(&picture.digest).await?);
            }
        }
        Ok(shown)
    }

    fn borrowed<'a>(&'a self, session: &'a str, pictures: &'a PictureBytes) -> Request<'a> {
        let spec = self.spec.as_deref();
        Request {
            system: spec.map_or("", |spec| &spec.system),
            tools: spec.map_or(&[], |spec| &spec.tools),
            items: &self.items,
            pictures,
            output_tokens_max: self.output_tokens_max,
            session,
            purpose: self.purpose,
        }
    }
}

/// The end of a call for which a picture could not be had: nobody was asked.
fn unreadable(error: &outrigger_store::Error) -> Outcome {
    let detail = format!("A picture of the conversation can't be read: {error}.");
    Outcome::Failed(Failure::Model { fault: ModelFault::Unavailable, detail, retry_at_ms: None })
}

/// The end of a call that took all the time that was reserved for it: less than a call may
/// take where the budget leaves no more.
fn too_late(short_of_time: bool) -> Outcome {
    if short_of_time {
        return Outcome::Failed(Failure::Budget);
    }
    let detail = "The model did not answer in the longest that a call may take.".to_owned();
    Outcome::Failed(Failure::Model { fault: ModelFault::Unavailable, detail, retry_at_ms: None })
}

/// Passes a model's frames on to who listens, and counts its attempts.
struct FrameForwarder {
    feed: Feed,
    session: SessionId,
    effect: Seq,
    attempts: Mutex<Attempts>,
}

impl FrameForwarder {
    /// The attempts, which are over.
    fn attempts(&self) -> Attempts {
        std::mem::take(&mut self.attempts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Frames for FrameForwarder {
    fn frame(&self, frame: Frame<'_>) {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).saw(&frame);
        if self.feed.is_heard()
            && let Some(output) = shown(frame)
        {
            self.feed.tell(&self.session, || Notice::Live(self.effect, output));
        }
    }
}

/// What a frame is to people; nothing for what is counted alone.
fn shown(frame: Frame<'_>) -> Option<LiveOutput> {
    Some(match frame {
        Frame::Answered { .. } => return None,
        Frame::AttemptStarted { attempt } => LiveOutput::Attempt(attempt),
        Frame::Retrying { wait_ms, reason, .. } => {
            LiveOutput::Retrying { wait_ms, reason: reason.to_owned() }
        }
        Frame::Text { delta, .. } => LiveOutput::Text(delta.to_owned()),
        Frame::Thinking { delta, .. } => LiveOutput::Thinking(delta.to_owned()),
        Frame::ToolArguments { name, .. } => LiveOutput::Calling(name.to_owned()),
    })
}
