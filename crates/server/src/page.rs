//! The page: files that are a part of the program.
//!
//! Owns what a browser may do with it: scripts and styles of ours alone, nothing inline,
//! nothing from elsewhere, no frame around it. What the page shows is hostile.

use axum::extract::{Path, State as Extract};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use include_dir::{Dir, include_dir};
use outrigger_agent::{Digest, SessionId};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use crate::RequestError;
use crate::error::CHALLENGE;

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/ui");

/// What the page of a session shows at once.
const NEWEST_EVENTS: usize = 60;

/// For every answer.
pub(crate) const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; \
             form-action 'self'; frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// A file of the page.
#[derive(Debug)]
struct File {
    kind: &'static str,
    etag: HeaderValue,
    gzip: Vec<u8>,
}

/// All files of the page, compressed once.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    files: Arc<BTreeMap<String, File>>,
    /// Of the contents of all of them: in an address that has it a file never changes.
    version: Arc<str>,
}

impl Files {
    pub(crate) fn compress() -> Self {
        let mut contents = Vec::new();
        collect(&FILES, &mut contents);
        let all: Vec<u8> =
            contents.iter().flat_map(|(_, content)| content.iter().copied()).collect();
        let version: Arc<str> = Digest::of(&all).as_str()[..12].into();
        let mut files = BTreeMap::new();
        for (path, content) in contents {
            let content = match path.as_str() {
                "index.html" => String::from_utf8_lossy(content)
                    .replace("\"/ui/", &format!("\"/ui/{version}/"))
                    .into_bytes(),
                _ => content.to_vec(),
            };
            files.extend(File::compress(&path, &content).map(|file| (path, file)));
        }
        Self { files: Arc::new(files), version }
    }

    fn answer(&self, path: &str, headers: &HeaderMap) -> Response {
        let of_version = path.strip_prefix(&*self.version).and_then(|path| path.strip_prefix('/'));
        let Some(file) = self.files.get(of_version.unwrap_or(path)) else {
            return RequestError::not_found(format!("there is no page `{path}`")).into_response();
        };
        let cached = match of_version {
            Some(_) => "max-age=31536000, immutable",
            // Asked anew each time, so that a new program has its own page at once.
            None => "no-cache",
        };
        let fresh = [
            (header::ETAG, file.etag.clone()),
            (header::CACHE_CONTROL, HeaderValue::from_static(cached)),
        ];
        if headers.get(header::IF_NONE_MATCH) == Some(&file.etag) {
            return (StatusCode::NOT_MODIFIED, fresh).into_response();
        }
        let kind = [
            (header::CONTENT_TYPE, HeaderValue::from_static(file.kind)),
            (header::CONTENT_ENCODING, HeaderValue::from_static("gzip")),
        ];
        (fresh, kind, file.gzip.clone()).into_response()
    }
}

impl File {
    fn compress(path: &str, content: &[u8]) -> Option<Self> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        // Into memory, which does not fail.
        let gzip = gzip.write_all(content).and_then(|()| gzip.finish()).ok()?;
        let etag = format!("\"{}\"", &Digest::of(content).as_str()[..16]);
        Some(Self { kind: kind(path), etag: HeaderValue::from_str(&etag).ok()?, gzip })
    }
}

fn collect(dir: &Dir<'static>, contents: &mut Vec<(String, &'static [u8])>) {
    let files = dir.files();
    contents
        .extend(files.map(|file| (file.path().to_string_lossy().into_owned(), file.contents())));
    dir.dirs().for_each(|dir| collect(dir, contents));
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "webmanifest" => "application/manifest+json",
        _ => "text/plain; charset=utf-8",
    }
}

/// The page itself, whatever place in it an address names.
pub(crate) async fn index(Extract(files): Extract<Files>, headers: HeaderMap) -> Response {
    files.answer("index.html", &headers)
}

/// The page at a session: what its scripts ask for first is on its way before they are.
pub(crate) async fn session(
    Extract(files): Extract<Files>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let page = files.answer("index.html", &headers);
    // As `ui/feed.js` and `ui/live.js` ask for it, or it would be asked for twice.
    let links = SessionId::new(id).and_then(|id| {
        let session = format!("/v1/sessions/{id}");
        let events = format!("{session}/events?last={NEWEST_EVENTS}");
        let link = |path: &str| format!("<{path}>; rel=preload; as=fetch; crossorigin");
        let links = ["/v1/server", &session, &events].map(link).join(", ");
        HeaderValue::from_str(&links).ok()
    });
    match links {
        Some(links) => ([(header::LINK, links)], page).into_response(),
        None => page,
    }
}

/// A file of it.
pub(crate) async fn file(
    Extract(files): Extract<Files>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    files.answer(&path, &headers)
}

/// What a browser that knows no better asks for.
pub(crate) async fn favicon(Extract(files): Extract<Files>, headers: HeaderMap) -> Response {
    files.answer("icon.svg", &headers)
}

/// An address that there is not: the page says so to people, a problem to programs.
pub(crate) async fn unknown(
    Extract(files): Extract<Files>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if method == Method::GET && accepts.is_some_and(|accept| accept.contains("text/html")) {
        return (StatusCode::NOT_FOUND, files.answer("index.html", &HeaderMap::new()))
            .into_response();
    }
    RequestError::not_found("there is nothing at this address").into_response()
}

/// A page that goes on to another place here: so that it is this site that leads there, and the
/// browser brings its new cookie along. `to` begins with a slash.
pub(crate) fn leads_to(to: &str) -> impl IntoResponse + use<> {
    let to = to.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Outrigger</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={to}\"><p><a href=\"{to}\">Go on</a>"
    );
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page)
}

/// A page that says why nobody was logged in, and what to do.
pub(crate) fn says(error: &RequestError) -> impl IntoResponse + use<> {
    let plain = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let hints: String = error.hints.iter().map(|hint| format!("<p>{}", plain(hint))).collect();
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Outrigger</title><h1>You are not logged in</h1>\
         <p>{}{hints}",
        plain(&error.detail)
    );
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    let headers = [(header::CONTENT_TYPE, html), (header::WWW_AUTHENTICATE, CHALLENGE)];
    (StatusCode::UNAUTHORIZED, headers, page)
}
