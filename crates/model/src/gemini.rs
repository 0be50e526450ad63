//! Google Gemini, `generateContent`: <https://ai.google.dev/api/generate-content>.
//!
//! Must never put the part of another model on this wire, nor change one of its own: a thought
//! signature is worth something only where it stood.

mod body;
mod decode;
mod part;

pub(crate) use body::{OWN_FIELDS, body};
pub(crate) use decode::Decoder;
