//! A tape of bytes that all choices are read from, so that a failing case shrinks
//! and plays again. Past its end every byte is 0, which stands for the plain choice.

/// Reads choices off a tape.
#[derive(Debug, Clone)]
pub(crate) struct Tape {
    bytes: Vec<u8>,
    at: usize,
}

impl Tape {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u8) -> u8 {
        self.byte() % n
    }

    /// Whether the unlikely thing happens, `n` times in 256.
    pub(crate) fn rarely(&mut self, n: u8) -> bool {
        self.byte() > u8::MAX - n
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[usize::from(self.byte()) % choices.len()]
    }
}
