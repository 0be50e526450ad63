//! The head of a request of HTTP/1, read strictly.
//!
//! Owns what is refused before any parser with opinions sees it (RFC 9112): what two servers
//! could read as different requests is no request. Pure.

use crate::limits;

/// What is wrong with a head, in words.
pub(super) type Fault = &'static str;

/// What comes behind a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes of a body; 0 for none.
    Sized(u64),
    Chunked,
    /// What is not HTTP: the request was CONNECT.
    Tunnel,
}

/// Where a head ends that begins with these bytes, however its lines end.
pub(super) fn end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from.saturating_sub(3);
    loop {
        at += bytes[at..].iter().position(|byte| *byte == b'\n')? + 1;
        match bytes.get(at..)? {
            [b'\r', b'\n', ..] => return Some(at + 2),
            [b'\n', ..] => return Some(at + 1),
            _ => {}
        }
    }
}

/// Whether a byte can stand in a name or method (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Looks at a whole head, its last empty line with it.
pub(super) fn check(head: &[u8]) -> Result<Framing, Fault> {
    let text = head.strip_suffix(b"\r\n\r\n").ok_or("a line ends in LF alone")?;
    let mut lines = text.split(|byte| *byte == b'\n').peekable();
    let first = lines.next().unwrap_or_default();
    let first = if lines.peek().is_some() { without_end(first)? } else { first };
    let (method, version) = request_line(first)?;
    let mut fields = Fields::default();
    let mut count = 0;
    while let Some(line) = lines.next() {
        let line = if lines.peek().is_some() { without_end(line)? } else { line };
        count += 1;
        if count > limits::HEADERS_MAX {
            return Err("it has too many headers");
        }
        fields.take(line)?;
    }
    fields.framing(method, version)
}

fn without_end(line: &[u8]) -> Result<&[u8], Fault> {
    line.strip_suffix(b"\r").ok_or("a line ends in LF alone")
}

/// The method, and whether the version is 1.1.
fn request_line(line: &[u8]) -> Result<(&[u8], bool), Fault> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("its first line is not METHOD TARGET VERSION");
    };
    let method_fits = (1..=limits::METHOD_BYTES_MAX).contains(&method.len());
    if !method_fits || !method.iter().copied().all(is_token) {
        return Err("it has no method");
    }
    if method == b"TRACE" {
        return Err("TRACE is not passed on");
    }
    let plain = |byte: &u8| byte.is_ascii_graphic() && *byte != b'#';
    if target.is_empty() || !target.iter().all(plain) {
        return Err("its target has characters that no target has");
    }
    match version {
        b"HTTP/1.1" => Ok((method, true)),
        b"HTTP/1.0" => Ok((method, false)),
        _ => Err("it is not of HTTP/1.1"),
    }
}

/// What of the headers says where a request ends and whom it is for.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    chunked: bool,
    hosts: u32,
}

impl Fields {
    fn take(&mut self, line: &[u8]) -> Result<(), Fault> {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err("a header goes on in another line");
        }
        let at = line.iter().position(|byte| *byte == b':').ok_or("a header has no colon")?;
        let (name, value) = (&line[..at], line[at + 1..].trim_ascii());
        if name.is_empty() || !name.iter().copied().all(is_token) {
            return Err("a header has a name that no header has");
        }
        let plain = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        if !line[at + 1..].iter().all(plain) {
            return Err("a header has control characters");
        }
        let name = name.to_ascii_lowercase();
        match name.as_slice() {
            b"host" => {
                self.hosts += 1;
                if self.hosts > 1 {
                    return Err("it names several hosts");
                }
            }
            b"content-length" => {
                let digits = value.iter().all(u8::is_ascii_digit);
                let length = std::str::from_utf8(value).ok().filter(|_| digits);
                let length = length.and_then(|text| text.parse().ok());
                let length = length.ok_or("its length is not a number")?;
                if self.length.replace(length).is_some() {
                    return Err("it has several lengths");
                }
            }
            b"transfer-encoding" => {
                if self.chunked {
                    return Err("it has several transfer encodings");
                }
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err("it has a transfer encoding other than chunked");
                }
                self.chunked = true;
            }
            // Some servers take the one for the other.
            b"content_length" | b"transfer_encoding" => {
                return Err("a header has a name that some read as its length");
            }
            _ => {}
        }
        Ok(())
    }

    fn framing(&self, method: &[u8], version_1_1: bool) -> Result<Framing, Fault> {
        if self.hosts == 0 && version_1_1 {
            return Err("it names no host");
        }
        match (self.length, self.chunked) {
            (Some(_), true) => Err("it has both a length and a transfer encoding"),
            (None, true) if !version_1_1 => Err("HTTP/1.0 has no transfer encodings"),
            (Some(1..), false) | (None, true) if method == b"CONNECT" => Err("CONNECT has no body"),
            (None | Some(0), false) if method == b"CONNECT" => Ok(Framing::Tunnel),
            (None, true) => Ok(Framing::Chunked),
            (length, false) => Ok(Framing::Sized(length.unwrap_or(0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str) -> Result<Framing, Fault> {
        assert_eq!(end(head.as_bytes(), 0), Some(head.len()), "{head:?}");
        check(head.as_bytes())
    }

    #[test]
    fn heads_say_what_follows() {
        assert_eq!(of("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(Framing::Sized(0)));
        assert_eq!(of("GET / HTTP/1.0\r\n\r\n"), Ok(Framing::Sized(0)));
        assert_eq!(
            of("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n"),
            Ok(Framing::Sized(12))
        );
        assert_eq!(
            of("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"),
            Ok(Framing::Chunked)
        );
        assert_eq!(of("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"), Ok(Framing::Tunnel));
    }

    #[test]
    fn heads_end_where_any_server_sees_their_end() {
        assert_eq!(end(b"a\r\nb\r\n\r\nc", 0), Some(8));
        assert_eq!(end(b"a\nb\n\nc", 0), Some(5));
        assert_eq!(end(b"a\n\r\nc", 0), Some(4));
        assert_eq!(end(b"a\r\nb\r\n\r", 0), None);
        assert_eq!(end(b"a\r\nb\r\n\r\n", 7), Some(8));
        assert_eq!(end(b"", 0), None);
    }
}
