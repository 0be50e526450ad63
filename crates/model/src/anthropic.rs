//! Anthropic Messages: <https://docs.anthropic.com/en/api/messages> and
//! <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.
//!
//! Must never put the items of another provider on this wire, nor change its own.

mod block;
mod body;
mod decode;

pub(crate) use body::{OWN_FIELDS, body};
pub(crate) use decode::Decoder;
