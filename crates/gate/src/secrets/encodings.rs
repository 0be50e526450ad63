//! The forms in which a text is found again in others.
//!
//! Owns them: as it is, in hex, in base64 at each of its three places, as it stands in a URL
//! and in a JSON string. Each gives the form of a secret and that of its placeholder the same
//! length, if both have the same shape.

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

/// The forms of a text, each always at the same place.
pub(super) fn forms(text: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let json = serde_json::to_string(text).unwrap_or_default();
    let json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    let mut forms = vec![
        text.to_owned(),
        text.bytes().map(|byte| format!("{byte:02x}")).collect(),
        text.bytes().map(|byte| format!("{byte:02X}")).collect(),
        url(text),
        json.to_owned(),
        json.replace('/', "\\/"),
    ];
    for before in 0..3 {
        forms.push(base64(&STANDARD_NO_PAD, text, before));
        forms.push(base64(&URL_SAFE_NO_PAD, text, before));
    }
    forms.into_iter().map(|form| Zeroizing::new(form.into_bytes())).collect()
}

/// What of it does not depend on what is around it, that many bytes (modulo 3) behind another.
fn base64(engine: &impl base64::Engine, text: &str, before: usize) -> String {
    let mut bytes = Zeroizing::new(vec![0; before]);
    bytes.extend_from_slice(text.as_bytes());
    let encoded = engine.encode(&*bytes);
    // Letters that also have bits of what is before, and of what is behind.
    let first = [0, 2, 3][before];
    let last = bytes.len() * 8 / 6;
    encoded.get(first..last).unwrap_or_default().to_owned()
}

/// As it stands in a query.
pub(super) fn url(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let code = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(code).collect()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn a_text_is_found_in_base64_wherever_it_begins() {
        let text = "ghp_0123456789abcdef";
        let forms = forms(text);
        for before in ["", "a", "ab", "abc", "user:"] {
            for after in ["", "x", "xy", ":password"] {
                let encoded = STANDARD.encode(format!("{before}{text}{after}"));
                let found = forms.iter().any(|form| {
                    let form = std::str::from_utf8(form).unwrap();
                    encoded.contains(form)
                });
                assert!(found, "{before} {after}");
            }
        }
    }

    #[test]
    fn forms_of_one_shape_have_one_length() {
        let lengths = |text| forms(text).iter().map(|form| form.len()).collect::<Vec<_>>();
        assert_eq!(lengths("abc/def+ghi=0"), lengths("zyx/wvu+tsr=9"));
    }
}
