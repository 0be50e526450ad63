//! Reads a line of the fake's shell: a few words of `sh`, so that a script for
//! the fake means the same to a real shell.
//!
//! Simple commands joined by `;`, a line break, `&&` or `||`; quotes; `$NAME`;
//! `>`, `>>` and `>&2`. Anything else is refused by name, never misread.

use std::collections::BTreeMap;

/// Where the output of a command goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Stdout,
    Stderr,
    File { path: String, append: AppendMode },
}

/// Whether a file is begun anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppendMode {
    Yes,
    No,
}

/// When a command runs, by how the one before it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    Succeeded,
    Failed,
}

/// A command with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    pub(super) when: Condition,
    pub(super) words: Vec<String>,
    pub(super) target: Target,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Joint(Condition),
    Into(AppendMode),
    ToStderr,
}

/// The commands of a line.
///
/// # Errors
/// What the fake's shell does not know, in its own words.
pub(super) fn parse(
    line: &str,
    env: &BTreeMap<String, String>,
) -> Result<Vec<SimpleCommand>, String> {
    let mut commands = Vec::new();
    let mut open =
        SimpleCommand { when: Condition::Always, words: Vec::new(), target: Target::Stdout };
    let mut tokens = tokens(line, env)?.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => open.words.push(word),
            Token::ToStderr => open.target = Target::Stderr,
            Token::Into(append) => match tokens.next() {
                Some(Token::Word(path)) => open.target = Target::File { path, append },
                Some(Token::Joint(_) | Token::Into(_) | Token::ToStderr) | None => {
                    return Err("a `>` without a file".to_owned());
                }
            },
            Token::Joint(when) => {
                let next = SimpleCommand { when, words: Vec::new(), target: Target::Stdout };
                commands.push(std::mem::replace(&mut open, next));
            }
        }
    }
    commands.push(open);
    commands.retain(|command| !command.words.is_empty() || command.target != Target::Stdout);
    Ok(commands)
}

fn tokens(line: &str, env: &BTreeMap<String, String>) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        let token = match char {
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|char| *char != '\''));
                continue;
            }
            '"' => {
                let text: String = chars.by_ref().take_while(|char| *char != '"').collect();
                let mut inside = text.chars().peekable();
                let word = word.get_or_insert_default();
                while let Some(char) = inside.next() {
                    if char == '$' {
                        word.push_str(&value(&mut inside, env)?)
                    } else {
                        word.push(char)
                    }
                }
                continue;
            }
            '$' => {
                word.get_or_insert_default().push_str(&value(&mut chars, env)?);
                continue;
            }
            ' ' | '\t' => None,
            ';' | '\n' => Some(Token::Joint(Condition::Always)),
            '&' if chars.next_if_eq(&'&').is_some() => Some(Token::Joint(Condition::Succeeded)),
            '|' if chars.next_if_eq(&'|').is_some() => Some(Token::Joint(Condition::Failed)),
            '>' if chars.next_if_eq(&'>').is_some() => Some(Token::Into(AppendMode::Yes)),
            '>' if chars.next_if_eq(&'&').is_some() => match chars.next() {
                Some('2') => Some(Token::ToStderr),
                _ => return Err("a `>&` to something other than 2".to_owned()),
            },
            '>' => Some(Token::Into(AppendMode::No)),
            '&' | '|' | '<' | '(' | ')' | '{' | '}' | '`' | '\\' | '*' | '#' => {
                return Err(format!("`{char}`"));
            }
            plain => {
                word.get_or_insert_default().push(plain);
                continue;
            }
        };
        tokens.extend(word.take().map(Token::Word));
        tokens.extend(token);
    }
    tokens.extend(word.map(Token::Word));
    Ok(tokens)
}

/// What `$NAME` stands for. `$$` stays as it is, for `kill -9 $$`.
fn value(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    env: &BTreeMap<String, String>,
) -> Result<String, String> {
    if chars.next_if_eq(&'$').is_some() {
        return Ok("$$".to_owned());
    }
    let mut name = String::new();
    while let Some(char) = chars.next_if(|char| char.is_ascii_alphanumeric() || *char == '_') {
        name.push(char);
    }
    if name.is_empty() {
        return Err("a `$` without a name".to_owned());
    }
    Ok(env.get(&name).cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(line: &str, expected: Expect) {
        let env = BTreeMap::from([("NAME".to_owned(), "a b".to_owned())]);
        let shown = match parse(line, &env) {
            Ok(commands) => {
                let one = |c: &SimpleCommand| format!("{:?} {:?} {:?}", c.when, c.words, c.target);
                commands.iter().map(one).collect::<Vec<_>>().join("\n")
            }
            Err(unknown) => format!("unknown: {unknown}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn lines() {
        check("", expect![""]);
        check(
            "echo 'a $NAME' \"b $NAME\"$NAME",
            expect![[r#"Always ["echo", "a $NAME", "b a ba b"] Stdout"#]],
        );
        check(
            "true && echo x >> f; false || exit 3\nkill -9 $$",
            expect![[r#"
            Always ["true"] Stdout
            Succeeded ["echo", "x"] File { path: "f", append: Yes }
            Always ["false"] Stdout
            Failed ["exit", "3"] Stdout
            Always ["kill", "-9", "$$"] Stdout"#]],
        );
        check("echo oops >&2", expect![[r#"Always ["echo", "oops"] Stderr"#]]);
        check("a | b", expect!["unknown: `|`"]);
        check("a & b", expect!["unknown: `&`"]);
        check("echo $(b)", expect!["unknown: a `$` without a name"]);
        check("echo >", expect!["unknown: a `>` without a file"]);
    }
}
