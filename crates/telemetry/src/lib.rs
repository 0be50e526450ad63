//! Traces of sessions, made of the events of their journals.
//!
//! Owns how a turn becomes spans, by which names their attributes go (the semantic conventions of
//! OpenTelemetry for generative AI) and how a collector is told them (OTLP in JSON). Pure: a
//! journal gives the same spans, with the same ids, whenever it is looked at. Must never put what
//! people, models and tools say into a span unless it was made to.
//!
//! Read first: [`SessionTrace`], [`Span`].

#![forbid(unsafe_code)]

mod attributes;
mod content;
mod faults;
mod id;
pub mod limits;
mod otlp;
mod span;
mod trace;

pub use id::{SpanContext, SpanId, TraceId};
pub use otlp::{Resource, encode, request};
pub use span::{Operation, Span};
pub use trace::SessionTrace;
