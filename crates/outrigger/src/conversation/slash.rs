//! What a person asks of the conversation itself, by a word that begins with a slash.

use anstyle::Style;
use std::num::NonZeroU64;

use crate::network::Words;
use crate::show::row::Row;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slash {
    Diff,
    /// Whether what programs run by themselves is accepted with it.
    Apply(Hazards),
    Branch,
    Undo,
    /// The one that the next session begins with, or which it is now.
    Model(Option<String>),
    /// What the session may reach as well, or what it may reach now.
    Net(Option<Words>),
    Cost,
    Compact,
    Fork,
    Rewind(Option<NonZeroU64>),
    /// Lists them, or goes on with one.
    Sessions(Option<String>),
    New,
    Help,
    Quit,
}

/// Whether changes that do more than lie there are written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hazards {
    Refused,
    Accepted,
}

/// The words, and what they do.
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("/diff", "show what changed in the sandbox"),
    ("/apply", "write the changes back into the directory; `/apply all` also what programs obey"),
    ("/branch", "make the commits in the sandbox a branch of the directory's repository"),
    ("/undo", "take back what /apply wrote last"),
    ("/model", "show the model; with a name, ask that one from now on"),
    ("/net", "show what commands may reach; with `packages`, `git` or a host, allow that too"),
    ("/cost", "show what the session spent"),
    ("/compact", "have all of it summarised before the next answer; say how full the context is"),
    ("/fork", "go on in a copy of this session, from where it stands"),
    ("/rewind", "go back to before the last turn; with a number, to that checkpoint"),
    ("/sessions", "list sessions; with a name, go on with that one"),
    ("/new", "begin another session with the directory as it is now"),
    ("/help", "show this"),
    ("/quit", "leave; the session stays"),
];

impl Slash {
    /// Reads a line. Nothing where it is no command; an error where it is an unknown one.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, String>> {
        let text = text.trim();
        let mut words = text.split_whitespace();
        let first = words.next().filter(|word| word.starts_with('/'))?;
        // A path is something to say.
        if first[1..].contains('/') || text.contains('\n') {
            return None;
        }
        let rest = words.collect::<Vec<_>>().join(" ");
        let argument = (!rest.is_empty()).then_some(rest);
        let unknown = || format!("there is no {first}; /help lists what there is");
        let plain = |command: Self| match &argument {
            None => Ok(command),
            Some(more) => Err(format!("{first} takes nothing more than its name, not `{more}`")),
        };
        Some(match first {
            "/diff" => plain(Self::Diff),
            "/apply" => match argument.as_deref() {
                None => Ok(Self::Apply(Hazards::Refused)),
                Some("all") => Ok(Self::Apply(Hazards::Accepted)),
                Some(_) => Err("it is /apply, or /apply all".to_owned()),
            },
            "/branch" => plain(Self::Branch),
            "/undo" => plain(Self::Undo),
            "/model" => Ok(Self::Model(argument)),
            "/net" => argument.map(|words| parse_net(&words)).transpose().map(Self::Net),
            "/cost" => plain(Self::Cost),
            "/compact" => plain(Self::Compact),
            "/fork" => plain(Self::Fork),
            "/rewind" => match argument.map(|place| place.parse()) {
                None => Ok(Self::Rewind(None)),
                Some(Ok(place)) => Ok(Self::Rewind(Some(place))),
                Some(Err(_)) => {
                    Err("a checkpoint is a number: `outrigger sessions checkpoints` lists them"
                        .to_owned())
                }
            },
            "/sessions" | "/resume" => Ok(Self::Sessions(argument)),
            "/new" | "/clear" => plain(Self::New),
            "/help" => plain(Self::Help),
            "/quit" | "/exit" => plain(Self::Quit),
            _ => Err(unknown()),
        })
    }
}

fn parse_net(words: &str) -> Result<Words, String> {
    Words::parse(&words.split_whitespace().collect::<Vec<_>>())
}

/// What can be done.
pub(super) fn help() -> Vec<Row> {
    let mut rows = vec![Row::default()];
    let keys = [
        ("Enter", "send; while it works, the model hears it at its next step"),
        ("Tab", "while it works: say it after the turn"),
        ("Alt-Enter, Ctrl-J", "begin a line"),
        ("Esc", "stop the step that is under way"),
        ("Ctrl-C", "give up the text, or stop; twice leaves"),
        ("Ctrl-O", "show all of the last output"),
        ("Up, Down", "what was written before"),
        ("@", "name a file of the directory"),
    ];
    let all = WORDS.iter().chain(&keys);
    rows.extend(all.map(|(name, what)| {
        Row::new(Style::new().bold(), &format!("  {name:<18}")).with(Style::new(), what)
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_slash_are_commands_and_paths_are_not() {
        for (text, expected) in [
            ("hello /diff", None),
            ("/etc/hosts is wrong", None),
            ("/diff\nmore", None),
            (" /diff ", Some(Ok(Slash::Diff))),
            ("/apply all", Some(Ok(Slash::Apply(Hazards::Accepted)))),
            ("/rewind 12", Some(Ok(Slash::Rewind(NonZeroU64::new(12))))),
            ("/model claude", Some(Ok(Slash::Model(Some("claude".to_owned()))))),
        ] {
            assert_eq!(Slash::parse(text), expected, "{text}");
        }
        for wrong in ["/nothing", "/diff x", "/apply some", "/rewind back"] {
            assert!(matches!(Slash::parse(wrong), Some(Err(_))), "{wrong}");
        }
        for (word, _) in WORDS {
            assert!(matches!(Slash::parse(word), Some(Ok(_))), "{word}");
        }
    }
}
