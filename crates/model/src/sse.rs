//! Splits a stream of bytes into server-sent events, as it arrives.
//!
//! The format of <https://html.spec.whatwg.org/multipage/server-sent-events.html> is
//! read by `eventsource-stream`. Owns the guard in front of it, which bounds what the
//! library holds and hands it whole lines only. Must never read the data of an event.

use eventsource_stream::{EventStream, EventStreamError};
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};

use crate::RetryPolicy;

/// An event as the library gives it.
pub(crate) type OwnedEvent = eventsource_stream::Event;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Its type; `message` where the stream names none.
    pub(crate) name: &'a str,
    /// Its data, lines joined.
    pub(crate) data: &'a str,
}

impl<'a> From<&'a OwnedEvent> for Event<'a> {
    fn from(event: &'a OwnedEvent) -> Self {
        Self { name: &event.event, data: &event.data }
    }
}

/// What is wrong with a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// An event is larger than allowed.
    #[error("an event of the stream is larger than {bytes_max} bytes")]
    EventTooLarge {
        /// What is allowed.
        bytes_max: usize,
    },
    /// The stream as a whole is larger than allowed.
    #[error("the stream is larger than {bytes_max} bytes")]
    StreamTooLarge {
        /// What is allowed.
        bytes_max: usize,
    },
    /// A line is not UTF-8.
    #[error("the stream is not UTF-8")]
    NotText,
    /// A line is none that the format knows.
    #[error("the stream is not one of events")]
    Malformed,
}

/// The events of a stream that comes in pieces. One that is still open at the end of
/// the stream is none.
///
/// # Errors
/// Those of the pieces, and [`Error`]; nothing is to be read after either.
pub(crate) fn events<S, B, E>(
    pieces: S,
    policy: &RetryPolicy,
) -> impl Stream<Item = Result<OwnedEvent, E>> + use<S, B, E>
where
    S: Stream<Item = Result<B, E>> + Unpin,
    B: AsRef<[u8]>,
    E: From<Error>,
{
    let guard = Guard::new(pieces, policy);
    let lines = stream::try_unfold(guard, |mut guard| async move {
        Ok(guard.line().await?.map(|line| (line, guard)))
    });
    EventStream::new(lines).map(|event| {
        event.map_err(|error| match error {
            EventStreamError::Transport(error) => error,
            EventStreamError::Utf8(_) => Error::NotText.into(),
            EventStreamError::Parser(_) => Error::Malformed.into(),
        })
    })
}

/// Stands between the pieces and the library, and gives it one whole line at a time.
/// Otherwise the library reads a line again with each piece of it, copies all that
/// follows a line in its piece, panics at a byte order mark, tells of bytes that are
/// not UTF-8 only when the stream ends, and holds a last carriage return back.
struct Guard<S, B> {
    pieces: S,
    /// The piece at hand, and how much of it is used up.
    piece: Option<(B, usize)>,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    /// No line has been read yet, so that a byte order mark may come.
    fresh: bool,
    /// Bytes of the whole lines since the last blank one.
    event_bytes: usize,
    event_bytes_max: usize,
    response_bytes: usize,
    response_bytes_max: usize,
}

impl<S, B, E> Guard<S, B>
where
    S: Stream<Item = Result<B, E>> + Unpin,
    B: AsRef<[u8]>,
    E: From<Error>,
{
    fn new(pieces: S, policy: &RetryPolicy) -> Self {
        Self {
            pieces,
            piece: None,
            line: Vec::new(),
            after_return: false,
            fresh: true,
            event_bytes: 0,
            event_bytes_max: policy.event_bytes_max,
            response_bytes: 0,
            response_bytes_max: policy.response_bytes_max,
        }
    }

    /// The next line, ended by a line feed whatever its end was; `None` at the end of
    /// the stream, also if a line is still open there.
    async fn line(&mut self) -> Result<Option<String>, E> {
        loop {
            if self.split()? {
                return Ok(Some(self.take()?));
            }
            let Some(piece) = self.pieces.try_next().await? else { return Ok(None) };
            self.response_bytes += piece.as_ref().len();
            if self.response_bytes > self.response_bytes_max {
                return Err(Error::StreamTooLarge { bytes_max: self.response_bytes_max }.into());
            }
            self.piece = Some((piece, 0));
        }
    }

    /// Moves bytes of the piece at hand to the line; whether that ended it.
    fn split(&mut self) -> Result<bool, Error> {
        let Some((piece, used)) = &mut self.piece else { return Ok(false) };
        let mut rest = &piece.as_ref()[*used..];
        if let (true, [b'\n', after @ ..]) = (self.after_return, rest) {
            *used += 1;
            rest = after;
        }
        if rest.is_empty() {
            return Ok(false);
        }
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let bytes = &rest[..end.unwrap_or(rest.len())];
        if self.event_bytes + self.line.len() + bytes.len() > self.event_bytes_max {
            return Err(Error::EventTooLarge { bytes_max: self.event_bytes_max });
        }
        self.line.extend_from_slice(bytes);
        self.after_return = end.is_some_and(|end| rest[end] == b'\r');
        *used += bytes.len() + usize::from(end.is_some());
        Ok(end.is_some())
    }

    /// Takes the line, which is whole, as the library is to see it.
    fn take(&mut self) -> Result<String, Error> {
        let line = String::from_utf8(std::mem::take(&mut self.line)).map_err(|_| Error::NotText)?;
        self.event_bytes = if line.is_empty() { 0 } else { self.event_bytes + line.len() + 1 };
        let fresh = std::mem::replace(&mut self.fresh, false);
        let text = if fresh { line.trim_start_matches('\u{feff}') } else { &line };
        // Ids mean nothing here, and the library copies the last one into every event.
        let text = if text.starts_with("id") { ":" } else { text };
        Ok(format!("{text}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use proptest::prelude::*;

    /// The events that come, and what ended them.
    fn split(pieces: &[&[u8]], policy: RetryPolicy) -> (Vec<(String, String)>, Option<Error>) {
        let pieces = stream::iter(pieces.iter().map(Ok::<_, Error>));
        let mut stream = Box::pin(events(pieces, &policy));
        let mut seen = Vec::new();
        loop {
            match stream.try_next().now_or_never().expect("all pieces are there") {
                Ok(Some(event)) => seen.push((event.event, event.data)),
                Ok(None) => return (seen, None),
                Err(error) => return (seen, Some(error)),
            }
        }
    }

    fn events_of(stream: &[u8]) -> Vec<String> {
        let (events, error) = split(&[stream], RetryPolicy::new(0));
        assert_eq!(error, None);
        events.into_iter().map(|(name, data)| format!("{name}: {data}")).collect()
    }

    const STREAM: &[u8] = "\u{feff}event: a\r\ndata: {\"x\":1}\r\n\r\n: a comment\ndata:two\ndata: lines ü\n\nid: 7\n\rdata\r\revent: b\ndata: open".as_bytes();

    #[test]
    fn events_are_split_as_the_standard_says() {
        expect_test::expect![[r#"
            [
                "a: {\"x\":1}",
                "message: two\nlines ü",
                "message: ",
            ]
        "#]]
        .assert_debug_eq(&events_of(STREAM));
    }

    proptest! {
        #[test]
        fn where_the_stream_is_cut_does_not_matter(cuts in proptest::collection::vec(0..STREAM.len(), 0..20)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &STREAM[cut[0]..cut[1]]).collect();
            let policy = RetryPolicy::new(0);
            prop_assert_eq!(split(&pieces, policy), split(&[STREAM], policy));
        }

        #[test]
        fn noise_is_never_a_panic(pieces in proptest::collection::vec("[\u{feff}ü:\r\n i]{0,3}|data|id|event", 0..20)) {
            let pieces: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
            let (_, error) = split(&pieces, RetryPolicy::new(0));
            prop_assert_eq!(error, None);
        }
    }

    #[test]
    fn an_event_comes_with_its_last_byte_whatever_ends_its_lines() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = format!("event: a{end}data: x{end}{end}");
            let least = if end == "\r\n" { stream.len() - 1 } else { stream.len() };
            for length in 0..=stream.len() {
                let events = events_of(&stream.as_bytes()[..length]);
                assert_eq!(events.len(), usize::from(length >= least), "{end:?} {length}");
            }
            let stream: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            assert_eq!(split(&stream, RetryPolicy::new(0)).0.len(), 1);
        }
    }

    #[test]
    fn byte_order_marks_and_ids_at_the_beginning_do_no_harm() {
        for stream in
            ["\u{feff}\u{feff}data: x\n\n", "id: 1\n\u{feff}\ndata: x\n\n", "\ndata: x\n\n"]
        {
            assert_eq!(events_of(stream.as_bytes()), ["message: x"], "{stream:?}");
        }
    }

    #[test]
    fn a_giant_event_is_refused_however_it_comes() {
        let policy = RetryPolicy { event_bytes_max: 17, ..RetryPolicy::new(0) };
        let large = Some(Error::EventTooLarge { bytes_max: 17 });
        for end in ["\n", "\r\n", "\r"] {
            let fits = format!("data: 0123456789{end}{end}").repeat(3);
            let (events, error) = split(&[fits.as_bytes()], policy);
            assert_eq!((events.len(), error), (3, None), "{end:?}");
            for line in ["data: 01234567890", "a: b", ": comment", "id: 1", "data"] {
                let stream = format!("data: x{end}{end}{}", format!("{line}{end}").repeat(9));
                for size in 1..stream.len() {
                    let pieces: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
                    let (events, error) = split(&pieces, policy);
                    assert_eq!((events.len(), &error), (1, &large), "{line} {end:?} {size}");
                }
            }
        }
        assert_eq!(split(&[b"data: 0123", b"45678901"], policy).1, large);
    }

    #[test]
    fn a_giant_stream_is_refused() {
        let policy = RetryPolicy { response_bytes_max: 20, ..RetryPolicy::new(0) };
        let (events, error) = split(&[b"data: 1\n\n", b"data: 2\n\n:\n", b"\n"], policy);
        assert_eq!((events.len(), error), (2, Some(Error::StreamTooLarge { bytes_max: 20 })));
    }

    #[test]
    fn what_is_not_text_is_refused_at_once() {
        for line in ["data: \u{ff}", ": \u{ff}", "\u{ff}"] {
            let line: Vec<u8> = line.chars().map(|c| c as u8).collect();
            let stream = [b"data: x\n\n", &line[..], b"\n\ndata: y\n\n"].concat();
            for size in 1..stream.len() {
                let pieces: Vec<&[u8]> = stream.chunks(size).collect();
                let (events, error) = split(&pieces, RetryPolicy::new(0));
                assert_eq!((events.len(), error), (1, Some(Error::NotText)), "{line:?} {size}");
            }
        }
    }
}
