//! What came back, in the port's words.

use outrigger_agent::Raw;
use outrigger_tools::outside::{Block, ToolAnswer, ToolDescription};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool};
use serde_json::Value;

/// A tool as its server describes it.
pub(crate) fn described(tool: &Tool) -> ToolDescription {
    let schema = Value::Object((*tool.input_schema).clone()).to_string();
    ToolDescription {
        tool: tool.name.to_string(),
        description: tool.description.as_deref().unwrap_or_default().to_owned(),
        schema: Raw::new(schema).expect("a JSON value is written as JSON"),
    }
}

/// An answer. What is no text is named; where there is no content at all, the structured
/// one is shown as JSON.
pub(crate) fn answered(result: CallToolResult) -> ToolAnswer {
    let failed = result.is_error.unwrap_or(false);
    let mut blocks: Vec<Block> = result.content.into_iter().map(block).collect();
    if let (true, Some(value)) = (blocks.is_empty(), result.structured_content) {
        blocks.push(Block::Text(value.to_string()));
    }
    ToolAnswer { blocks, failed }
}

fn block(content: ContentBlock) -> Block {
    match content {
        ContentBlock::Text(text) => Block::Text(text.text),
        ContentBlock::Image(image) => other(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => other(&audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => Block::Text(text),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.unwrap_or_else(|| "bytes".to_owned());
                other(&format!("{kind} of {uri}"), &blob)
            }
            _ => unknown(),
        },
        ContentBlock::ResourceLink(link) => {
            let bytes = link.size.unwrap_or_default();
            Block::Other { what: format!("a link to {}", link.uri), bytes }
        }
        _ => unknown(),
    }
}

/// Base64 holds three bytes in four characters.
fn other(what: &str, base64: &str) -> Block {
    Block::Other { what: what.to_owned(), bytes: base64.len() as u64 / 4 * 3 }
}

fn unknown() -> Block {
    Block::Other { what: "something of an unknown kind".to_owned(), bytes: 0 }
}
