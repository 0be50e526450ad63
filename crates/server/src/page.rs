//! The page: files that are a part of the program.
//!
//! Owns what a browser may do with it: scripts and styles of ours alone, nothing inline,
//! nothing from elsewhere, no frame around it. What the page shows is hostile.

use axum::extract::{Path, State as Extract};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use include_dir::{Dir, include_dir};
use outrigger_agent::Digest;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use crate::RequestError;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/ui");

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
pub(crate) struct Files(Arc<BTreeMap<String, File>>);

impl Files {
    pub(crate) fn compress() -> Self {
        let mut files = BTreeMap::new();
        add(&FILES, &mut files);
        Self(Arc::new(files))
    }

    fn answer(&self, path: &str, headers: &HeaderMap) -> Response {
        let Some(file) = self.0.get(path) else {
            return RequestError::not_found(format!("there is no page `{path}`")).into_response();
        };
        // QueryParams anew each time, so that a new program has its own page at once.
        let fresh = [
            (header::ETAG, file.etag.clone()),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
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

fn add(dir: &Dir<'_>, files: &mut BTreeMap<String, File>) {
    for file in dir.files() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        // Into memory, which does not fail.
        let compressed = gzip.write_all(file.contents()).and_then(|()| gzip.finish());
        let Ok(gzip) = compressed else { continue };
        let digest = Digest::of(file.contents());
        let Ok(etag) = HeaderValue::from_str(&format!("\"{}\"", &digest.as_str()[..16])) else {
            continue;
        };
        let path = file.path().to_string_lossy().into_owned();
        files.insert(path.clone(), File { kind: kind(&path), etag, gzip });
    }
    dir.dirs().for_each(|dir| add(dir, files));
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

/// A file of it.
pub(crate) async fn file(
    Extract(files): Extract<Files>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    files.answer(&path, &headers)
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
