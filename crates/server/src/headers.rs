//! Which headers requests may come with, for the contract: handlers read them.

use axum::http::HeaderMap;
use outrigger_api::ProblemCode;
use utoipa::IntoParams;

use crate::RequestError;

/// Of what is to be done once, however often it is asked for.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it is a description")]
pub(crate) struct Idempotency {
    /// The same key makes or says one thing, however often it comes. Another request under the key
    /// of one before is refused (409), as far as the server remembers: 10,000 keys, and none from
    /// before it was restarted.
    #[param(rename = "Idempotency-Key")]
    key: Option<String>,
}

/// Of what replaces a version of a file. One of the two has to be there.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it is a description")]
pub(crate) struct Replacement {
    /// The `ETag` of the version that is replaced.
    #[param(rename = "If-Match", pattern = r#"^"[0-9]+"$"#, example = "\"1\"")]
    version: Option<String>,
    /// `*` where there is no such file, or not any more.
    #[param(rename = "If-None-Match", pattern = r"^\*$", example = "*")]
    nothing: Option<String>,
}

/// Of what removes a file. It has to be there.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it is a description")]
pub(crate) struct Removal {
    /// The `ETag` of the version that is removed.
    #[param(rename = "If-Match", pattern = r#"^"[0-9]+"$"#, example = "\"1\"")]
    version: Option<String>,
}

/// Of what is followed from where it was left.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it is a description")]
pub(crate) struct LastEvent {
    /// The place of the last event that is known, which wins over `after`.
    #[param(rename = "Last-Event-ID")]
    seq: Option<u64>,
}

/// From where what is followed goes on. `from` says what the `id` of an event means.
pub(crate) fn last_event<T>(
    headers: &HeaderMap,
    from: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, RequestError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let place = value.to_str().ok().and_then(from);
    place.map(Some).ok_or_else(|| {
        let text = "`Last-Event-ID`: it is the `id` of no event of this stream";
        RequestError::new(ProblemCode::InvalidRequest, text)
    })
}
