//! Frames between a host and a guest.
//!
//! Owns the messages and how they stand on a byte stream: a length of four bytes,
//! little-endian, then one [`postcard`] value. Knows nothing of how the stream
//! came to be: a socket, a container's standard streams, a test's buffer.
//!
//! The guest speaks first, with [`FromGuest::Hello`]. Requests carry a number
//! chosen by the host and may be answered in any order. Whatever comes from the
//! other side is checked here for length and form and is never trusted further: a
//! malformed frame ends the connection that it came on and nothing else.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Error, ExecId, ExecOutcome, Execute, FileError, FileOp, FileReply, Generation, Input, TreeOp,
    TreeReply, limits,
};

/// Version of these messages. Both sides are of one build, so another one is
/// refused, not negotiated.
pub const VERSION: u32 = 8;

/// Bytes before each message that give its length.
pub const HEADER_BYTES: usize = 4;

/// From host to guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToGuest {
    /// Chosen by the host, unique on its connection while an answer is due.
    pub request: u64,
    /// What is asked.
    pub ask: GuestRequest,
}

/// What a host asks of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestRequest {
    /// Create or attach. Answers: any number of [`GuestReply::Output`], then [`GuestReply::Executed`].
    Execute(Execute),
    /// Kill a tree. Answer: [`GuestReply::Killed`], when the tree is gone.
    Kill(ExecId),
    /// A file operation. Answer: [`GuestReply::Files`].
    Files(FileOp),
    /// Input for a command with a terminal. Answer: [`GuestReply::Taken`].
    Input {
        /// The command.
        id: ExecId,
        /// What it is given.
        input: Input,
    },
    /// Stop every process that commands left behind, until the next command.
    /// Answer: [`GuestReply::Frozen`]; `Busy` while a command runs.
    Freeze,
    /// Let them go on. Answer: [`GuestReply::Thawed`].
    Thaw,
    /// The host no longer waits for this request, which goes on. No answer.
    Forget,
    /// From now on this connection answers for the trees that are served into the sandbox,
    /// until it ends or another one says so. No answer.
    Serve,
    /// The answer to a [`FromGuest::Tree`]. No answer.
    Tree {
        /// Its number.
        number: u64,
        /// What came of it.
        result: Result<TreeReply, FileError>,
    },
    /// Listen on a port of the sandbox's own loopback, where nothing but its programs
    /// connects, and on those of [`crate::capture`], and on these as well, instead of those that
    /// were named before. Answer: [`GuestReply::Listening`], and beside its frame, on a connection
    /// that is a socket, the descriptors of the listeners (`SCM_RIGHTS`, see unix(7)).
    Listen(Vec<u16>),
    /// As [`GuestRequest::Listen`], where descriptors can't be passed: from now on this
    /// connection carries what connects there, until it ends or another one says so.
    /// Answer: [`GuestReply::Listening`].
    Relay(Vec<u16>),
    /// For a connection that is carried. No answer.
    Relayed {
        /// Its number.
        flow: u64,
        /// What comes of the host's side.
        piece: RelayPiece,
    },
}

/// What passes of a carried connection, in either direction. Each side may send
/// [`limits::RELAY_WINDOW_BYTES`] of a flow before it is given more room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RelayPiece {
    /// A program connected: to this port of [`crate::capture::ADDRESS`], or to the proxy. Only from
    /// the guest.
    Opened(Option<u16>),
    /// The next bytes.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// No more bytes come from this side.
    Ended,
    /// It is over, for both sides at once.
    Broken,
    /// So many bytes were taken: there is room for as many more.
    Room(u32),
}

/// From guest to host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromGuest {
    /// The first frame of a connection.
    Hello {
        /// [`VERSION`] of the guest.
        version: u32,
        /// Which life of the sandbox this is.
        generation: Generation,
    },
    /// Belongs to a request.
    Reply {
        /// The number that the host chose.
        request: u64,
        /// The answer, or a part of it.
        reply: GuestReply,
    },
    /// A program asks for something of a served tree. Only to a connection that said
    /// [`GuestRequest::Serve`]; at most [`limits::TREE_OPS_MAX`] wait for their answer.
    Tree {
        /// Chosen by the guest, and never again the same.
        number: u64,
        /// What it asks.
        op: TreeOp,
    },
    /// Of a connection that is carried. Only to the connection that said
    /// [`GuestRequest::Relay`]; at most [`limits::RELAY_FLOWS_MAX`] are open at once.
    Relayed {
        /// Chosen by the guest, and never again the same.
        flow: u64,
        /// What comes of the program's side.
        piece: RelayPiece,
    },
}

/// Which stream a piece of output is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output, or both when merged.
    Stdout,
    /// Standard error.
    Stderr,
}

/// An answer to a [`GuestRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestReply {
    /// The next kept bytes of a stream. All pieces of a stream in a row are what
    /// [`ExecOutcome`] holds of it.
    Output {
        /// Which stream.
        stream: Stream,
        /// At most [`crate::limits::FRAME_BYTES_MAX`], in practice 64 KiB.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// The end of a command. `stdout` and `stderr` are empty here, because they
    /// came before as [`GuestReply::Output`].
    Executed(Result<ExecOutcome, Error>),
    /// The tree is gone.
    Killed(Result<(), Error>),
    /// The terminal took the input.
    Taken(Result<(), Error>),
    /// They stopped.
    Frozen(Result<(), Error>),
    /// They go on.
    Thawed(Result<(), Error>),
    /// The answer to a file operation.
    Files(Result<FileReply, Error>),
    /// The first port that it listens on.
    Listening(Result<u16, Error>),
}

/// Why bytes from the other side were refused.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A length that no frame has.
    #[error("a frame of {bytes} bytes is above the limit of {max}", max = limits::FRAME_BYTES_MAX)]
    TooLong {
        /// The length that was announced or asked for.
        bytes: usize,
    },
    /// A frame that is no message.
    #[error("a frame of {bytes} bytes is not a message")]
    Malformed {
        /// Length of the frame.
        bytes: usize,
        /// What the decoder said.
        #[source]
        source: postcard::Error,
    },
    /// A message followed by bytes that are not part of it.
    #[error("a message is followed by {bytes} stray bytes in its frame")]
    Stray {
        /// How many.
        bytes: usize,
    },
}

/// A message as a whole frame, header included.
///
/// # Errors
/// [`WireError::TooLong`] above [`limits::FRAME_BYTES_MAX`].
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let frame = postcard::to_extend(message, vec![0; HEADER_BYTES])
        .map_err(|source| WireError::Malformed { bytes: 0, source })?;
    let bytes = frame.len() - HEADER_BYTES;
    let length = u32::try_from(bytes).map_err(|_| WireError::TooLong { bytes })?;
    if bytes > limits::FRAME_BYTES_MAX {
        return Err(WireError::TooLong { bytes });
    }
    let mut frame = frame;
    frame[..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// The length of the message that a header announces.
///
/// # Errors
/// [`WireError::TooLong`] above [`limits::FRAME_BYTES_MAX`].
pub fn announced(header: [u8; HEADER_BYTES]) -> Result<usize, WireError> {
    let bytes = u32::from_le_bytes(header) as usize;
    if bytes > limits::FRAME_BYTES_MAX {
        return Err(WireError::TooLong { bytes });
    }
    Ok(bytes)
}

/// The message in a frame without its header.
///
/// # Errors
/// [`WireError::Malformed`] or [`WireError::Stray`] unless the bytes are one message.
pub fn decode<T: DeserializeOwned>(frame: &[u8]) -> Result<T, WireError> {
    let (message, rest) = postcard::take_from_bytes(frame)
        .map_err(|source| WireError::Malformed { bytes: frame.len(), source })?;
    if rest.is_empty() { Ok(message) } else { Err(WireError::Stray { bytes: rest.len() }) }
}

/// Gathers bytes from a stream until they are whole frames.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    taken: usize,
}

impl FrameBuffer {
    /// Adds what came from the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether nothing is held that was not taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    /// The next whole message, if there is one.
    ///
    /// # Errors
    /// Those of [`announced`] and [`decode`]; the stream can't be used after one.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        let held = &self.bytes[self.taken..];
        let Some((header, rest)) = held.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = announced(*header)?;
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let message = decode(frame)?;
        self.taken += HEADER_BYTES + length;
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
            // One large frame must not keep its memory for the life of the connection.
            self.bytes.shrink_to(64 << 10);
        }
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello() -> FromGuest {
        let generation = Generation::new("g1").unwrap();
        FromGuest::Hello { version: VERSION, generation }
    }

    #[test]
    fn frames_survive_any_cut_of_the_stream() {
        let output = FromGuest::Reply {
            request: 7,
            reply: GuestReply::Output { stream: Stream::Stderr, bytes: vec![0, 255, 7] },
        };
        let mut stream = encode(&hello()).unwrap();
        stream.extend(encode(&output).unwrap());
        for cut in 0..stream.len() {
            let mut frames = FrameBuffer::default();
            let mut seen = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                frames.push(part);
                while let Some(message) = frames.take::<FromGuest>().unwrap() {
                    seen.push(message);
                }
            }
            assert_eq!(seen, [hello(), output.clone()], "cut at {cut}");
        }
    }

    #[test]
    fn a_length_above_the_limit_is_refused_before_anything_is_gathered() {
        let mut frames = FrameBuffer::default();
        frames.push(&u32::MAX.to_le_bytes());
        assert!(matches!(frames.take::<ToGuest>(), Err(WireError::TooLong { .. })));
    }

    #[test]
    fn stray_bytes_in_a_frame_are_refused() {
        let mut frame = encode(&hello()).unwrap();
        frame.push(0);
        assert!(matches!(
            decode::<FromGuest>(&frame[HEADER_BYTES..]),
            Err(WireError::Stray { bytes: 1 })
        ));
    }

    #[test]
    fn ids_are_checked_when_they_arrive() {
        let mut frame =
            encode(&ToGuest { request: 1, ask: GuestRequest::Kill(ExecId::new("a-b").unwrap()) })
                .unwrap();
        let at = frame.iter().position(|&b| b == b'-').unwrap();
        frame[at] = b'/';
        assert!(decode::<ToGuest>(&frame[HEADER_BYTES..]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            let mut frames = FrameBuffer::default();
            frames.push(&bytes);
            while let Ok(Some(_)) = frames.take::<ToGuest>() {}
            let _ = decode::<FromGuest>(&bytes);
        }
    }
}
