//! OpenAI Chat Completions, as OpenAI and many other servers speak it:
//! <https://platform.openai.com/docs/api-reference/chat>.
//!
//! Must never put the message of another provider on this wire, nor drop a field
//! of its own because it is unknown.

mod body;
mod calls;
mod decode;
mod message;

pub(crate) use body::{OWN_FIELDS, body};
pub(crate) use decode::Decoder;
