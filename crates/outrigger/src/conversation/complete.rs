//! What can stand in the place of the word before the cursor: a file of the directory after `@`,
//! or a command after `/`.

use super::slash::WORDS;
use crate::limits;

/// What is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Bytes before the cursor in whose place it comes.
    pub(crate) bytes: usize,
    /// The best first, each with what it is.
    pub(crate) offers: Vec<(String, String)>,
    /// The one that is chosen.
    pub(crate) chosen: usize,
}

impl Completion {
    /// What is offered for a text up to the cursor.
    pub(crate) fn of(before: &str, files: &[String]) -> Option<Self> {
        let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let offers = if let Some(part) = word.strip_prefix('@') {
            ranked(part, files)
        } else if word.starts_with('/') && word.len() == before.len() {
            let fits = WORDS.iter().filter(|(name, _)| name.starts_with(word) && *name != word);
            fits.map(|(name, what)| ((*name).to_owned(), (*what).to_owned())).collect()
        } else {
            return None;
        };
        (!offers.is_empty()).then_some(Self { bytes: word.len(), offers, chosen: 0 })
    }

    /// Chooses the next one, or the one before.
    pub(crate) fn turn(&mut self, forward: Forward) {
        let count = self.offers.len();
        let step = if forward == Forward::Yes { 1 } else { count - 1 };
        self.chosen = (self.chosen + step) % count;
    }

    /// What comes in the place of the word.
    pub(crate) fn text(&self) -> String {
        self.offers.get(self.chosen).map_or_else(String::new, |(text, _)| format!("{text} "))
    }
}

/// Which way one goes through what is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forward {
    Yes,
    No,
}

/// The files that fit, those first whose name begins like that.
fn ranked(part: &str, files: &[String]) -> Vec<(String, String)> {
    let wanted = part.to_lowercase();
    let rank = |path: &str| {
        let low = path.to_lowercase();
        let name = low.rsplit('/').next().unwrap_or_default();
        if name.starts_with(&wanted) {
            Some(0)
        } else if low.starts_with(&wanted) {
            Some(1)
        } else if low.contains(&wanted) {
            Some(2)
        } else {
            has_in_order(&low, &wanted).then_some(3)
        }
    };
    let mut fits: Vec<(u8, usize, &String)> =
        files.iter().filter_map(|path| Some((rank(path)?, path.len(), path))).collect();
    fits.sort();
    fits.truncate(limits::OFFERS_MAX);
    let word = |path: &str| path.replace(' ', "\\ ");
    fits.into_iter().map(|(_, _, path)| (format!("@{}", word(path)), String::new())).collect()
}

/// Whether a text has these characters, in this order.
fn has_in_order(text: &str, wanted: &str) -> bool {
    let mut chars = text.chars();
    wanted.chars().all(|wanted| chars.any(|char| char == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(before: &str) -> Vec<String> {
        let files = [
            "src/main.rs",
            "src/lib.rs",
            "tests/main.rs",
            "docs/domain.md",
            "README.md",
            "a b.png",
        ];
        let files: Vec<String> = files.map(str::to_owned).to_vec();
        let found = Completion::of(before, &files);
        found.map(|it| it.offers.into_iter().map(|(text, _)| text).collect()).unwrap_or_default()
    }

    #[test]
    fn files_and_commands_are_offered_where_they_fit() {
        assert_eq!(offered("look at @mai"), ["@src/main.rs", "@tests/main.rs", "@docs/domain.md"]);
        assert_eq!(offered("@src/l"), ["@src/lib.rs"]);
        assert_eq!(offered("@rdm"), ["@README.md"]);
        assert_eq!(offered("@b.p"), ["@a\\ b.png"]);
        assert_eq!(offered("ada@mai"), [""; 0]);
        assert_eq!(offered("/di"), ["/diff"]);
        assert_eq!(offered("say /di"), [""; 0]);
        let mut completion = Completion::of("/s", &[]).unwrap();
        completion.turn(Forward::No);
        assert_eq!((completion.bytes, completion.text()), (2, "/sessions ".to_owned()));
    }
}
