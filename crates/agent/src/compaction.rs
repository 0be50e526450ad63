//! What takes the place of a conversation that does not fit any more, and what the model is
//! shown when it writes a summary of it.
//!
//! Owns what is never left to a summary: what the session was begun with, the newest task,
//! and which files were written. What is too long of it is cut, with a note that says so.
//! Must never separate a tool call from its result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::conversation::Summary;
use crate::{Author, Call, Item, Message, Part, Reply, Spec, Status, ToolKind, ToolResult, limits};

/// The argument by which tools that write files name one.
const FILE: &str = "file_path";
/// Stands for arguments that a request for a summary does not show.
const ARGUMENTS_LEFT_OUT: &str = r#"{"left_out":"too long for this request"}"#;

/// How much room the conversation has, in bytes: the model's context without what every
/// request carries.
pub(crate) fn room(spec: &Spec, fixed_bytes: u64) -> usize {
    let context = spec.model.context_tokens.saturating_mul(limits::BYTES_PER_TOKEN);
    usize::try_from(context.saturating_sub(fixed_bytes)).unwrap_or(usize::MAX)
}

/// How many words a summary may have when it was asked for so often before, in vain.
fn words(room: usize, attempts: u32) -> usize {
    let most = (room / 4 / limits::SUMMARY_BYTES_PER_WORD).min(limits::SUMMARY_WORDS_MAX);
    (most >> attempts).max(limits::SUMMARY_WORDS_MIN)
}

/// Whether a summary leaves the work its room.
pub(crate) fn is_short(summary: &str, room: usize) -> bool {
    summary.len() <= (room / 4).max(limits::COMPACT_ITEM_BYTES_MIN)
}

/// The conversation after a compaction: what defines the work, and the summary of everything.
pub(crate) fn replace(
    conversation: &[Item],
    summary: &str,
    labels: &BTreeSet<String>,
    spec: &Spec,
    room: usize,
) -> Vec<Item> {
    let mut items = kept(conversation, room / 16);
    let (text, labels) = (summary.into(), labels.clone());
    let files = written(conversation, spec);
    items.push(Item::Summary(Arc::new(Summary { text, labels, files })));
    items
}

/// The conversation where no summary of it came to its end: what defines the work, and the
/// last things that were said and done, as far as there is room.
pub(crate) fn leave_out(
    conversation: &[Item],
    labels: &BTreeSet<String>,
    spec: &Spec,
    room: usize,
) -> Vec<Item> {
    let mut last: Vec<String> = Vec::new();
    let mut left = room / 4;
    for item in conversation.iter().rev() {
        let Some(line) = line(item, left) else { continue };
        let Some(rest) = left.checked_sub(line.len()) else { break };
        left = rest;
        last.push(line);
    }
    last.reverse();
    let text = format!(
        "Most of the conversation was left out, because it did not fit. What is left of it:\n{}",
        last.join("\n")
    );
    replace(conversation, &text, labels, spec, room)
}

/// An item in a line or two; what was summarised before, as far as there is room.
fn line(item: &Item, left: usize) -> Option<String> {
    let said = |who: &str, text: &str| format!("{who}: {}", cut(text, limits::COMPACT_LINE_BYTES));
    Some(match item {
        Item::Reply(reply) => {
            let calls: Vec<&str> = reply.calls().map(|call| call.name.as_str()).collect();
            let called = if calls.is_empty() {
                String::new()
            } else {
                format!(" [called {}]", calls.join(", "))
            };
            said("you", &(reply.text() + &called))
        }
        Item::Result(result) => said(&result.tool, &result.text),
        Item::Summary(summary) => {
            cut(&summary.text, left.saturating_sub(limits::COMPACT_LINE_BYTES))
        }
        Item::Message(_) | Item::Notice(_) => return None,
    })
}

/// What the session was begun with, up to the first task, and the newest task.
fn kept(conversation: &[Item], bytes_max: usize) -> Vec<Item> {
    let messages = conversation.iter().filter_map(|item| match item {
        Item::Message(message) => Some(message),
        Item::Reply(_) | Item::Result(_) | Item::Summary(_) | Item::Notice(_) => None,
    });
    let messages: Vec<&Arc<Message>> = messages.collect();
    let is_task =
        |message: &Message| matches!(message.author, Author::Person(_) | Author::Agent(_));
    let first = messages.iter().position(|message| is_task(message));
    let newest = messages.iter().rposition(|message| is_task(message));
    // Before the first task stands what it is about: guides of a repository, standard input.
    let begun = first.map_or(messages.len(), |first| first);
    let shares = begun.max(1);
    let whole = |message: &Arc<Message>, bytes_max: usize| {
        Item::Message(shorter_message(message, bytes_max.max(limits::COMPACT_ITEM_BYTES_MIN)))
    };
    let begin = messages[..begun].iter().map(|message| whole(message, bytes_max / shares));
    let tasks = first.into_iter().chain(newest.filter(|newest| Some(*newest) != first));
    begin.chain(tasks.map(|at| whole(messages[at], bytes_max))).collect()
}

/// Files that tools wrote, in the order of their names. Of what commands did it knows nothing.
fn written(conversation: &[Item], spec: &Spec) -> BTreeSet<String> {
    let writes = |call: &&Call| {
        let tool = spec.tools.iter().find(|tool| tool.name == call.name);
        tool.is_some_and(|tool| tool.kind == ToolKind::WriteFiles)
    };
    let mut calls: BTreeMap<&str, String> = BTreeMap::new();
    let mut files = BTreeSet::new();
    for item in conversation {
        match item {
            Item::Reply(reply) => {
                let named = |call: &'_ Call| {
                    let arguments: serde_json::Value = serde_json::from_str(call.given()).ok()?;
                    Some(arguments.get(FILE)?.as_str()?.to_owned())
                };
                let of_reply = reply.calls().filter(writes);
                calls =
                    of_reply.filter_map(|call| Some((call.id.as_str(), named(call)?))).collect();
            }
            Item::Result(result) if result.status == Status::Ok => {
                files.extend(calls.remove(result.call.as_str()));
            }
            Item::Summary(summary) => files.extend(summary.files.iter().cloned()),
            Item::Result(_) | Item::Message(_) | Item::Notice(_) => {}
        }
    }
    while files.len() > limits::SUMMARY_FILES_MAX {
        files.pop_last();
    }
    files
}

/// Bytes of text in a conversation.
pub(crate) fn bytes(conversation: &[Item]) -> u64 {
    conversation.iter().map(bytes_of).sum()
}

/// Bytes of text that take as many tokens as an item.
pub(crate) fn bytes_of(item: &Item) -> u64 {
    match item {
        Item::Message(message) => message.bytes(),
        Item::Result(result) => result.text.len() as u64,
        Item::Summary(summary) => summary.bytes(),
        Item::Notice(text) => text.len() as u64,
        Item::Reply(reply) => reply.bytes(),
    }
}

/// The conversation for the request that asks for a summary. The first time it is as the
/// provider has it in its cache; when that came to nothing, shorter and shorter.
#[must_use]
pub(crate) fn ask(conversation: &[Item], room: usize, attempts: u32) -> Vec<Item> {
    if attempts == 0 {
        return conversation.to_vec();
    }
    let by = attempts.saturating_sub(1).saturating_mul(2).min(usize::BITS - 1);
    let of = |most: usize| (most >> by).max(limits::COMPACT_ITEM_BYTES_MIN);
    let (result, message) =
        (of(limits::COMPACT_RESULT_BYTES_MAX), of(limits::COMPACT_MESSAGE_BYTES_MAX));
    let shorter: Vec<Item> =
        conversation.iter().map(|item| shorten(item, result, message)).collect();
    let mut left = (room >> attempts.min(usize::BITS - 1)) as u64;
    let fits = |item: &&Item| {
        let rest = left.checked_sub(bytes_of(item));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let newest = shorter.iter().rev().take_while(fits).count();
    let mut from = shorter.len() - newest;
    // A result without its call is refused by providers.
    while matches!(shorter.get(from), Some(Item::Result(_))) {
        from += 1;
    }
    let mut items = if from > 0 { kept(&shorter[..from], message) } else { Vec::new() };
    items.extend_from_slice(&shorter[from..]);
    let words = words(room, attempts);
    let text = format!("There is little room for the summary: write at most {words} words.");
    items.push(Item::Notice(text.into()));
    items
}

fn shorten(item: &Item, result_max: usize, message_max: usize) -> Item {
    match item {
        Item::Result(result) if result.text.len() > result_max => {
            let text = cut(&result.text, result_max);
            Item::Result(Arc::new(ToolResult { text, ..ToolResult::clone(result) }))
        }
        Item::Message(message) => Item::Message(shorter_message(message, message_max)),
        Item::Reply(reply) if reply.bytes() > message_max as u64 => {
            Item::Reply(Arc::new(shorter_reply(reply, result_max, message_max)))
        }
        Item::Result(_) | Item::Reply(_) | Item::Summary(_) | Item::Notice(_) => item.clone(),
    }
}

/// Of pictures their names are left.
fn shorter_message(message: &Arc<Message>, bytes_max: usize) -> Arc<Message> {
    if message.text.len() <= bytes_max && message.pictures.is_empty() {
        return Arc::clone(message);
    }
    let names = message.pictures.iter().map(|picture| format!("[picture {}]\n", picture.name));
    let text = names.collect::<String>() + &cut(&message.text, bytes_max);
    Arc::new(Message::new(message.author.clone(), text))
}

/// Without the provider's own items, which are whole or nothing.
fn shorter_reply(reply: &Reply, arguments_max: usize, text_max: usize) -> Reply {
    let parts = reply.parts.iter().filter_map(|part| match part {
        Part::Text(text) if text.len() > text_max => Some(Part::Text(cut(text, text_max))),
        Part::Call(call) if call.arguments.len() > arguments_max => {
            let arguments = ARGUMENTS_LEFT_OUT.to_owned();
            Some(Part::Call(Call { arguments, ..call.clone() }))
        }
        Part::Text(_) | Part::Call(_) => Some(part.clone()),
        Part::Thinking(_) | Part::Opaque(_) => None,
    });
    Reply { parts: parts.collect(), native: Vec::new(), ..reply.clone() }
}

fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let half = bytes_max / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    format!(
        "{}\n[... {} bytes left out; the journal of the session has them ...]\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
}
