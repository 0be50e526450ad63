//! A way to a server that wants keys in headers: the gate has them, and puts them in.

use outrigger_gate::SealedSecret;
use outrigger_model::HttpClient;
use outrigger_model::endpoint::ServerAddress;
use std::collections::BTreeMap;

use crate::network::caller;
use crate::paths::Paths;
use crate::sealed_keys::{is_for, is_word, sealed};

/// A header, the variable that holds its key, and what stands before the key.
pub(crate) type HeaderVariable<'a> = (&'a str, &'a str, &'static str);

/// What is sent as the key of a server.
enum HeaderKey {
    /// What the gate puts the key in the place of, after what stands before it.
    Sealed { scheme: String, sealed: Box<SealedSecret> },
    /// A word that opens nothing.
    Word(String),
}

/// The key in a variable; the error is what is wrong with it.
fn of(variable: &str, server: &ServerAddress) -> Result<HeaderKey, String> {
    let text = std::env::var(variable).unwrap_or_default();
    match sealed(variable) {
        Some(sealed) if is_for(&sealed, server) => {
            let scheme = if text.is_empty() { text } else { text + " " };
            Ok(HeaderKey::Sealed { scheme, sealed: Box::new(sealed) })
        }
        Some(_) => Err(format!("the key in {variable} is not sent to {}", server.host)),
        None if text.trim().is_empty() => {
            Err(format!("the environment variable {variable} holds no key"))
        }
        None if is_word(&text) => Ok(HeaderKey::Word(text.trim().to_owned())),
        None => Err(format!("the key in {variable} was not handed to the gate")),
    }
}

/// A client of HTTP that reaches a server through the gate, and its headers with placeholders for
/// keys. The error is a sentence.
pub(crate) async fn client(
    paths: &Paths,
    server: &ServerAddress,
    headers: &[HeaderVariable<'_>],
) -> Result<(HttpClient, Vec<(String, String)>), String> {
    let (mut secrets, mut texts) = (BTreeMap::new(), Vec::new());
    for (header, variable, before) in headers {
        match of(variable, server)? {
            HeaderKey::Word(word) => texts.push((*header, (*before).to_owned() + &word, None)),
            HeaderKey::Sealed { scheme, sealed } => {
                texts.push((*header, (*before).to_owned() + &scheme, Some(*variable)));
                secrets.insert(*variable, *sealed);
            }
        }
    }
    let called = caller::call(paths, server, secrets.into_values().collect()).await;
    let (http, placeholders) = called.map_err(|failure| failure.message)?;
    let whole = |(header, text, variable): (&str, String, Option<&str>)| {
        let placeholder = variable.and_then(|variable| placeholders.get(variable));
        (header.to_owned(), text + placeholder.map_or("", String::as_str))
    };
    Ok((http, texts.into_iter().map(whole).collect()))
}
