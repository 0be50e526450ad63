//! What a file that is no regular one is called.

use rustix::fs::FileType;

/// A kind of file in words, with its article.
#[must_use]
pub fn words(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "no file that is known",
    }
}
