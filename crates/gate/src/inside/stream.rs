//! Bytes that are passed on as they are, both ways at once.
//!
//! Owns that each is counted before it leaves, and that the end of one way is the end of that way
//! alone.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::limits;
use crate::sandbox::Row;

/// Passes bytes on until one side has broken off or both have ended.
///
/// # Errors
/// As the side says that broke off; also where nothing more may be sent ([`Row::is_spent`]).
pub(super) async fn pass(
    inside: impl AsyncRead + AsyncWrite,
    outside: impl AsyncRead + AsyncWrite,
    row: &Row,
) -> io::Result<()> {
    let (from_inside, to_inside) = tokio::io::split(inside);
    let (from_outside, to_outside) = tokio::io::split(outside);
    let out = pump(from_inside, to_outside, |bytes| row.sent(bytes));
    let back = pump(from_outside, to_inside, |bytes| {
        row.received(bytes);
        true
    });
    tokio::try_join!(out, back).map(drop)
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: impl Fn(usize) -> bool,
) -> io::Result<()> {
    let mut space = vec![0; limits::STREAM_BYTES];
    loop {
        let length = from.read(&mut space).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        if !count(length) {
            return Err(io::Error::other("nothing more may be sent"));
        }
        to.write_all(&space[..length]).await?;
        to.flush().await?;
    }
}
