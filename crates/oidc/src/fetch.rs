//! One bounded question to a server of a provider.

use outrigger_model::HttpClient;
use reqwest::{Request, Response};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

use crate::error::quoted;
use crate::{Error, limits};

/// The object that a server answers with.
pub(crate) async fn object(http: &HttpClient, request: Request) -> Result<Value, Error> {
    let url = request.url().to_string();
    let wait = Duration::from_millis(limits::ANSWER_MS_MAX);
    let late = || Error::Unreached {
        url: url.clone(),
        detail: format!("nothing came within {} s", limits::ANSWER_MS_MAX / 1_000),
    };
    let (status, body) = timeout(wait, ask(http, request, &url)).await.map_err(|_| late())??;
    let object = serde_json::from_slice::<Value>(&body).ok().filter(Value::is_object);
    if !(200..300).contains(&status) {
        let said = object.as_ref().and_then(refusal).unwrap_or_default();
        return Err(Error::provider(&url, format!("it answered {status}{said}")));
    }
    object.ok_or_else(|| Error::provider(&url, "what it answered is no JSON object"))
}

/// What an error says for itself (RFC 6749, 5.2).
fn refusal(object: &Value) -> Option<String> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(quoted);
    let error = text("error")?;
    let description = text("error_description").map(|it| format!(": {it}"));
    Some(format!(", {error}{}", description.unwrap_or_default()))
}

async fn ask(http: &HttpClient, request: Request, url: &str) -> Result<(u16, Vec<u8>), Error> {
    let unreached = |detail: String| Error::Unreached { url: url.to_owned(), detail };
    let answered = http.execute(request).await.map_err(|error| unreached(error.words()))?;
    let status = answered.status().as_u16();
    Ok((status, body(answered, url).await?))
}

async fn body(mut answer: Response, url: &str) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let broken = |_| Error::Unreached {
        url: url.to_owned(),
        detail: "the connection broke in the middle of its answer".to_owned(),
    };
    while let Some(piece) = answer.chunk().await.map_err(broken)? {
        if body.len() + piece.len() > limits::ANSWER_BYTES_MAX {
            let detail = format!("it answered more than {} bytes", limits::ANSWER_BYTES_MAX);
            return Err(Error::provider(url, detail));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}
