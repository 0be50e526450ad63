//! Makes bytes fit for a model: valid UTF-8, no terminal control, and no more
//! than it should read at once. Pure.

use outrigger_agent::{HiddenCharPolicy, visible};

/// Bytes as a model sees what a terminal would show: invalid UTF-8 is replaced,
/// escape sequences (CSI, OSC and the like) are left out, a carriage return is a
/// line break, and any other control character is shown as its picture.
pub(crate) fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => skip_sequence(&mut chars),
            '\u{9b}' => skip_parameters(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => shown.push('\n'),
            other => shown.push(picture(other)),
        }
    }
    shown
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// What follows an ESC, after ECMA-48: a control sequence, a control string up to
/// its terminator, or a short sequence.
fn skip_sequence(chars: &mut Chars<'_>) {
    match chars.next_if(|char| matches!(char, ' '..='~')) {
        Some('[') => skip_parameters(chars),
        Some(']' | 'P' | 'X' | '^' | '_') => {
            // A string without a terminator ends with its line, so that a lone
            // opener cannot hide what follows.
            while let Some(char) = chars.next_if(|char| *char != '\n') {
                match char {
                    '\u{7}' | '\u{9c}' => return,
                    '\u{1b}' => {
                        chars.next_if_eq(&'\\');
                        return;
                    }
                    _ => {}
                }
            }
        }
        Some(' '..='/') => {
            while chars.next_if(|char| matches!(char, ' '..='/')).is_some() {}
            chars.next_if(|char| matches!(char, '0'..='~'));
        }
        Some(_) | None => {}
    }
}

fn skip_parameters(chars: &mut Chars<'_>) {
    while chars.next_if(|char| matches!(char, ' '..='?')).is_some() {}
    chars.next_if(|char| matches!(char, '@'..='~'));
}

/// A control character as its picture (U+2400 and on), so that it acts on nothing.
fn picture(char: char) -> char {
    match char {
        '\n' | '\t' => char,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(char)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        other => other,
    }
}

/// A line of a file: nothing is left out, control characters are shown as pictures.
/// Gives the text, at most `chars_max` characters of it, and the bytes that were cut.
pub(crate) fn line(bytes: &[u8], chars_max: usize) -> (String, usize) {
    let text = String::from_utf8_lossy(bytes);
    let end = text.char_indices().nth(chars_max).map_or(text.len(), |(at, _)| at);
    (text[..end].chars().map(picture).collect(), text.len() - end)
}

/// A name of a file, on one line, with what nobody sees in it written out.
pub(crate) fn name(bytes: &[u8], chars_max: usize) -> String {
    visible(&line(bytes, chars_max).0, HiddenCharPolicy::Escaped).replace('\n', "␊")
}

/// The first and the last of an output that is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) head: String,
    pub(crate) tail: String,
    /// Bytes of the output, before anything was replaced, that are in neither.
    pub(crate) hidden_bytes: u64,
}

/// Cuts the middle out of an output of `total_bytes`, of which `first` bytes and
/// `last` bytes are at hand. Each end is at most half of `bytes_max` as shown, and
/// ends at a line break where there is one in its last half.
pub(crate) fn ends(first: &[u8], last: &[u8], total_bytes: u64, bytes_max: usize) -> Ends {
    let half = bytes_max / 2;
    let (head, head_bytes) = fitted(half, first.len().min(half), |bytes| {
        let piece = &first[..bytes];
        let middle = bytes / 2;
        match piece[middle..].iter().rposition(|byte| *byte == b'\n') {
            Some(at) => &piece[..=middle + at],
            None => &piece[..boundary_before(first, bytes)],
        }
    });
    let room = usize::try_from(total_bytes - head_bytes as u64).unwrap_or(usize::MAX);
    let (tail, tail_bytes) = fitted(half, last.len().min(half).min(room), |bytes| {
        let piece = &last[last.len() - bytes..];
        match piece[..bytes / 2].iter().position(|byte| *byte == b'\n') {
            Some(at) => &piece[at + 1..],
            None => &last[boundary_after(last, last.len() - bytes)..],
        }
    });
    Ends { head, tail, hidden_bytes: total_bytes - (head_bytes + tail_bytes) as u64 }
}

/// Shrinks a piece until it fits as shown. Gives it with its own length.
fn fitted<'a>(shown_max: usize, bytes: usize, cut: impl Fn(usize) -> &'a [u8]) -> (String, usize) {
    let mut bytes = bytes;
    loop {
        let piece = cut(bytes);
        let shown = plain(piece);
        if shown.len() <= shown_max {
            return (shown, piece.len());
        }
        // Replacing a byte makes at most three of it: this ends after few rounds.
        bytes = (bytes * shown_max / shown.len()).min(bytes - 1);
    }
}

/// The last place at or before `at` that is not inside a character.
fn boundary_before(bytes: &[u8], at: usize) -> usize {
    let inside = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (at.saturating_sub(3)..=at).rev().find(|at| !inside(at)).unwrap_or(at)
}

/// The first place at or after `at` that is not inside a character.
fn boundary_after(bytes: &[u8], at: usize) -> usize {
    let inside = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (at..=(at + 3).min(bytes.len())).find(|at| !inside(at)).unwrap_or(at)
}

/// A text as the model sees it, without its middle if it is longer than that, and how many
/// bytes of it are left out. The hint says what to do about them.
pub(crate) fn middle(whole: &str, bytes_max: usize, hint: &str) -> (String, u64) {
    if whole.len() <= bytes_max {
        return (plain(whole.as_bytes()), 0);
    }
    let all = whole.as_bytes();
    let Ends { head, tail, hidden_bytes, .. } = ends(all, all, all.len() as u64, bytes_max);
    (format!("{head}\n[... {hidden_bytes} bytes left out{hint} ...]\n{tail}"), hidden_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn terminal_control_is_inert() {
        for (given, shown) in [
            ("a\u{1b}[31;1mred\u{1b}[0m", "ared"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]0;open\nnext", "\nnext"),
            ("\u{1b}(Bx\u{1b}=y\u{1b}", "xy"),
            ("\u{9b}2Jx", "x"),
            ("50%\r100%\r\ndone\r", "50%\n100%\ndone\n"),
            ("bell\u{7}\u{8}\u{7f}\0", "bell␇␈␡␀"),
            ("\ttab é ✓", "\ttab é ✓"),
            ("\u{1b}[", ""),
            ("\u{1b}é", "é"),
        ] {
            assert_eq!(plain(given.as_bytes()), shown, "{given:?}");
        }
        assert_eq!(plain(b"a\xffb\xc3"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn lines_are_cut_by_characters() {
        assert_eq!(line("ééé".as_bytes(), 2), ("éé".to_owned(), 2));
        assert_eq!(line(b"abc", 3), ("abc".to_owned(), 0));
        assert_eq!(line(b"\x1b[1m", 9), ("␛[1m".to_owned(), 0));
    }

    #[test]
    fn ends_prefer_whole_lines() {
        let output = "one\ntwo\nthree\nfour\nfive\n";
        let cut = ends(output.as_bytes(), output.as_bytes(), output.len() as u64, 20);
        assert_eq!(
            (cut.head.as_str(), cut.tail.as_str(), cut.hidden_bytes),
            ("one\ntwo\n", "five\n", 11)
        );
    }

    fn no_control(text: &str) -> bool {
        text.chars().all(|char| char == '\n' || char == '\t' || !char.is_control())
    }

    proptest! {
        #[test]
        fn ends_never_exceed_the_limit(
            output in proptest::collection::vec(any::<u8>(), 0..3_000),
            bytes_max in 8_usize..600,
        ) {
            let cut = ends(&output, &output, output.len() as u64, bytes_max);
            prop_assert!(cut.head.len() + cut.tail.len() <= bytes_max);
            prop_assert!(cut.hidden_bytes <= output.len() as u64);
            prop_assert!(no_control(&cut.head) && no_control(&cut.tail));
        }

        #[test]
        fn text_is_hidden_to_the_byte(text in "[a-zé✓\n]{0,900}", bytes_max in 8_usize..600) {
            let total = text.len() as u64;
            let cut = ends(text.as_bytes(), text.as_bytes(), total, bytes_max);
            prop_assert_eq!(cut.hidden_bytes, total - (cut.head.len() + cut.tail.len()) as u64);
            prop_assert!(text.starts_with(&cut.head) && text.ends_with(&cut.tail));
        }
    }
}
