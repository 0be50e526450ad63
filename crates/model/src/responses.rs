//! OpenAI Responses: <https://platform.openai.com/docs/api-reference/responses>
//! and its streaming events.
//!
//! The provider keeps nothing (`store` is false): reasoning comes back encrypted
//! and is given back as it came. Must never put the items of another provider on
//! this wire, nor change its own.

mod body;
mod decode;
mod item;

pub(crate) use body::{OWN_FIELDS, body};
pub(crate) use decode::Decoder;
