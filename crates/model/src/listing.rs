//! The models that a provider offers: one bounded question, without a second attempt.
//!
//! Owns how the lists of all providers are read. What they say is shown to people and
//! compared with names, and nothing else: must never decide what a call may cost.

use outrigger_agent::Price;
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

use crate::attempt::place;
use crate::http::reason;
use crate::{Api, Endpoint, HttpClient, endpoint, limits, prices};

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// Its name there.
    pub name: String,
    /// Tokens that its context holds, if the provider says so.
    pub context_tokens: Option<u64>,
    /// Tokens that one reply may have, if the provider says so.
    pub output_tokens_max: Option<u64>,
    /// What its tokens cost there, if the provider says so.
    pub price: Option<Price>,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The endpoint is wrong.
    #[error(transparent)]
    Endpoint(#[from] endpoint::Error),
    /// Nobody answered.
    #[error("{place} does not answer: {detail}")]
    Unanswered {
        /// The server, with its port.
        place: String,
        /// What is known of it.
        detail: String,
    },
    /// The answer is an error.
    #[error("{place} answered {status} when it was asked for its models")]
    Refused {
        /// The server, with its port.
        place: String,
        /// The HTTP status.
        status: u16,
    },
    /// The answer is no list of models.
    #[error("what {place} answered is no list of models")]
    Unreadable {
        /// The server, with its port.
        place: String,
    },
}

impl Error {
    /// Whether a server is there that refused the key, or wants one.
    #[must_use]
    pub fn is_auth(&self) -> bool {
        matches!(self, Self::Refused { status: 401 | 403, .. })
    }
}

/// Asks for the models of an endpoint, whose own `model` is not looked at.
///
/// # Errors
/// [`Error`], at the latest when `wait` is over.
pub async fn list(
    http: &HttpClient,
    endpoint: &Endpoint,
    wait: Duration,
) -> Result<Vec<ListedModel>, Error> {
    endpoint.check_secrets()?;
    let url = url(endpoint)?;
    let place = place(&url);
    let mut request = reqwest::Request::new(Method::GET, url);
    *request.headers_mut() = endpoint.header_map()?;
    let asked = timeout(wait, ask(http, request, &place)).await;
    let late = || format!("nothing came within {} ms", wait.as_millis());
    let body = asked.map_err(|_| Error::Unanswered { place: place.clone(), detail: late() })??;
    let list: Option<Value> = serde_json::from_slice(&body).ok();
    list.as_ref().and_then(read).ok_or(Error::Unreadable { place })
}

/// Where the list is; on pages, all of it on the first.
fn url(endpoint: &Endpoint) -> Result<Url, endpoint::Error> {
    let (mut url, _) = endpoint.at("models")?;
    url.set_query(match endpoint.api {
        Api::AnthropicMessages => Some("limit=1000"),
        Api::Gemini => Some("pageSize=1000"),
        Api::OpenAiResponses | Api::OpenAiChat => None,
    });
    Ok(url)
}

async fn ask(http: &HttpClient, request: reqwest::Request, place: &str) -> Result<Vec<u8>, Error> {
    let unanswered = |detail| Error::Unanswered { place: place.to_owned(), detail };
    let sent = http.execute(request).await;
    let mut response: Response = sent.map_err(|error| unanswered(error.words()))?;
    if response.status() != StatusCode::OK {
        let status = response.status().as_u16();
        return Err(Error::Refused { place: place.to_owned(), status });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unanswered(reason(error)))? {
        body.extend_from_slice(&chunk);
        if body.len() > limits::LISTING_BYTES_MAX {
            return Err(Error::Unreadable { place: place.to_owned() });
        }
    }
    Ok(body)
}

/// The models of a list in each of its shapes: under `data`, under `models`, or bare.
fn read(list: &Value) -> Option<Vec<ListedModel>> {
    let entries = list.get("data").or(list.get("models")).unwrap_or(list).as_array()?;
    let models =
        entries.iter().filter_map(model).take(limits::LISTED_MODELS_MAX).collect::<Vec<_>>();
    (entries.is_empty() || !models.is_empty()).then_some(models)
}

fn model(entry: &Value) -> Option<ListedModel> {
    let name = entry.get("id").or(entry.get("name"))?.as_str()?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    let plain = !name.is_empty()
        && name.chars().count() <= limits::LISTED_NAME_CHARS_MAX
        && !name.contains(|c: char| c.is_control() || c.is_whitespace());
    let first = |names: &[&str]| {
        names.iter().find_map(|name| entry.get(name)?.as_u64()).filter(|count| *count > 0)
    };
    plain.then(|| ListedModel {
        name: name.to_owned(),
        context_tokens: first(&[
            "context_length",
            "context_window",
            "max_model_len",
            "max_context_length",
            "max_input_tokens",
            "inputTokenLimit",
        ]),
        output_tokens_max: first(&["max_completion_tokens", "max_tokens", "outputTokenLimit"]),
        price: entry.get("pricing").and_then(price),
    })
}

/// Prices as OpenRouter writes them: dollars for one token, as texts.
fn price(pricing: &Value) -> Option<Price> {
    let of = |name: &str| {
        let dollars: f64 = pricing.get(name)?.as_str()?.parse().ok()?;
        prices::micros(dollars * 1_000_000.0)
    };
    let input = of("prompt")?;
    Some(Price {
        input,
        output: of("completion")?,
        cache_read: of("input_cache_read").unwrap_or(input),
        cache_write: of("input_cache_write").unwrap_or(input),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn lists_are_read_in_every_shape() {
        let table = [
            r#"{"object":"list","data":[{"id":"gpt-x","object":"model","owned_by":"openai"}]}"#,
            r#"{"data":[{"type":"model","id":"claude-x","display_name":"X","max_input_tokens":200000,"max_tokens":64000}],"has_more":false}"#,
            r#"{"data":[{"id":"qwen","max_model_len":32768}]}"#,
            r#"{"models":[{"name":"models/gemini-x","inputTokenLimit":1000,"outputTokenLimit":10}]}"#,
            r#"[{"id":"bare","context_length":5,"pricing":{"input":0.1}}]"#,
            r#"{"data":[{"id":"a/b","name":"B","context_length":9,"pricing":{"prompt":"0.000003","completion":"0.000015","input_cache_read":"0.0000003"}}]}"#,
            r#"{"data":[{"id":"auto","pricing":{"prompt":"-1","completion":"-1"}}]}"#,
            r#"{"data":[{"id":"with space"},{"id":7},{"id":"plain"}]}"#,
            r#"{"data":[]}"#,
            r#"{"data":[{"id":7}]}"#,
            r#"{"status":"ok"}"#,
        ];
        let shown: Vec<String> = table
            .iter()
            .map(|text| match read(&serde_json::from_str(text).unwrap()) {
                Some(models) => models.iter().map(shown).collect::<Vec<_>>().join(", "),
                None => "no list".to_owned(),
            })
            .collect();
        expect![[r#"
            gpt-x
            claude-x of 200000, 64000 out
            qwen of 32768
            gemini-x of 1000, 10 out
            bare of 5
            a/b of 9 for 3000000 15000000 300000 3000000
            auto
            plain

            no list
            no list"#]]
        .assert_eq(&shown.join("\n"));
    }

    fn shown(model: &ListedModel) -> String {
        let ListedModel { name, context_tokens, output_tokens_max, price } = model;
        let context = context_tokens.map_or_else(String::new, |tokens| format!(" of {tokens}"));
        let output = output_tokens_max.map_or_else(String::new, |tokens| format!(", {tokens} out"));
        let price = price.map_or_else(String::new, |price| {
            let Price { input, output, cache_read, cache_write } = price;
            format!(" for {input} {output} {cache_read} {cache_write}")
        });
        format!("{name}{context}{output}{price}")
    }
}
