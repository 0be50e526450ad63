//! A Rust file as a flat list of tokens with their lines.
//!
//! Owns lexing, the search for token patterns, and which lines are tests. It
//! sees into macros, where a syntax tree ends, and never into strings. Must
//! never know a rule.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, LineColumn, TokenStream, TokenTree};

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// An identifier's or literal's text, a punctuation character, or a bracket.
    pub(crate) text: String,
    /// From 1.
    pub(crate) line: usize,
}

/// What the lexer saw.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    /// In order of the text; invisible groups leave no bracket.
    pub(crate) tokens: Vec<Token>,
    /// Lines of items that only tests compile.
    pub(crate) tests: Vec<RangeInclusive<usize>>,
    /// Where strings and other literals stand; comments on items are none.
    literals: Vec<(LineColumn, LineColumn)>,
}

impl Lexed {
    /// Lexes a whole file.
    pub(crate) fn new(stream: TokenStream, text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut lexed = Self::default();
        lexed.walk(stream, &lines);
        lexed
    }

    /// The first lines of all places where these tokens stand in a row.
    pub(crate) fn find<'a>(&'a self, pattern: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
        self.tokens
            .windows(pattern.len())
            .filter(move |window| {
                window.iter().zip(pattern).all(|(token, text)| token.text == *text)
            })
            .map(|window| window[0].line)
    }

    /// Whether only tests compile that line.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&line))
    }

    /// The file's lines with every literal blanked: code and comments are left.
    pub(crate) fn without_literals(&self, text: &str) -> Vec<String> {
        let mut lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
        for (start, end) in &self.literals {
            for number in start.line..=end.line {
                let Some(line) = lines.get_mut(number - 1) else { continue };
                let from = if number == start.line { start.column } else { 0 };
                let to = if number == end.line { end.column } else { line.len() };
                let to = to.min(line.len());
                line[from.min(to)..to].fill(' ');
            }
        }
        lines.into_iter().map(String::from_iter).collect()
    }

    fn walk(&mut self, stream: TokenStream, lines: &[&str]) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        for (index, tree) in trees.iter().enumerate() {
            if let [TokenTree::Punct(hash), TokenTree::Group(attribute), rest @ ..] =
                &trees[index..]
                && hash.as_char() == '#'
                && attribute.delimiter() == Delimiter::Bracket
                && is_test_attribute(&attribute.stream())
                && let Some(end) = item_end(rest)
            {
                self.tests.push(hash.span().start().line..=end);
            }
            self.push(tree, lines);
        }
    }

    fn push(&mut self, tree: &TokenTree, lines: &[&str]) {
        let start = tree.span().start();
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                self.add(open, group.span_open().start().line);
                self.walk(group.stream(), lines);
                self.add(close, group.span_close().start().line);
            }
            TokenTree::Ident(ident) => self.add(&ident.to_string(), start.line),
            TokenTree::Punct(punct) => self.add(&punct.as_char().to_string(), start.line),
            TokenTree::Literal(literal) => {
                self.add(&literal.to_string(), start.line);
                // A comment on an item reaches us as `#[doc = "..."]` with the
                // comment's own place; its text stays visible.
                let first = lines.get(start.line - 1).and_then(|l| l.chars().nth(start.column));
                if first != Some('/') {
                    self.literals.push((start, tree.span().end()));
                }
            }
        }
    }

    fn add(&mut self, text: &str, line: usize) {
        if !text.is_empty() {
            self.tokens.push(Token { text: text.to_owned(), line });
        }
    }
}

/// `test`, `x::test`, `cfg(test)`, `cfg(all(test, ...))`; not `cfg(not(test))`.
pub(crate) fn is_test_attribute(attribute: &TokenStream) -> bool {
    let mut path = attribute.clone().into_iter().peekable();
    let mut last = String::new();
    while let Some(TokenTree::Ident(ident)) = path.next() {
        last = ident.to_string();
        while let Some(TokenTree::Punct(_)) = path.peek() {
            path.next();
        }
        if let Some(TokenTree::Group(group)) = path.peek() {
            return last == "test" || (last == "cfg" && names_test(group.stream()));
        }
    }
    last == "test"
}

fn names_test(stream: TokenStream) -> bool {
    let mut negated = false;
    for tree in stream {
        match tree {
            TokenTree::Ident(ident) if ident == "test" => return true,
            TokenTree::Ident(ident) => negated = ident == "not",
            TokenTree::Group(group) if !negated && names_test(group.stream()) => return true,
            _ => negated = false,
        }
    }
    false
}

/// The last line of the item that begins here: its body or its semicolon.
fn item_end(trees: &[TokenTree]) -> Option<usize> {
    trees.iter().find_map(|tree| match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            Some(group.span_close().end().line)
        }
        TokenTree::Punct(punct) if punct.as_char() == ';' => Some(punct.span().end().line),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn lex(text: &str) -> Lexed {
        Lexed::new(text.parse().expect("the fixture lexes"), text)
    }

    #[test]
    fn patterns_are_seen_in_macros_and_not_in_strings() {
        let lexed = lex("fn f() {\n    m! { go!() }\n    let s = \"go!()\";\n    go!();\n}\n");
        assert_eq!(lexed.find(&["go", "!"]).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn test_lines_cover_items_and_their_attributes() {
        let lexed = lex(
            "fn a() {}\n#[cfg(test)]\n#[derive(X)]\nstruct B;\n#[tokio::test]\nasync fn c() {\n}\n#[cfg(not(test))]\nfn d() {}\n#[cfg(all(test, feature = \"x\"))]\nmod e {\n}\n",
        );
        expect!["[2..=4, 5..=7, 10..=12]"].assert_eq(&format!("{:?}", lexed.tests));
        assert!(lexed.is_test(3) && !lexed.is_test(9));
    }

    #[test]
    fn literals_are_blanked_and_comments_stay() {
        let text = "/// doc \"kept\"\nfn f() {\n    let é = \"gone\"; // kept\n    r#\"over\nlines\"#;\n}\n";
        let seen: Vec<String> = lex(text).without_literals(text);
        let seen: Vec<&str> = seen.iter().map(|line| line.trim_end()).collect();
        expect![[r#"
            /// doc "kept"
            fn f() {
                let é =       ; // kept

                   ;
            }"#]]
        .assert_eq(&seen.join("\n"));
    }
}
