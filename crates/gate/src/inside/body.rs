//! Bodies on their way through.
//!
//! Owns that each byte is counted and none is kept.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use super::activity::UnderWay;
use crate::sandbox::Row;

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
    body: Incoming,
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
    pub(super) fn text(text: String) -> Self {
        Self::Text(Some(text.into()))
    }

    pub(super) fn empty() -> Self {
        Self::Text(None)
    }

    pub(super) fn to_outside(body: Incoming, row: Arc<Row>) -> Self {
        Self::Stream(Counted { body, row, way: Way::Outside })
    }

    pub(super) fn to_inside(body: Incoming, row: Arc<Row>, under_way: UnderWay) -> Self {
        Self::Stream(Counted { body, row, way: Way::Inside(under_way) })
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let counted = match self.get_mut() {
            Self::Text(text) => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Stream(counted) => counted,
        };
        let frame = ready!(Pin::new(&mut counted.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            match counted.way {
                Way::Outside => counted.row.sent(data.len()),
                Way::Inside(_) => counted.row.received(data.len()),
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Text(text) => text.is_none(),
            Self::Stream(counted) => counted.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(counted) => counted.body.size_hint(),
        }
    }
}
