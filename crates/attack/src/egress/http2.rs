//! HTTP/2 written by hand (RFC 9113), because no client would write what attacks need.
//!
//! Owns frames and the few forms of headers (RFC 7541) that they take.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::world::GateRoom;

/// Symbols whose codes of Huffman have five bits, in their order (RFC 7541, Appendix B).
const SHORT: &str = "012aceiost";
/// Flags of a frame of headers that is whole and ends its stream, and of one that ends it.
pub(super) const WHOLE: u8 = 5;
/// See [`WHOLE`].
pub(super) const GOES_ON: u8 = 1;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What a client says first, with settings.
pub(super) fn preface(settings: &[u8]) -> Vec<u8> {
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, settings)].concat()
}

pub(super) fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(1, flags, stream, block)
}

/// A header without an index and as it is.
pub(super) fn literal(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap_or(0x7f).min(0x7e);
    [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
}

pub(super) fn head(authority: &str, path: &str) -> Vec<u8> {
    [(":method", "GET"), (":scheme", "https"), (":path", path), (":authority", authority)]
        .iter()
        .flat_map(|(name, value)| literal(name, value))
        .collect()
}

/// A text of [`SHORT`] symbols, as Huffman's code has it.
pub(super) fn packed(text: &str) -> Vec<u8> {
    let code = |symbol| SHORT.find(symbol).and_then(|at| u8::try_from(at).ok()).unwrap_or_default();
    let bits = text.chars().flat_map(|it| (0..5).rev().map(move |bit| code(it) >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |all, bit| all << 1 | bit)).collect()
}

/// Streams that the other side ended.
fn ended(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let [high, middle, low, kind, flags, ..] = *bytes {
        count += usize::from(matches!(kind, 0 | 1) && flags & 1 == 1);
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    count
}

/// Sends frames in a tunnel to `good.test`, until so many streams were answered, the gate hung
/// up, or the time is over. Gives what came, and whether it hung up.
pub(super) async fn exchange(
    room: &GateRoom,
    sent: &[u8],
    answers: usize,
    limit_ms: u64,
) -> Result<(Vec<u8>, bool), String> {
    let tunnel = room.tunnel("good.test:443", Some("good.test"), &room.authority, &[b"h2"]).await?;
    let tunnel = tunnel.ok_or("no tunnel for HTTP/2")?;
    let (mut reading, mut writing) = tokio::io::split(tunnel);
    let (mut came, mut closed) = (Vec::new(), false);
    let read = async {
        while ended(&came) < answers && !closed {
            closed = !matches!(reading.read_buf(&mut came).await, Ok(1..));
        }
    };
    let write = async {
        // What hangs up while it is sent to is seen by the other half.
        let _ = writing.write_all(sent).await;
        let _ = writing.flush().await;
        std::future::pending::<()>().await;
    };
    let both = async {
        tokio::select! {
            () = read => {}
            () = write => {}
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(limit_ms), both).await;
    Ok((came, closed))
}
