//! Bytes of any length, a piece at a time.
//!
//! Owns the loop that hands them to who counts or sums them up, so that nothing that
//! comes from a sandbox is ever held whole. Must never keep a byte.

use std::io::{self, Read};

use crate::limits;

/// Reads to the end and shows every piece, in order. Says how many bytes that were.
///
/// # Errors
/// What the source says; what was shown until then was shown.
pub fn each_piece(mut source: impl Read, mut show: impl FnMut(&[u8])) -> io::Result<u64> {
    let mut piece = vec![0; limits::PIECE_BYTES];
    let mut bytes = 0;
    loop {
        match source.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(length) => {
                bytes += length as u64;
                show(&piece[..length]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte, then a signal comes, then another, then it fails.
    struct TornReader(u8);

    impl Read for TornReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                2 => Err(io::ErrorKind::Interrupted.into()),
                4 => Err(io::ErrorKind::BrokenPipe.into()),
                number => {
                    buffer[0] = number;
                    Ok(1)
                }
            }
        }
    }

    #[test]
    fn all_is_shown_in_order_and_a_signal_is_no_end() {
        let long = vec![7; 3 * limits::PIECE_BYTES + 1];
        let mut seen = Vec::new();
        let bytes = each_piece(&long[..], |piece| seen.extend_from_slice(piece)).unwrap();
        assert_eq!((bytes, seen), (long.len() as u64, long));
        let mut seen = Vec::new();
        let failed = each_piece(TornReader(0), |piece| seen.extend_from_slice(piece)).unwrap_err();
        assert_eq!((failed.kind(), seen), (io::ErrorKind::BrokenPipe, vec![1, 3]));
    }
}
