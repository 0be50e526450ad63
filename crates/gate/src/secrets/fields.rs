//! Secrets in bodies: the fields of a form or of a JSON object, as the endpoints take them at
//! which tokens are asked for (RFC 6749), and the tokens that those answer with.

use serde_json::Value;
use zeroize::Zeroizing;

use super::encodings;
use super::headers::PlacedSecret;

const FORM: &str = "application/x-www-form-urlencoded";

/// Whether a body of this type has fields.
pub(super) fn are_in(content_type: &str) -> bool {
    content_type.starts_with(FORM) || content_type.contains("json")
}

/// The body with the secret in a field that the place names. `None`: it is in none.
pub(super) fn swap(
    secret: PlacedSecret<'_>,
    content_type: &str,
    body: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let named = |name: &str| secret.place.fields.iter().any(|field| field == name);
    if content_type.starts_with(FORM) {
        let text = std::str::from_utf8(body).ok()?;
        let mut found = false;
        let pairs = text.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if named(name) && is(value, secret.placeholder) => {
                found = true;
                format!("{name}={}", encodings::url(secret.value))
            }
            _ => pair.to_owned(),
        });
        let text = Zeroizing::new(pairs.collect::<Vec<_>>().join("&"));
        return found.then(|| Zeroizing::new(text.as_bytes().to_vec()));
    }
    let Ok(Value::Object(mut object)) = serde_json::from_slice(body) else { return None };
    let mut found = false;
    for (name, value) in &mut object {
        if named(name) && value == secret.placeholder {
            *value = Value::String(secret.value.to_owned());
            found = true;
        }
    }
    serde_json::to_vec(&object).ok().filter(|_| found).map(Zeroizing::new)
}

/// Whether a value of a form is a text, as it is or as a form writes it.
fn is(value: &str, text: &str) -> bool {
    value == text || value == encodings::url(text)
}

/// The values of these names in a JSON document, wherever they are.
pub(super) fn values(names: &[String], body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(document) = serde_json::from_slice(body) {
        collect(names, &document, &mut found);
    }
    found
}

fn collect(names: &[String], value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                match value {
                    Value::String(text) if names.contains(name) => found.push(text.clone()),
                    other => collect(names, other, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| collect(names, value, found)),
        _ => {}
    }
}
