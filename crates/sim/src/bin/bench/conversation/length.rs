//! A conversation of 200,000 tokens: whether it is as fast as one that begins.

use super::model::{FakeModel, Reply};
use super::program::Program;
use super::world::World;
use crate::error::Outcome;
use crate::figure::Figure;
use crate::sizes;

pub(super) async fn measure(model: &mut FakeModel) -> Outcome<Vec<Figure>> {
    let world = World::new(model.port)?;
    let (mut program, _) = Program::start(&world).await?;
    // What is sent is the conversation, and what it is sent with.
    for part in 0.. {
        model.answers(Reply::Text(text(part)));
        let (_, bytes, from) = program.ask("Go on, please.", model).await?;
        program.turn_over(from).await?;
        if bytes >= sizes::LONG_TOKENS * sizes::TOKEN_BYTES {
            break;
        }
    }
    let memory = program.memory()?;
    let keys = program.keys(sizes::KEYS).await?;
    let mut sent = Vec::new();
    for _ in 0..sizes::LONG_MESSAGES {
        model.answers(Reply::Text("There it is.".to_owned()));
        let (took, _, from) = program.ask("And this?", model).await?;
        sent.push(took);
        program.turn_over(from).await?;
    }
    program.leave().await?;
    Ok(vec![
        Figure::of("key/200k", "ms", keys),
        Figure::of("message/200k", "ms", sent),
        Figure::of("peak/200k", "MiB", vec![memory.peak]),
        Figure::of("rss/200k", "MiB", vec![memory.now]),
    ])
}

/// Paragraphs as models write them.
fn text(part: usize) -> String {
    let mut text = format!("## Part {part}\n\n");
    for number in 0.. {
        if text.len() >= sizes::LONG_REPLY_BYTES {
            break;
        }
        text.push_str(&format!(
            "{number}. The **journal** holds what was said, and `part {part}` of it is this: \
             a line of prose that goes on for a while and then ends.\n"
        ));
        if number % 8 == 7 {
            text.push_str("\n```rust\nfn f() -> u64 {\n    42\n}\n```\n\n");
        }
    }
    text
}
