//! What a model sees of an answer from outside: text, cut in its middle, and names of the
//! rest. Must never give a model what a person who reads the answer does not see.

use outrigger_agent::{HiddenCharPolicy, Status, ToolOutput, visible};

use super::{Block, ToolAnswer, label};
use crate::{cut, output};

/// An answer as the model sees it: at most about `bytes_max` of it, labelled.
#[must_use]
pub fn shown(server: &str, answered: &ToolAnswer, bytes_max: usize) -> ToolOutput {
    let mut whole = String::new();
    for block in &answered.blocks {
        if !whole.is_empty() {
            whole.push('\n');
        }
        match block {
            Block::Text(text) => whole.push_str(text),
            Block::Notice(text) => whole.push_str(&format!("[{text}]")),
            Block::Other { what, bytes } => {
                let what: String = what.chars().take(200).collect();
                whole.push_str(&format!("[{what}, {bytes} bytes, not shown]"));
            }
        }
    }
    let whole = visible(&cut::plain(whole.as_bytes()), HiddenCharPolicy::Removed);
    let (text, hidden_bytes) = cut::middle(&whole, bytes_max, "; ask for less at once");
    let text = if text.is_empty() { "[an answer without content]".to_owned() } else { text };
    let status = if answered.failed { Status::Error } else { Status::Ok };
    ToolOutput { status, hidden_bytes, labels: label(server), ..output::ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cut_named_and_labelled() {
        let text = |text: &str| Block::Text(text.to_owned());
        let image = Block::Other { what: "image/png".to_owned(), bytes: 12 };
        let blocks = vec![
            Block::Notice("Anew.".to_owned()),
            text("one\u{1b}[2J"),
            image,
            text("t\u{200b}w\u{3164}o\u{e0041}"),
        ];
        let all = shown("s", &ToolAnswer { blocks, failed: false }, 1_000);
        assert_eq!(all.text, "[Anew.]\none\n[image/png, 12 bytes, not shown]\ntwo");
        assert_eq!(all.labels.iter().collect::<Vec<_>>(), ["from:mcp:s", "untrusted"]);
        let long = (0..5_000).map(|line| format!("{line}\n")).collect::<String>();
        let cut = shown("s", &ToolAnswer { blocks: vec![text(&long)], failed: true }, 1_000);
        assert_eq!(cut.status, Status::Error);
        assert!(cut.text.len() < 1_100 && cut.text.ends_with("4999\n"), "{}", cut.text);
        assert!(cut.text.starts_with("0\n1\n") && cut.hidden_bytes > 20_000, "{}", cut.text);
        let empty = shown("s", &ToolAnswer { blocks: vec![], failed: false }, 1_000);
        assert_eq!(empty.text, "[an answer without content]");
    }
}
