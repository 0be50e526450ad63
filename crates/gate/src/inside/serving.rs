//! How requests from inside are taken off a connection, in any of its forms.
//!
//! Owns the settings of the parser, and the end of a connection that has had its requests.

use std::pin::Pin;

use hyper::Response;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::HttpService;

use super::answer::Denial;
use super::body::Outgoing;
use super::session::Session;
use crate::flow::Refusal;
use crate::host::Target;
use crate::limits;

/// A connection that can be asked to take no more requests.
pub(super) trait Graceful: Future<Output = Result<(), hyper::Error>> {
    /// Ends it after what is under way.
    fn finish(self: Pin<&mut Self>);
}

impl<I, S> Graceful for http1::UpgradeableConnection<I, S>
where
    I: Read + Write + Send + Unpin + 'static,
    S: HttpService<Incoming, ResBody = Outgoing>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// HTTP/1, as strict as hyper is.
pub(super) fn one() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_headers(limits::HEADERS_MAX)
        .max_buf_size(limits::HEAD_BYTES_MAX)
        .auto_date_header(false);
    builder
}

/// Drives a connection to its end. `target`: where all its requests go.
pub(super) async fn drive<C: Graceful>(
    mut connection: Pin<&mut C>,
    session: &Session,
    target: Option<&Target>,
) {
    let result = tokio::select! {
        biased;
        result = &mut connection => result,
        () = session.full() => {
            connection.as_mut().finish();
            connection.await
        }
    };
    // hyper has answered it by itself.
    if result.is_err_and(|error| error.is_parse()) {
        session.refused(target, Refusal::Malformed, None);
    }
}

/// The answer to a head that was not strict.
pub(super) fn faulty(
    session: &Session,
    target: Option<&Target>,
    fault: &str,
) -> Response<Outgoing> {
    session.refused(target, Refusal::Malformed, None);
    Denial::malformed(format!("the request is not passed on: {fault}.")).response()
}
