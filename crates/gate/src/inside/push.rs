//! What a push to a repository of git would change.
//!
//! Owns the reading of its commands (gitprotocol-pack(5), "Reference Update Request") before
//! any of them is sent on, and that git says why a push was refused. The pack behind them is not
//! looked at.

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_ENCODING;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::answer::Denial;
use crate::flow::Refusal;
use crate::limits;
use crate::rule::matches;

/// The type of what git is told of a push.
const RESULT: &str = "application/x-git-receive-pack-result";
/// What ends a list of lines.
const END: &[u8; 4] = b"0000";
/// Of a line of the side band, which may have 65,520 with its length.
const SIDE_BAND_BYTES: usize = 65_000;

/// Whether a request pushes.
pub(super) fn is_push(method: &Method, path: &str) -> bool {
    *method == Method::POST && path.ends_with("/git-receive-pack")
}

/// Reads the commands of a push. Gives what was read of it.
///
/// # Errors
/// Where it changes something else than the refs that may be pushed, or deletes one.
pub(super) async fn check(
    head: &Parts,
    body: &mut Incoming,
    refs: &[String],
) -> Result<Vec<Bytes>, Denial> {
    if head.headers.contains_key(CONTENT_ENCODING) {
        return Err(denied("the push is encoded, so that nobody can see what it changes."));
    }
    let mut pieces = Vec::new();
    let mut read = Vec::new();
    loop {
        match commands(&read) {
            Commands::Whole(commands) => {
                let refused = commands.iter().find_map(|command| allowed(command, refs).err());
                let Some(mut denial) = refused else { return Ok(pieces) };
                // git takes no answer before it has sent all.
                if drained(body).await {
                    denial.report = report(&read, &commands, refs).map(|report| (RESULT, report));
                }
                return Err(denial);
            }
            Commands::Unreadable => return Err(denied("the push can't be read.")),
            Commands::More if read.len() > limits::PUSH_COMMANDS_BYTES_MAX => {
                return Err(denied("the push changes more at once than is looked at."));
            }
            Commands::More => {}
        }
        let frame = body.frame().await;
        let data = frame.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
        let data = data.ok_or_else(|| denied("the push ends before it says what it changes."))?;
        read.extend_from_slice(&data);
        pieces.push(data);
    }
}

/// Whether the rest of a body came, which nobody needs, within bounds.
async fn drained(body: &mut Incoming) -> bool {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if bytes > limits::REFUSED_PUSH_BYTES_MAX {
            return false;
        }
    }
    true
}

/// What git shows beside each ref (gitprotocol-pack(5), "Report Status"). `None`: it does not
/// take that.
fn report(read: &[u8], commands: &[Command], refs: &[String]) -> Option<Vec<u8>> {
    // What the client can stands behind the first command.
    let (first, _) =
        read.split_at_checked(usize::from_str_radix(text(read.get(..4)?)?, 16).ok()?)?;
    let abilities = text(first.split(|byte| *byte == 0).nth(1)?)?;
    let can = |words: &[&str]| abilities.split_whitespace().any(|word| words.contains(&word));
    if !can(&["report-status", "report-status-v2"]) {
        return None;
    }
    let mut all = packet(b"unpack ok\n");
    for command in commands {
        let why = allowed(command, refs).err().map(|denial| denial.words);
        let why = why.unwrap_or_else(|| "another ref of the push was refused".to_owned());
        all.extend(packet(
            format!("ng {} {}\n", command.name, why.trim_end_matches('.')).as_bytes(),
        ));
    }
    all.extend(END);
    if can(&["side-band-64k"]) {
        let pieces = all.chunks(SIDE_BAND_BYTES).map(|piece| [&[1], piece].concat());
        all = pieces.flat_map(|piece| packet(&piece)).chain(*END).collect();
    }
    Some(all)
}

/// A line with its length before it.
fn packet(line: &[u8]) -> Vec<u8> {
    [format!("{:04x}", line.len() + 4).as_bytes(), line].concat()
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// One ref and what becomes of it.
#[derive(Debug, PartialEq, Eq)]
struct Command {
    deletes: bool,
    name: String,
}

/// As far as they were read.
#[derive(Debug, PartialEq, Eq)]
enum Commands {
    Whole(Vec<Command>),
    More,
    Unreadable,
}

/// Lines with their lengths before them, until the one that ends them.
fn commands(mut bytes: &[u8]) -> Commands {
    let mut commands = Vec::new();
    loop {
        let Some((prefix, rest)) = bytes.split_at_checked(4) else { return Commands::More };
        let hex = prefix.iter().all(u8::is_ascii_hexdigit);
        let prefix = std::str::from_utf8(prefix).ok().filter(|_| hex);
        let Some(length) = prefix.and_then(|hex| usize::from_str_radix(hex, 16).ok()) else {
            return Commands::Unreadable;
        };
        if length == 0 {
            return Commands::Whole(commands);
        }
        let Some(length) = length.checked_sub(4) else { return Commands::Unreadable };
        let Some((line, rest)) = rest.split_at_checked(length) else { return Commands::More };
        match command(line) {
            Some(Some(command)) => commands.push(command),
            Some(None) => {}
            None => return Commands::Unreadable,
        }
        bytes = rest;
    }
}

/// `OLD NEW NAME`, behind which the first has what the client can, or `shallow ID`. A signed
/// push (`push-cert`) has its commands elsewhere, and is none.
fn command(line: &[u8]) -> Option<Option<Command>> {
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let line = std::str::from_utf8(line).ok()?.trim_end_matches('\n');
    let is_id = |text: &str| {
        matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if let Some(id) = line.strip_prefix("shallow ") {
        return is_id(id).then_some(None);
    }
    let mut words = line.splitn(3, ' ');
    let (old, new, name) = (words.next()?, words.next()?, words.next()?);
    let plain =
        !name.is_empty() && !name.contains(|it: char| it.is_whitespace() || it.is_control());
    if !is_id(old) || !is_id(new) || !plain {
        return None;
    }
    let deletes = new.bytes().all(|byte| byte == b'0');
    Some(Some(Command { deletes, name: name.to_owned() }))
}

fn allowed(command: &Command, refs: &[String]) -> Result<(), Denial> {
    let name = &command.name;
    if command.deletes {
        return Err(denied(&format!("the push would delete {name}.")));
    }
    if refs.iter().any(|pattern| matches(pattern, name)) && !name.contains("..") {
        return Ok(());
    }
    let may = refs.join(", ");
    Err(denied(&format!("the push would change {name}, and the secret is for {may}.")))
}

fn denied(words: &str) -> Denial {
    Denial::new(Refusal::Push, StatusCode::FORBIDDEN, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "0000000000000000000000000000000000000000";
    const NEW: &str = "1234567890123456789012345678901234567890";

    fn line(text: &str) -> String {
        format!("{:04x}{text}", text.len() + 4)
    }

    fn asked(name: &str, new: &str) -> Result<(), String> {
        let text = format!("{}0000PACK", line(&format!("{OLD} {new} {name}\0 report-status\n")));
        let Commands::Whole(commands) = commands(text.as_bytes()) else { panic!("not whole") };
        assert_eq!(commands.len(), 1);
        allowed(&commands[0], &["refs/heads/agent/*".to_owned()]).map_err(|it| it.words)
    }

    #[test]
    fn what_a_push_changes_is_read() {
        asked("refs/heads/agent/fix", NEW).unwrap();
        for name in
            ["refs/heads/main", "refs/tags/v1", "refs/heads/agent", "refs/heads/agent/../main"]
        {
            asked(name, NEW).unwrap_err();
        }
        assert!(asked("refs/heads/agent/fix", OLD).unwrap_err().contains("delete"));
    }

    #[test]
    fn a_push_is_read_from_any_number_of_pieces() {
        let first = line(&format!("{OLD} {NEW} refs/heads/a\0 report-status"));
        let text = format!(
            "{first}{}{}0000",
            line(&format!("shallow {NEW}")),
            line(&format!("{OLD} {NEW} refs/heads/b"))
        );
        for cut in 0..text.len() {
            assert_eq!(commands(&text.as_bytes()[..cut]), Commands::More, "{cut}");
        }
        assert!(matches!(commands(text.as_bytes()), Commands::Whole(all) if all.len() == 2));
        assert_eq!(commands(b"0000"), Commands::Whole(Vec::new()));
    }

    #[test]
    fn git_is_told_why_in_its_own_form() {
        let said = |abilities: &str| {
            let (a, b) = ("refs/heads/main", "refs/heads/agent/x");
            let first = line(&format!("{OLD} {NEW} {a}\0 {abilities}"));
            let read = format!("{first}{}0000", line(&format!("{OLD} {NEW} {b}")));
            let Commands::Whole(commands) = commands(read.as_bytes()) else { panic!("not whole") };
            let report = report(read.as_bytes(), &commands, &["refs/heads/agent/*".to_owned()]);
            report.map(|report| String::from_utf8(report).unwrap())
        };
        assert_eq!(said("atomic"), None);
        let plain = said("report-status atomic").unwrap();
        assert!(plain.starts_with("000eunpack ok\n"), "{plain}");
        assert!(
            plain.contains("ng refs/heads/main the push would change refs/heads/main, and the")
        );
        assert!(plain.ends_with("ng refs/heads/agent/x another ref of the push was refused\n0000"));
        let banded = said("report-status-v2 side-band-64k").unwrap();
        assert_eq!(banded, format!("{}0000", line(&format!("\u{1}{plain}"))));
    }

    #[test]
    fn what_is_no_push_is_refused() {
        for text in [
            "zzzz".to_owned(),
            "0001".to_owned(),
            "+fff".to_owned(),
            line("push-cert\0 x"),
            line(&format!("{OLD} {NEW}")),
            line(&format!("{OLD} {NEW} a b")),
            line(&format!("{OLD} short refs/heads/a")),
        ] {
            assert_eq!(commands(text.as_bytes()), Commands::Unreadable, "{text}");
        }
    }
}
