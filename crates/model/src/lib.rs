//! Models: one port, the clients of four wires, and the scripted model.
//!
//! Owns how a conversation is put on a wire and how a stream becomes a reply with
//! nothing of the provider's lost: each item is kept verbatim beside its canonical
//! form, and is given back only to where it came from. Keys are parameters. Must
//! never journal, decide, or read the environment.
//!
//! Read first: [`Model`], [`Client`], [`ScriptedModel`].

#![forbid(unsafe_code)]

mod anthropic;
mod api;
mod attempt;
mod chat;
mod client;
mod codec;
pub mod endpoint;
mod error;
mod fault;
mod gemini;
mod halves;
#[cfg(test)]
mod hard_turn;
mod http;
mod json;
pub mod key;
pub mod limits;
pub mod listing;
mod picture;
mod port;
pub mod prices;
#[cfg(test)]
mod quirks;
mod render;
mod responses;
mod retry_policy;
pub mod scripted;
mod sse;
mod vision;
mod wire;

pub use api::Api;
pub use client::Client;
pub use endpoint::Endpoint;
pub use error::{Error, ProviderFailure};
pub use http::{Gateway, HttpClient, HttpError, PostAnswer, SendError, http};
pub use key::Key;
pub use listing::{ListedModel, list};
pub use picture::PictureBytes;
pub use port::{Description, Frame, Frames, Model, NoFrames, Purpose, Request};
pub use prices::Prices;
pub use retry_policy::RetryPolicy;
pub use scripted::ScriptedModel;
pub use vision::sees_pictures;
