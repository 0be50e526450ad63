//! The parts of the model's content, each as it came.
//!
//! Pieces of plain text, of which a stream has many, become one part; what carries anything
//! else, such as a signature, stays as it is.

use outrigger_agent::{Part, Raw};

use crate::fault::Fault;
use crate::json::{Object, assembled, quote};
use crate::wire::{CallIds, Delta};

/// Stands for a signature in a call that this model did not write, as its documentation says:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures>.
pub(super) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The parts as far as they have come.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<ContentPart>);

#[derive(Debug)]
enum ContentPart {
    /// Text alone, of the answer or of a thought, which may go on.
    Plain { text: String, is_thought: bool },
    /// Anything else.
    Whole(Object),
}

impl Parts {
    /// Takes the next part of the stream.
    pub(super) fn take(
        &mut self,
        part: Object,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        let is_thought = part.get("thought").is_some_and(|thought| thought.get() == "true");
        let text = part.string("text");
        if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
            sink(if is_thought { Delta::Thinking(text) } else { Delta::Text(text) });
        }
        if let Some(call) = part.get("functionCall") {
            let call = Object::parse(call.get())
                .map_err(|_| Fault::garbled("a call of the stream is no object"))?;
            let index = self.calls().count();
            let name = call.string("name").unwrap_or_default();
            let delta = call.get("args").map_or("", |args| args.get());
            sink(Delta::Arguments { call: index, name: &name, delta });
        }
        let is_plain = part.fields().all(|(name, _)| matches!(name, "text" | "thought"));
        match (text, self.0.last_mut()) {
            (Some(more), Some(ContentPart::Plain { text, is_thought: before }))
                if is_plain && *before == is_thought =>
            {
                text.push_str(&more);
            }
            (Some(text), _) if is_plain => self.0.push(ContentPart::Plain { text, is_thought }),
            _ => self.0.push(ContentPart::Whole(part)),
        }
        Ok(())
    }

    fn calls(&self) -> impl Iterator<Item = Object> {
        self.0.iter().filter_map(|part| match part {
            ContentPart::Whole(object) => Object::parse(object.get("functionCall")?.get()).ok(),
            ContentPart::Plain { .. } => None,
        })
    }

    /// The parts as the provider takes them back, and their canonical form.
    pub(super) fn finish(self, ids: CallIds) -> Result<(Vec<Raw>, Vec<Part>), Fault> {
        let (mut native, mut parts) = (Vec::new(), Vec::new());
        let mut calls = 0;
        for part in self.0 {
            let object = match part {
                ContentPart::Plain { text, .. } if text.is_empty() => continue,
                ContentPart::Plain { text, is_thought } => {
                    let mut object = Object::default();
                    object.set("text", quote(&text));
                    if is_thought {
                        object.set("thought", assembled("true".to_owned()));
                    }
                    object
                }
                ContentPart::Whole(object) => object,
            };
            parts.extend(canonical(&object, ids, &mut calls)?);
            let text = Raw::new(object.text()).expect("put together from parts that are JSON");
            native.push(text);
        }
        Ok((native, parts))
    }
}

/// What is understood of a part. Nothing of a text without a character, which carries a
/// signature.
fn canonical(part: &Object, ids: CallIds, calls: &mut usize) -> Result<Option<Part>, Fault> {
    if let Some(call) = part.get("functionCall") {
        let call = Object::parse(call.get())
            .map_err(|_| Fault::garbled("a call of the stream is no object"))?;
        let name = call.string("name").filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Fault::garbled("a call of the stream has no name"))?;
        let arguments = call.get("args").map_or("{}", |args| args.get());
        let call = ids.call(call.string("id"), *calls, name, arguments);
        *calls += 1;
        return Ok(Some(Part::Call(call)));
    }
    if let Some(text) = part.string("text") {
        let is_thought = part.get("thought").is_some_and(|thought| thought.get() == "true");
        let part = if is_thought { Part::Thinking(text.clone()) } else { Part::Text(text.clone()) };
        return Ok((!text.is_empty()).then_some(part));
    }
    let known = |name: &str| name.starts_with("thought");
    let kind = part.fields().map(|(name, _)| name).find(|name| !known(name));
    Ok(kind.map(|kind| Part::Opaque(kind.to_owned())))
}
