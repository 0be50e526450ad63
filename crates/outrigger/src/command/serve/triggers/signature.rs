//! How other systems sign what they send: GitHub, and Standard Webhooks (standardwebhooks.com),
//! which Stripe's, Svix's and others' descend from.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_server::HeaderMap;

use crate::limits;

/// A message with what it is signed by.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SignedMessage {
    /// By which the one who sent it knows it, so that it is taken once.
    pub(super) id: String,
    /// What is signed.
    pub(super) message: Vec<u8>,
    /// One of them has to be right.
    pub(super) signatures: Vec<Vec<u8>>,
}

impl SignedMessage {
    /// Nothing for what is not signed, or was signed too long ago.
    pub(super) fn read(headers: &HeaderMap, body: &[u8], now_ms: u64) -> Option<Self> {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        if let Some(signature) = text("x-hub-signature-256") {
            let signature = bytes_of_hex(signature.strip_prefix("sha256=")?)?;
            let id = text("x-github-delivery")?.to_owned();
            return Some(Self { id, message: body.to_vec(), signatures: vec![signature] });
        }
        let (id, at) = (text("webhook-id")?, text("webhook-timestamp")?);
        let at_ms = at.parse::<u64>().ok()?.checked_mul(1_000)?;
        if now_ms.abs_diff(at_ms) > limits::WEBHOOK_LATE_MS_MAX {
            return None;
        }
        let all = text("webhook-signature")?.split(' ').filter_map(|one| one.strip_prefix("v1,"));
        let all = all.filter_map(|one| STANDARD.decode(one).ok());
        let signatures = all.take(limits::WEBHOOK_SIGNATURES_MAX).collect();
        let message = [id.as_bytes(), b".", at.as_bytes(), b".", body].concat();
        Some(Self { id: id.to_owned(), message, signatures })
    }
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&'static str, &str)], now_ms: u64) -> Option<SignedMessage> {
        let of =
            |(name, value): &(&'static str, &str)| (name.parse().unwrap(), value.parse().unwrap());
        SignedMessage::read(&headers.iter().map(of).collect(), b"{}", now_ms)
    }

    #[test]
    fn as_github_signs() {
        let signed = [("x-hub-signature-256", "sha256=00fF"), ("x-github-delivery", "d-1")];
        let read_as = read(&signed, 0).unwrap();
        assert_eq!((read_as.id.as_str(), &read_as.message[..]), ("d-1", &b"{}"[..]));
        assert_eq!(read_as.signatures, [[0, 255]]);
        assert_eq!(read(&signed[..1], 0), None);
        for wrong in ["00ff", "sha256=0", "sha256=0g", "sha1=00ff"] {
            assert_eq!(read(&[("x-hub-signature-256", wrong), signed[1]], 0), None, "{wrong}");
        }
    }

    #[test]
    fn as_standard_webhooks_sign() {
        let signed = [
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", "1000"),
            ("webhook-signature", "v1,AAE= v2,AAE= v1,AAI="),
        ];
        let read_as = read(&signed, 1_000_000 + limits::WEBHOOK_LATE_MS_MAX).unwrap();
        assert_eq!(read_as.message, b"msg_1.1000.{}");
        assert_eq!(read_as.signatures, [[0, 1], [0, 2]]);
        assert_eq!(read(&signed, 1_000_001 + limits::WEBHOOK_LATE_MS_MAX), None);
        assert_eq!(read(&signed[..2], 1_000_000), None);
    }
}
