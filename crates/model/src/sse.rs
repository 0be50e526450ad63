//! Splits a stream of bytes into server-sent events, as it arrives.
//!
//! Owns the format of <https://html.spec.whatwg.org/multipage/server-sent-events.html>.
//! Does no I/O, looks at each byte once, and holds at most one event. Must never
//! read the data of an event.

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Its type; empty where the stream names none.
    pub(crate) name: &'a str,
    /// Its data, lines joined.
    pub(crate) data: &'a str,
}

/// What is wrong with a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// An event is larger than allowed.
    #[error("an event of the stream is larger than {bytes_max} bytes")]
    TooLarge {
        /// What is allowed.
        bytes_max: usize,
    },
    /// An event is not UTF-8.
    #[error("the stream is not UTF-8")]
    NotText,
}

/// The splitter's state between two pieces of the stream.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    /// Nothing has been read yet, so that a byte order mark may come.
    fresh: bool,
    event_bytes_max: usize,
}

impl Splitter {
    /// A splitter at the beginning of a stream.
    pub(crate) fn new(event_bytes_max: usize) -> Self {
        Self {
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            fresh: true,
            event_bytes_max,
        }
    }

    /// Reads the next piece and hands each event that it completes to `sink`.
    /// An event that is still open at the end of the stream is none.
    ///
    /// # Errors
    /// Those of `sink`, and [`Error`]; the splitter is not to be used after either.
    pub(crate) fn feed<E: From<Error>>(
        &mut self,
        mut bytes: &[u8],
        sink: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.after_return && bytes.first() == Some(&b'\n') {
            bytes = &bytes[1..];
        }
        if !bytes.is_empty() {
            self.after_return = false;
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            if self.line.is_empty() {
                self.line(line, sink)?;
            } else {
                self.hold(line)?;
                let line = std::mem::take(&mut self.line);
                self.line(&line, sink)?;
                self.line = line;
                self.line.clear();
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.hold(bytes)?;
        Ok(())
    }

    /// Keeps the beginning of a line.
    fn hold(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.line.len() + self.data.len() + bytes.len() > self.event_bytes_max {
            return Err(Error::TooLarge { bytes_max: self.event_bytes_max });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line<E: From<Error>>(
        &mut self,
        line: &[u8],
        sink: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = match line {
            [0xef, 0xbb, 0xbf, rest @ ..] if self.fresh => rest,
            line => line,
        };
        self.fresh = false;
        if line.is_empty() {
            return self.dispatch(sink);
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"data" => {
                if self.data.len() + value.len() > self.event_bytes_max {
                    return Err(Error::TooLarge { bytes_max: self.event_bytes_max }.into());
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            // Ids, reconnection times, comments and unknown fields mean nothing here.
            _ => {}
        }
        Ok(())
    }

    fn dispatch<E: From<Error>>(
        &mut self,
        sink: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.has_data {
            let name = std::str::from_utf8(&self.name).map_err(|_| Error::NotText)?;
            let data = std::str::from_utf8(&self.data).map_err(|_| Error::NotText)?;
            sink(Event { name, data })?;
        }
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(pieces: &[&[u8]], event_bytes_max: usize) -> Result<Vec<(String, String)>, Error> {
        let mut splitter = Splitter::new(event_bytes_max);
        let mut events = Vec::new();
        for piece in pieces {
            splitter.feed(piece, &mut |event: Event<'_>| {
                events.push((event.name.to_owned(), event.data.to_owned()));
                Ok::<(), Error>(())
            })?;
        }
        Ok(events)
    }

    const STREAM: &[u8] = "\u{feff}event: a\r\ndata: {\"x\":1}\r\n\r\n: a comment\ndata:two\ndata: lines ü\n\nid: 7\n\rdata\r\revent: b\ndata: open".as_bytes();

    #[test]
    fn events_are_split_as_the_standard_says() {
        expect_test::expect![[r#"
            [
                (
                    "a",
                    "{\"x\":1}",
                ),
                (
                    "",
                    "two\nlines ü",
                ),
                (
                    "",
                    "",
                ),
            ]
        "#]]
        .assert_debug_eq(&split(&[STREAM], 100).unwrap());
    }

    proptest! {
        #[test]
        fn where_the_stream_is_cut_does_not_matter(cuts in proptest::collection::vec(0..STREAM.len(), 0..20)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &STREAM[cut[0]..cut[1]]).collect();
            prop_assert_eq!(split(&pieces, 100), split(&[STREAM], 100));
        }
    }

    #[test]
    fn a_giant_event_is_refused_however_it_comes() {
        let large = Err(Error::TooLarge { bytes_max: 10 });
        assert_eq!(split(&[b"data: 0123456789\n\n"], 10).map(|events| events.len()), Ok(1));
        assert_eq!(split(&[b"data: 01234567890\n\n"], 10), large);
        assert_eq!(split(&[b"data: 012", b"3456789"], 10), large);
        assert_eq!(split(&[b"data: 01234\n", b"data: 56789\n", b"data: 0\n"], 10), large);
        assert_eq!(split(&[b"data: \xff\n\n"], 10), Err(Error::NotText));
    }
}
