//! The second reading: tree-sitter's grammar of bash.
//!
//! Owns the walk over its tree, which yields nothing but where words stand and what they
//! are to their commands. Must never be trusted alone: the grammar repairs what it does
//! not know, and takes some words apart without saying so.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, ParseState, Parser};

use crate::limits::{DEPTH_MAX, NODES_MAX, PROGRESS_MAX};
use crate::syntax::{Role, Span};

/// Every word with what it is to its command; nothing if the grammar does not know the
/// text or takes too long.
pub(crate) fn roles(text: &str) -> Option<BTreeSet<(Span, Role)>> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let mut left = PROGRESS_MAX;
    let mut progress = |_: &ParseState| {
        left = left.saturating_sub(1);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    // The grammar's scanner hands characters of any number to `isdigit`, which reads beyond
    // its table for those that are no bytes: `{` before a pictograph ends the process. What is no
    // ASCII is a part of words and never of names, as a dot is, so dots stand in for it,
    // byte for byte.
    let bytes: Vec<u8> =
        text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'.' }).collect();
    let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut read, None, Some(options))?;
    if tree.root_node().has_error() {
        return None;
    }
    walk(tree.root_node())
}

fn walk(root: Node<'_>) -> Option<BTreeSet<(Span, Role)>> {
    let mut roles = BTreeSet::new();
    let mut cursor = root.walk();
    let (mut seen, mut depth) = (0, 0);
    loop {
        seen += 1;
        if seen > NODES_MAX {
            return None;
        }
        note(cursor.node(), &mut roles)?;
        if cursor.goto_first_child() {
            depth += 1;
            if depth > DEPTH_MAX * 16 {
                return None;
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(roles);
            }
            depth -= 1;
        }
    }
}

fn span(node: Node<'_>) -> Span {
    (node.start_byte(), node.end_byte())
}

/// Notes the words that a node has of its own. Nothing if it is of a kind that the other
/// reader does not know.
fn note(node: Node<'_>, roles: &mut BTreeSet<(Span, Role)>) -> Option<()> {
    let mut field = |name: &str, role: Role| {
        let mut cursor = node.walk();
        for child in node.children_by_field_name(name, &mut cursor) {
            roles.insert((span(child), role));
        }
    };
    match node.kind() {
        "command" => {
            field("name", Role::Name);
            field("argument", Role::Argument);
        }
        "for_statement" => field("value", Role::Argument),
        "function_definition" => field("name", Role::Function),
        "case_statement" => field("value", Role::Argument),
        "heredoc_redirect" => field("argument", Role::Argument),
        "test_command" => {
            roles.insert((span(node), Role::Test));
        }
        "c_style_for_statement" => {
            roles.insert(((node.start_byte(), node.start_byte()), Role::Arithmetic));
        }
        "compound_statement" if node.child(0).is_some_and(|first| first.kind() == "((") => {
            roles.insert(((node.start_byte(), node.start_byte()), Role::Arithmetic));
        }
        "file_redirect" => {
            let mut cursor = node.walk();
            // The grammar takes the arguments behind a target for targets as well.
            for (index, word) in node.children_by_field_name("destination", &mut cursor).enumerate()
            {
                let role = if index == 0 { Role::Target } else { Role::Argument };
                roles.insert((span(word), role));
            }
        }
        "herestring_redirect" => {
            let last = node.child_count().checked_sub(1)?;
            roles.insert((span(node.child(last)?), Role::Target));
        }
        "declaration_command" | "unset_command" => {
            let mut cursor = node.walk();
            for (index, child) in node.children(&mut cursor).enumerate() {
                let role = if index == 0 { Role::Name } else { Role::Argument };
                roles.insert((span(child), role));
            }
        }
        "variable_assignment" => {
            let outer = node.parent().map(|parent| parent.kind());
            let whose = match outer? {
                "declaration_command" => return Some(()),
                "c_style_for_statement" => return Some(()),
                _ => Role::Assignment,
            };
            roles.insert((span(node), whose));
        }
        _ => {}
    }
    Some(())
}
