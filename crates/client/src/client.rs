//! Requests and their answers.

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, TryStreamExt as _};
use outrigger_api::{ProblemDetails, UploadedWorkspace};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use crate::error::deepest;
use crate::{Error, limits};

/// A server, and the key by which it knows who asks. Cheap to copy.
#[derive(Debug, Clone)]
pub struct ServerClient {
    http: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
}

/// What one saw where something is changed: if it stands otherwise by then, nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenRevision {
    /// Nothing was there.
    Nothing,
    /// It was at this one.
    At(u64),
}

impl SeenRevision {
    fn said(self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Nothing => request.header(IF_NONE_MATCH, "*"),
            Self::At(revision) => request.header(IF_MATCH, format!("\"{revision}\"")),
        }
    }
}

/// A path with what stands behind the question mark, written as it has to be.
///
/// # Panics
/// Never: the address is one.
#[must_use]
pub fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://server").expect("it is an address");
    url.query_pairs_mut().extend_pairs(query);
    format!("{path}?{}", url.query().unwrap_or_default())
}

impl ServerClient {
    /// A client of the server at an address such as `https://agents.example.com`. Proxies that
    /// the environment names are used.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::Key`], [`Error::Machine`].
    pub fn new(server: &str, key: &str) -> Result<Self, Error> {
        let address = || Error::Address(server.to_owned());
        let base = Url::parse(server).map_err(|_| address())?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(address());
        }
        let header = Zeroizing::new(format!("Bearer {key}"));
        let mut authorization = HeaderValue::from_str(&header).map_err(|_| Error::Key)?;
        authorization.set_sensitive(true);
        let http = connections().build().map_err(Error::Machine)?;
        Ok(Self { http, base, authorization })
    }

    /// As it is, over connections of HTTP/1.1.
    pub(crate) fn over_http1(&self) -> Result<Self, Error> {
        let http = connections().http1_only().build().map_err(Error::Machine)?;
        Ok(Self { http, ..self.clone() })
    }

    /// Its address.
    #[must_use]
    pub fn server(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Asks for something by its path, such as `/v1/server`.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.read(self.request(Method::GET, path)).await
    }

    /// Asks for something that is large and no JSON.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn get_bytes(&self, path: &str) -> Result<Vec<u8>, Error> {
        let answer = self.sent(self.request(Method::GET, path)).await?;
        self.whole(answer, limits::ARCHIVE_BYTES_MAX).await
    }

    /// Asks for something that may be larger than memory.
    ///
    /// # Errors
    /// What goes wrong; of the pieces [`Error::Broken`].
    pub async fn get_pieces(
        &self,
        path: &str,
    ) -> Result<impl Stream<Item = Result<Vec<u8>, Error>> + use<>, Error> {
        let answer = self.sent(self.request(Method::GET, path)).await?;
        let client = self.clone();
        let pieces = answer.bytes_stream().map_err(move |error| client.broken(&error));
        Ok(pieces.map_ok(|piece| piece.to_vec()))
    }

    /// Puts a file in its place as it is, and says of each piece how long it is.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn put_file(
        &self,
        path: &str,
        file: File,
        sent: impl Fn(usize) + Send + 'static,
    ) -> Result<(), Error> {
        let pieces = futures_util::stream::try_unfold(file, move |mut file| {
            let read = read_piece(&mut file).map(|piece| {
                sent(piece.len());
                (!piece.is_empty()).then_some((piece, file))
            });
            std::future::ready(read)
        });
        let request =
            self.request(Method::PUT, path).header(CONTENT_TYPE, "application/octet-stream");
        self.sent(request.body(Body::wrap_stream(pieces))).await.map(drop)
    }

    /// Sends something, and reads an answer that is no JSON.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn post_bytes(&self, path: &str, body: &impl Serialize) -> Result<Vec<u8>, Error> {
        let answer = self.sent(self.request(Method::POST, path).json(body)).await?;
        self.whole(answer, limits::ANSWER_BYTES_MAX).await
    }

    /// Sends something, and reads the answer.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.read(self.request(Method::POST, path).json(body)).await
    }

    /// Sends something once, however often the connection breaks: the server knows the request
    /// again by this key.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: &str,
    ) -> Result<T, Error> {
        let request = || self.request(Method::POST, path).header("idempotency-key", key).json(body);
        match self.read(request()).await {
            Err(Error::Broken { .. }) => self.read(request()).await,
            done => done,
        }
    }

    /// Sends something to which nothing but that it was done is answered.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn command(&self, path: &str, body: &impl Serialize) -> Result<(), Error> {
        self.sent(self.request(Method::POST, path).json(body)).await.map(drop)
    }

    /// Does that once, however often it is sent: the server knows the request again by this key.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn command_once(
        &self,
        path: &str,
        body: &impl Serialize,
        key: &str,
    ) -> Result<(), Error> {
        let request = self.request(Method::POST, path).header("idempotency-key", key);
        self.sent(request.json(body)).await.map(drop)
    }

    /// Puts something in its place, and reads the answer.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.read(self.request(Method::PUT, path).json(body)).await
    }

    /// Puts something in its place, to which nothing but that it was done is answered.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn set(&self, path: &str, body: &impl Serialize) -> Result<(), Error> {
        self.sent(self.request(Method::PUT, path).json(body)).await.map(drop)
    }

    /// Puts something in the place of what one saw, and reads the answer.
    ///
    /// # Errors
    /// What goes wrong; a problem where it stands otherwise by now.
    pub async fn put_over<T: DeserializeOwned>(
        &self,
        path: &str,
        seen: SeenRevision,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.read(seen.said(self.request(Method::PUT, path)).json(body)).await
    }

    /// Sends something that changes what one saw, and reads the answer.
    ///
    /// # Errors
    /// As [`Self::put_over`].
    pub async fn post_over<T: DeserializeOwned>(
        &self,
        path: &str,
        seen: SeenRevision,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.read(seen.said(self.request(Method::POST, path)).json(body)).await
    }

    /// Removes what one saw, and reads the answer.
    ///
    /// # Errors
    /// As [`Self::put_over`].
    pub async fn delete_seen<T: DeserializeOwned>(
        &self,
        path: &str,
        seen: SeenRevision,
    ) -> Result<T, Error> {
        self.read(seen.said(self.request(Method::DELETE, path))).await
    }

    /// Removes something.
    ///
    /// # Errors
    /// What goes wrong.
    pub async fn delete(&self, path: &str) -> Result<(), Error> {
        self.sent(self.request(Method::DELETE, path)).await.map(drop)
    }

    /// Sends the archive of a directory. It is compressed on the way.
    ///
    /// # Errors
    /// What goes wrong; [`Error::Read`] where the archive can't be read.
    pub async fn upload(&self, archive: File) -> Result<UploadedWorkspace, Error> {
        let (pieces, queue) = mpsc::channel(2);
        let compressing = tokio::task::spawn_blocking(move || compress(archive, pieces));
        let body = futures_util::stream::unfold(queue, async |mut queue| {
            Some((queue.recv().await?, queue))
        });
        let request = self.request(Method::POST, "/v1/workspaces");
        let request = request.header(CONTENT_TYPE, "application/gzip");
        let uploaded = self.read(request.body(Body::wrap_stream(body))).await;
        match compressing.await {
            // A server that refused it read no further.
            Ok(Err(source)) if source.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Error::Read(source))
            }
            _ => uploaded,
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let address = format!("{}{path}", self.server());
        self.http.request(method, address).header(AUTHORIZATION, self.authorization.clone())
    }

    /// The answer to a request, where the server did it.
    pub(crate) async fn sent(&self, request: RequestBuilder) -> Result<Response, Error> {
        let answer = request.send().await.map_err(|error| {
            let (server, why) = (self.server().to_owned(), deepest(&error));
            match error.is_connect() {
                true => Error::Unreached { server, why },
                false => Error::Broken { server, why },
            }
        })?;
        let status = answer.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(answer);
        }
        let body = self.whole(answer, limits::ANSWER_BYTES_MAX).await?;
        match serde_json::from_slice::<ProblemDetails>(&body) {
            Ok(problem) => Err(Error::Problem(Box::new(problem))),
            Err(_) => Err(self.strange(of_status(status))),
        }
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let answer = self.sent(request).await?;
        let body = self.whole(answer, limits::ANSWER_BYTES_MAX).await?;
        serde_json::from_slice(&body).map_err(|error| self.strange(error.to_string()))
    }

    async fn whole(&self, mut answer: Response, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| self.broken(&error))? {
            if body.len() + piece.len() > bytes_max {
                let mib = bytes_max >> 20;
                return Err(self.strange(format!("it has more than {mib} MiB")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    pub(crate) fn broken(&self, error: &reqwest::Error) -> Error {
        Error::Broken { server: self.server().to_owned(), why: deepest(error) }
    }

    pub(crate) fn strange(&self, what: impl Into<String>) -> Error {
        Error::Strange { server: self.server().to_owned(), what: what.into() }
    }
}

fn connections() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("outrigger/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_millis(limits::CONNECT_MS_MAX))
        .tcp_keepalive(Duration::from_millis(limits::KEEP_ALIVE_MS))
        .read_timeout(Duration::from_millis(limits::SILENCE_MS_MAX))
}

fn of_status(status: StatusCode) -> String {
    format!("status {status}, and nothing that this program knows; is it a server of outrigger's?")
}

fn read_piece(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut piece = vec![0; limits::PIECE_BYTES];
    let read = file.read(&mut piece)?;
    piece.truncate(read);
    Ok(piece)
}

/// Compresses an archive, piece by piece.
fn compress(
    mut archive: File,
    pieces: mpsc::Sender<std::io::Result<Vec<u8>>>,
) -> std::io::Result<()> {
    let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut piece = vec![0; limits::PIECE_BYTES];
    loop {
        let read = match archive.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) => {
                // The request must not look as if it were whole.
                drop(pieces.blocking_send(Err(std::io::Error::from(error.kind()))));
                return Err(error);
            }
        };
        encoder.write_all(&piece[..read])?;
        let ready = std::mem::take(encoder.get_mut());
        if !ready.is_empty() {
            pieces.blocking_send(Ok(ready)).map_err(|_| gone())?;
        }
    }
    pieces.blocking_send(Ok(encoder.finish()?)).map_err(|_| gone())
}
