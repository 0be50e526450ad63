//! What a summary takes the place of, and what the model sees when it writes one.

use std::sync::Arc;

use crate::{Author, Item, Message, ToolResult, limits};

/// The conversation after a compaction: the first and the last thing that a person
/// said, word for word, and the summary of everything.
pub(crate) fn replace(conversation: &[Item], summary: &str) -> Vec<Item> {
    let said = |item: &&Item| match item {
        Item::Message(message) => {
            matches!(message.author, Author::Person(_))
                && message.text.len() <= limits::COMPACT_MESSAGE_BYTES_MAX
        }
        Item::Reply(_) | Item::Result(_) | Item::Summary(_) | Item::Notice(_) => false,
    };
    let first = conversation.iter().find(said);
    let last = conversation.iter().rfind(said).filter(|last| Some(*last) != first);
    let mut items: Vec<Item> = first.into_iter().chain(last).cloned().collect();
    items.push(Item::Summary(summary.into()));
    items
}

/// Bytes of text in a conversation.
pub(crate) fn bytes(conversation: &[Item]) -> u64 {
    let bytes = |item: &Item| match item {
        Item::Message(message) => message.text.len() as u64,
        Item::Result(result) => result.text.len() as u64,
        Item::Summary(text) | Item::Notice(text) => text.len() as u64,
        Item::Reply(reply) => reply.bytes(),
    };
    conversation.iter().map(bytes).sum()
}

/// The conversation for the request that asks for a summary: long results and
/// messages are cut, so that it fits where the whole did not.
#[must_use]
pub(crate) fn shorten(conversation: &[Item]) -> Vec<Item> {
    let shorter = |item: &Item| match item {
        Item::Result(result) if result.text.len() > limits::COMPACT_RESULT_BYTES_MAX => {
            let text = cut(&result.text, limits::COMPACT_RESULT_BYTES_MAX);
            Item::Result(Arc::new(ToolResult { text, ..ToolResult::clone(result) }))
        }
        Item::Message(message) if message.text.len() > limits::COMPACT_MESSAGE_BYTES_MAX => {
            let text = cut(&message.text, limits::COMPACT_MESSAGE_BYTES_MAX);
            Item::Message(Arc::new(Message { text, ..Message::clone(message) }))
        }
        Item::Result(_)
        | Item::Message(_)
        | Item::Reply(_)
        | Item::Summary(_)
        | Item::Notice(_) => item.clone(),
    };
    conversation.iter().map(shorter).collect()
}

fn cut(text: &str, bytes_max: usize) -> String {
    let half = bytes_max / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    format!("{}\n[... {} bytes left out ...]\n{}", &text[..head], tail - head, &text[tail..])
}
