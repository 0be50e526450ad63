//! Looks into a write-ahead log for the newest committed header of its database.
//!
//! A newer program may have raised the format and died before that reached the
//! database file. Opening the database to find out would already change it.
//! Layout: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>. The
//! checksums are not computed: what matters is only that nothing newer is missed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::Error;

const HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;
/// Where the format stands in the first page.
const FORMAT_AT: usize = 60;

/// What we want to know of a database's first page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstPage {
    pub(super) format: u32,
}

/// The first page as the log has it; nothing if the log does not have it, or there is none.
pub(super) fn first_page(path: &Path, page_bytes: u32) -> Result<Option<FirstPage>, Error> {
    let wrong = |e| Error::io("reading the write-ahead log", e);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(wrong(e)),
    };
    let mut header = [0; HEADER_BYTES as usize];
    if !read_at(&file, &mut header, 0).map_err(wrong)? {
        return Ok(None);
    }
    let salts = &header[16..24];
    let (mut committed, mut pending) = (None, None);
    let mut at = HEADER_BYTES;
    loop {
        // The frame's own header, and the page's as far as the format.
        let mut frame = [0; FRAME_HEADER_BYTES as usize + FORMAT_AT + 4];
        // A frame of another round of the log ends this one.
        if !read_at(&file, &mut frame, at).map_err(wrong)? || frame[8..16] != *salts {
            return Ok(committed);
        }
        let number =
            |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes"));
        if number(0) == 1 {
            let format = number(FRAME_HEADER_BYTES as usize + FORMAT_AT);
            pending = Some(FirstPage { format });
        }
        if number(4) != 0 {
            committed = pending.or(committed);
        }
        at += FRAME_HEADER_BYTES + u64::from(page_bytes);
    }
}

/// Fills `into`, or says that the file ends before.
fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<bool> {
    match file.read_exact_at(into, at) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}
