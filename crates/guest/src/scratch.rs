//! Room for what is read next.
//!
//! Owns that it costs no memory before something was read into it, and then only as
//! much as that was: a host may have a thousand guests that wait.

use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;

use crate::limits;

/// Holds what the last read gave.
#[derive(Debug)]
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(limits::PIECE_BYTES))
    }

    /// Reads once. Nothing at the end of a stream.
    pub(crate) fn read(&mut self, fd: impl AsFd) -> rustix::io::Result<&[u8]> {
        self.0.clear();
        rustix::io::read(fd, spare_capacity(&mut self.0))?;
        Ok(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn pieces_come_one_after_the_other_and_then_nothing() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..limits::PIECE_BYTES + 5).map(|at| (at % 251) as u8).collect();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut scratch = Scratch::new();
        assert_eq!(scratch.read(&file).unwrap(), &bytes[..limits::PIECE_BYTES]);
        assert_eq!(scratch.read(&file).unwrap(), &bytes[limits::PIECE_BYTES..]);
        assert_eq!(scratch.read(&file).unwrap(), b"");
        assert!(scratch.read(File::open("/").unwrap()).is_err());
    }
}
