//! Bodies on their way through.
//!
//! Owns that each byte is counted, and that none is kept but what may begin a secret.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use super::activity::UnderWay;
use super::sieve::Sieve;
use crate::sandbox::Row;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body that goes out of the gate on either side.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// Words of the gate.
    Text(Option<Bytes>),
    /// What comes in on the other side.
    Stream(Counted),
}

/// A body that is counted.
#[derive(Debug)]
pub(super) struct Counted {
    /// What was read of it already.
    first: VecDeque<Bytes>,
    body: Incoming,
    /// What looks for secrets in it.
    sieve: Option<Box<Sieve>>,
    trailers: Option<Frame<Bytes>>,
    row: Arc<Row>,
    way: Way,
}

/// Where a body goes.
#[derive(Debug)]
enum Way {
    Outside,
    /// The request is under way until the answer is given.
    Inside(#[expect(dead_code, reason = "it counts by being dropped")] UnderWay),
}

impl Outgoing {
    pub(super) fn text(text: Vec<u8>) -> Self {
        Self::Text(Some(text.into()))
    }

    pub(super) fn empty() -> Self {
        Self::Text(None)
    }

    pub(super) fn to_outside(
        first: Vec<Bytes>,
        body: Incoming,
        sieve: Option<Sieve>,
        row: Arc<Row>,
    ) -> Self {
        let (first, sieve) = (first.into(), sieve.map(Box::new));
        Self::Stream(Counted { first, body, sieve, trailers: None, row, way: Way::Outside })
    }

    pub(super) fn to_inside(
        first: Vec<Bytes>,
        body: Incoming,
        sieve: Option<Sieve>,
        row: Arc<Row>,
        under_way: UnderWay,
    ) -> Self {
        let (first, sieve) = (first.into(), sieve.map(Box::new));
        let way = Way::Inside(under_way);
        Self::Stream(Counted { first, body, sieve, trailers: None, row, way })
    }
}

/// Why a body ends before its end.
#[derive(Debug, thiserror::Error)]
#[error("the placeholder of a secret is in it")]
struct HasPlaceholder;

/// Why a body ends before its end.
#[derive(Debug, thiserror::Error)]
#[error("nothing more may be sent")]
struct Spent;

impl Counted {
    /// How many bytes come beside those of the body.
    fn coming(&self) -> u64 {
        let first: usize = self.first.iter().map(Bytes::len).sum();
        let held = self.sieve.as_ref().map_or(0, |sieve| sieve.held_bytes());
        first as u64 + held
    }

    /// The next frame as it comes.
    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(first) = self.first.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(trailers)));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)))
    }

    /// Whether it may go on.
    fn count(&self, data: &Bytes) -> bool {
        match self.way {
            Way::Outside => return self.row.sent(data.len()),
            Way::Inside(_) => self.row.received(data.len()),
        }
        true
    }

    /// The next frame as it goes on. `None`: all of it was held back.
    fn sift(
        &mut self,
        frame: Option<Frame<Bytes>>,
    ) -> Option<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(sieve) = &mut self.sieve else { return Some(frame.map(Ok)) };
        let (piece, trailers) = match frame.map(Frame::into_data) {
            Some(Ok(data)) => (sieve.piece(data), None),
            Some(Err(trailers)) => (sieve.rest(), Some(sieve.trailers(trailers))),
            None => match sieve.rest() {
                Some(rest) if rest.is_empty() => return Some(None),
                rest => (rest, None),
            },
        };
        let Some(piece) = piece else { return Some(Some(Err(HasPlaceholder.into()))) };
        match (piece.is_empty(), trailers) {
            (true, None) => None,
            (true, trailers) => Some(trailers.map(Ok)),
            (false, trailers) => {
                self.trailers = trailers;
                Some(Some(Ok(Frame::data(piece))))
            }
        }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let counted = match self.get_mut() {
            Self::Text(text) => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Stream(counted) => counted,
        };
        loop {
            let frame = match ready!(counted.poll_next(context)).transpose() {
                Ok(frame) => frame,
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            let data = frame.as_ref().and_then(Frame::data_ref);
            if data.is_some_and(|data| !counted.count(data)) {
                return Poll::Ready(Some(Err(Spent.into())));
            }
            if let Some(frame) = counted.sift(frame) {
                return Poll::Ready(frame);
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Text(text) => text.is_none(),
            Self::Stream(counted) => counted.coming() == 0 && counted.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let counted = match self {
            Self::Text(text) => {
                return SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64);
            }
            Self::Stream(counted) => counted,
        };
        let (hint, coming) = (counted.body.size_hint(), counted.coming());
        let mut all = SizeHint::new();
        all.set_lower(hint.lower() + coming);
        if let Some(upper) = hint.upper() {
            all.set_upper(upper + coming);
        }
        all
    }
}
