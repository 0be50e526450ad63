//! Pictures that the words of a message name: files of the directory after `@`, and what a
//! terminal types when a file is dropped on it, an absolute path.
//!
//! Owns what is such a word. Must never follow a link of the directory: who wrote what lies
//! there may not be who speaks.

use outrigger_beneath::{Dir, Error};
use std::fs::File;
use std::path::Path;

use super::{PictureFile, ensure_few, unreadable};
use crate::exit::Outcome;

/// How names of pictures end.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];
/// What stands behind a word in a sentence.
const PUNCTUATION: [char; 7] = [',', '.', ';', ':', '!', '?', ')'];

/// The pictures that a message names, each once, in order. A name after `@` that ends as
/// pictures do has to be one; any other word is a picture if it names one.
pub(crate) fn mentioned(text: &str, dir: &Path) -> Outcome<Vec<PictureFile>> {
    let mut files: Vec<PictureFile> = Vec::new();
    for mention in mentions(text) {
        let found = mention.picture(dir)?;
        files.extend(found.filter(|found| !files.iter().any(|file| file.path == found.path)));
        ensure_few(files.len())?;
    }
    Ok(files)
}

/// A word that may name a picture.
#[derive(Debug, PartialEq, Eq)]
struct Mention {
    path: String,
    /// Whether it stands behind `@`.
    is_marked: bool,
}

impl Mention {
    fn picture(&self, dir: &Path) -> Outcome<Option<PictureFile>> {
        let plain = self.path.trim_end_matches(PUNCTUATION);
        let (path, file) = match open(Path::new(&self.path), dir) {
            Err(error) if error.is_absent() && plain.len() < self.path.len() => {
                (Path::new(plain), open(Path::new(plain), dir))
            }
            file => (Path::new(&self.path), file),
        };
        match file {
            Ok(file) if self.must_be(path) => PictureFile::read(path, file).map(Some),
            Ok(file) => PictureFile::if_picture(path, file),
            Err(error) if self.must_be(path) => Err(unreadable(path, &error)),
            Err(_) => Ok(None),
        }
        .map_err(|failure| match self.is_marked {
            true => failure.hint("Without the `@` it is a name like any other word."),
            false => failure,
        })
    }

    fn must_be(&self, path: &Path) -> bool {
        let ending = path.extension().unwrap_or_default();
        self.is_marked && ENDINGS.iter().any(|it| ending.eq_ignore_ascii_case(it))
    }
}

fn open(path: &Path, dir: &Path) -> Result<File, Error> {
    if path.is_absolute() { super::open(path) } else { Dir::open(dir)?.file(path) }
}

/// The words of a text that stand behind `@` or are absolute paths, without their quotes.
fn mentions(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        if rest.is_empty() {
            return found;
        }
        let marked = rest.strip_prefix('@');
        let word = marked.unwrap_or(rest);
        let end = match unquoted(word) {
            Some((path, end))
                if !path.is_empty() && (marked.is_some() || path.starts_with('/')) =>
            {
                found.push(Mention { path, is_marked: marked.is_some() });
                end
            }
            _ => word.find(|c: char| c.is_ascii_whitespace()).unwrap_or(word.len()),
        };
        rest = &word[end..];
    }
}

/// A word at the beginning of a text as shells read it, and where it ends: quotes group, and
/// a backslash takes what is behind it as it is. Nothing if a quote is open.
fn unquoted(text: &str) -> Option<(String, usize)> {
    let (mut word, mut quote) = (String::new(), None);
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match (quote, char) {
            (None, char) if char.is_ascii_whitespace() => return Some((word, at)),
            (None, '\'' | '"') => quote = Some(char),
            (Some(open), char) if open == char => quote = None,
            (None | Some('"'), '\\') => word.extend(chars.next().map(|(_, char)| char)),
            (_, char) => word.push(char),
        }
    }
    quote.is_none().then_some((word, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_may_name_pictures() {
        for (text, expected) in [
            ("what is @shot.png", &[("shot.png", true)][..]),
            ("@a/b.png and @'my shot.png'", &[("a/b.png", true), ("my shot.png", true)]),
            ("'/tmp/my shot.png' ", &[("/tmp/my shot.png", false)]),
            ("/tmp/my\\ shot.png is odd", &[("/tmp/my shot.png", false)]),
            ("\"/tmp/it's.png\"", &[("/tmp/it's.png", false)]),
            ("'/tmp/it'\\''s.png'", &[("/tmp/it's.png", false)]),
            ("don't look at me@home.org, shot.png or \"this", &[]),
            ("@ and @'open", &[]),
            ("/tmp/ein\u{202f}bild.png", &[("/tmp/ein\u{202f}bild.png", false)]),
        ] {
            let found = mentions(text);
            let found: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.is_marked)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    /// A PNG of that many pixels, as far as anybody looks.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        png.extend(width.to_be_bytes().into_iter().chain(height.to_be_bytes()));
        png
    }

    fn told(text: &str, dir: &Path) -> String {
        let pictures = mentioned(text, dir)
            .and_then(|files| files.iter().map(PictureFile::picture).collect::<Outcome<Vec<_>>>());
        match pictures {
            Ok(pictures) => pictures.iter().map(|it| format!("{it}; ")).collect(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn a_message_shows_what_it_names_and_says_what_is_wrong() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("repo");
        std::fs::create_dir(&dir).unwrap();
        let write = |name: &str, content: &[u8]| std::fs::write(dir.join(name), content).unwrap();
        write("shot.png", &png(1_280, 720));
        write("named.txt", b"GIF89a\x02\0\x03\0 and more");
        write("notes.md", b"# Notes");
        write("false.png", b"# Notes, long enough");
        write("wide.png", &png(8_001, 1));
        write("cut.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0d");
        let large = std::fs::File::create(dir.join("large.png")).unwrap();
        std::io::Write::write_all(&mut &large, &png(2, 2)).unwrap();
        large.set_len(5 << 20).unwrap();
        std::fs::write(place.path().join("outside.png"), png(1, 1)).unwrap();
        std::os::unix::fs::symlink("../outside.png", dir.join("link.png")).unwrap();
        let path = dir.join("shot.png").display().to_string();
        let outside = place.path().join("outside.png").display().to_string();
        for (text, expected) in [
            ("What is @shot.png?", "shot.png, 1280 × 720; "),
            ("@shot.png @shot.png @named.txt", "shot.png, 1280 × 720; named.txt, 2 × 3; "),
            (path.as_str(), "shot.png, 1280 × 720; "),
            (outside.as_str(), "outside.png, 1 × 1; "),
            ("@notes.md shot.png /not/there.png", ""),
            ("@false.png", "false.png is no picture: no PNG, JPEG, GIF or WebP"),
            ("@none.png", "there is no none.png"),
            ("@wide.png", "wide.png has 8001 × 1 pixels; a side may have 8000"),
            ("@cut.png", "cut.png is cut short or damaged: it does not say how large it is"),
            ("@large.png", "large.png has 5.0 MiB; a picture may have 3.7 MiB"),
            ("@link.png", "`link.png` is a link"),
            ("@../outside.png", "`../outside.png` is no path beneath the directory"),
        ] {
            assert_eq!(told(text, &dir), expected, "{text}");
        }
    }
}
