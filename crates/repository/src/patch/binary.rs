//! Contents that are no text, as git writes them: deflated, in base 85, whole in both
//! directions (`GIT binary patch`, apply.c and diff.c of git).

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::ObjectId;

/// Bytes among which git looks for a NUL.
const LOOKED_AT_BYTES: usize = 8_000;
/// Bytes of one line, before they become letters.
const LINE_BYTES: usize = 52;
/// Git's digits of base 85.
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Whether git takes it for no text.
pub(super) fn is_binary(contents: &[u8]) -> bool {
    contents.iter().take(LOOKED_AT_BYTES).any(|byte| *byte == 0)
}

/// The name that git has for contents, in a repository of SHA-1.
pub(super) fn blob_name(contents: Option<&[u8]>) -> String {
    contents.map_or("0".repeat(40), |contents| ObjectId::of_blob(contents).to_string())
}

/// The new contents, and the old ones for the way back.
pub(super) fn write(text: &mut Vec<u8>, old: &[u8], new: &[u8]) {
    text.extend_from_slice(b"GIT binary patch\n");
    literal(text, new);
    literal(text, old);
}

fn literal(text: &mut Vec<u8>, contents: &[u8]) {
    text.extend_from_slice(format!("literal {}\n", contents.len()).as_bytes());
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let packed = encoder.write_all(contents).and_then(|()| encoder.finish());
    for line in packed.expect("writing to memory never fails").chunks(LINE_BYTES) {
        text.push(length(line.len()));
        line.chunks(4).for_each(|four| text.extend_from_slice(&digits(four)));
        text.push(b'\n');
    }
    text.push(b'\n');
}

/// How many bytes a line has, as its first letter: A to Z are 1 to 26, a to z 27 to 52.
fn length(bytes: usize) -> u8 {
    let bytes = u8::try_from(bytes).expect("a line has no more bytes than it may");
    if bytes <= 26 { b'A' + bytes - 1 } else { b'a' + bytes - 27 }
}

/// Four bytes, missing ones as 0, as five digits.
fn digits(four: &[u8]) -> [u8; 5] {
    let mut bytes = [0; 4];
    bytes[..four.len()].copy_from_slice(four);
    let mut value = u32::from_be_bytes(bytes);
    let mut digits = [0; 5];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(value % 85) as usize];
        value /= 85;
    }
    digits
}
