//! The client of a provider: the same attempts around each of the wires.
//!
//! Owns retries and nothing of a wire. A request is written once and its bytes
//! are shared by all attempts.

use async_trait::async_trait;
use outrigger_agent::{Origin, Reply, Stop, Usage};
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::attempt::{Call, attempt};
use crate::wire::{Answer, CallIds};
use crate::{
    Description, Endpoint, Error, Frame, Frames, HttpClient, Model, Request, RetryPolicy, codec,
    endpoint,
};

/// A model behind an endpoint.
#[derive(Debug)]
pub struct Client {
    http: HttpClient,
    endpoint: Endpoint,
    url: Url,
    headers: HeaderMap,
    description: Description,
    policy: RetryPolicy,
    /// Calls so far: each waits differently.
    calls: AtomicU64,
}

impl Client {
    /// A client of an endpoint. Nothing is sent yet.
    ///
    /// # Errors
    /// What is wrong with the endpoint.
    pub fn new(
        http: HttpClient,
        endpoint: Endpoint,
        policy: RetryPolicy,
    ) -> Result<Self, endpoint::Error> {
        endpoint.check(codec::own_fields(endpoint.api))?;
        let (url, provider) = endpoint.url()?;
        let headers = endpoint.header_map()?;
        let description = Description {
            name: endpoint.model.clone(),
            provider,
            api: endpoint.api.as_str().to_owned(),
            scripted: false,
            context_tokens: endpoint.context_tokens,
            output_tokens_max: endpoint.output_tokens_max,
        };
        let calls = AtomicU64::new(0);
        Ok(Self { http, endpoint, url, headers, description, policy, calls })
    }

    fn request(&self, request: &Request<'_>) -> reqwest::Request {
        let body = codec::body(&self.endpoint, &self.description.provider, request);
        let mut http = reqwest::Request::new(Method::POST, self.url.clone());
        *http.headers_mut() = self.headers.clone();
        *http.body_mut() = Some(body.into());
        http
    }

    fn reply_of(&self, answer: Answer) -> Reply {
        let Answer { response_id, parts, native, stop, usage } = answer;
        Reply {
            origin: Origin {
                api: self.description.api.clone(),
                provider: self.description.provider.clone(),
                model: self.description.name.clone(),
                response_id,
            },
            fingerprint: Reply::fingerprint_of(&parts),
            parts,
            native,
            stop,
            usage,
        }
    }

    /// A provider that refuses before it replies has refused all the same.
    fn refusal(&self, reason: String) -> Reply {
        self.reply_of(Answer {
            response_id: None,
            parts: Vec::new(),
            native: Vec::new(),
            stop: Stop::Refused(reason),
            usage: Usage::default(),
        })
    }
}

#[async_trait]
impl Model for Client {
    fn describe(&self) -> &Description {
        &self.description
    }

    async fn reply(&self, request: &Request<'_>, frames: &dyn Frames) -> Result<Reply, Error> {
        let nth = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut rng = fastrand::Rng::with_seed(self.policy.seed ^ nth.rotate_left(32));
        let http = self.request(request);
        let (api, policy, ids) = (self.endpoint.api, &self.policy, CallIds(rng.u64(..)));
        let call = Call { http: &self.http, api, ids, policy, frames };
        let mut number = 1;
        loop {
            frames.frame(Frame::AttemptStarted { attempt: number });
            let again = http.try_clone().expect("the body is bytes, which are shared");
            let fault = match Box::pin(attempt(call, number, again)).await {
                Ok(answer) => return Ok(self.reply_of(answer)),
                Err(fault) => fault.shown(&self.endpoint),
            };
            if fault.is_refusal {
                return Ok(self.refusal(fault.message));
            }
            let Some(wait_ms) = self.policy.wait_ms(number, fault.retry, &mut rng) else {
                return Err(fault.into_error(&self.description.provider, number));
            };
            frames.frame(Frame::Retrying { attempt: number, wait_ms, reason: &fault.message });
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            number += 1;
        }
    }
}
