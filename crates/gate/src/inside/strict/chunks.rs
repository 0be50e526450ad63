//! Where a chunked body ends (RFC 9112, 7.1), read strictly.
//!
//! Owns only that: what the chunks hold is for the parser behind it. Pure.

use super::head::Fault;
use crate::limits;

/// How far a chunked body was read.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    step: Step,
    size: u64,
    digits: u8,
    extra: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Step {
    #[default]
    Size,
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    /// The begin of a line behind the last chunk.
    TrailerBegin,
    Trailer,
    TrailerEnd,
    LastEnd,
    Done,
}

impl Chunks {
    pub(super) fn is_done(&self) -> bool {
        self.step == Step::Done
    }

    /// The length of what the body takes of these bytes.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut at = 0;
        while at < bytes.len() && self.step != Step::Done {
            if self.step == Step::Data {
                let length =
                    (bytes.len() - at).min(usize::try_from(self.size).unwrap_or(usize::MAX));
                self.size -= length as u64;
                at += length;
                if self.size == 0 {
                    self.step = Step::DataReturn;
                }
                continue;
            }
            self.step = self.next(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    fn next(&mut self, byte: u8) -> Result<Step, Fault> {
        match (self.step, byte) {
            (Step::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.digits += 1;
                if self.digits > limits::CHUNK_DIGITS_MAX {
                    return Err("a chunk is too long");
                }
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                self.size = (self.size << 4) | u64::from(digit);
                Ok(Step::Size)
            }
            (Step::Size, b'\r') if self.digits > 0 => Ok(Step::SizeEnd),
            (Step::Size, b';') if self.digits > 0 => Ok(Step::Extension),
            (Step::Extension, b'\r') => Ok(Step::SizeEnd),
            (Step::SizeEnd, b'\n') => {
                self.digits = 0;
                Ok(if self.size == 0 { Step::TrailerBegin } else { Step::Data })
            }
            (Step::DataReturn, b'\r') => Ok(Step::DataEnd),
            (Step::DataEnd, b'\n') => Ok(Step::Size),
            (Step::TrailerBegin, b'\r') => Ok(Step::LastEnd),
            (Step::Trailer, b'\r') => Ok(Step::TrailerEnd),
            (Step::TrailerEnd, b'\n') => Ok(Step::TrailerBegin),
            (Step::LastEnd, b'\n') => Ok(Step::Done),
            (Step::Extension, b' '..) => self.pass(Step::Extension),
            (Step::TrailerBegin | Step::Trailer, b'!'..) => self.pass(Step::Trailer),
            (Step::Trailer, b' ' | b'\t') => self.pass(Step::Trailer),
            _ => Err("a chunk is not well-formed"),
        }
    }

    fn pass(&mut self, step: Step) -> Result<Step, Fault> {
        self.extra += 1;
        if self.extra > limits::CHUNK_EXTRA_BYTES_MAX {
            Err("its chunks say too much")
        } else {
            Ok(step)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_end_where_they_say() {
        for (body, end) in [
            ("0\r\n\r\nGET", 5),
            ("3\r\nabc\r\n0\r\n\r\n", 13),
            ("3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\nrest", 23),
            ("A\r\n0123456789\r\n0\r\n\r\n", 20),
        ] {
            // As a whole, and byte by byte.
            let mut chunks = Chunks::default();
            assert_eq!(chunks.advance(body.as_bytes()), Ok(end), "{body:?}");
            assert!(chunks.is_done());
            let mut chunks = Chunks::default();
            let taken: usize = body.bytes().map(|byte| chunks.advance(&[byte]).unwrap()).sum();
            assert_eq!(taken, end, "{body:?}");
        }
    }

    #[test]
    fn bodies_that_two_could_read_differently_are_none() {
        for body in [
            "\r\n",
            ";\r\n",
            "g\r\n",
            "0x3\r\nabc\r\n",
            "+3\r\nabc\r\n",
            " 3\r\nabc\r\n",
            "3 \r\nabc\r\n",
            "3\nabc\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n",
            "0\r\n\n",
            "0\r\nX: y\n\r\n",
            "3;\n\r\nabc\r\n",
            "10000000000000000\r\n",
            "-1\r\n",
            "0\r\n folded\r\n\r\n",
        ] {
            assert!(Chunks::default().advance(body.as_bytes()).is_err(), "{body:?}");
        }
    }
}
