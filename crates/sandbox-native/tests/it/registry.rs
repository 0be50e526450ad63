//! Images from a registry on this host's loopback interface.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::direct_route::DirectRoute;
use crate::images::{Parts, architecture, gzip, image, layers};
use crate::support::*;
use outrigger_sandbox::Error;
use outrigger_sandbox_native::{ImageDigest, Registry, Transport};

/// A registry that ends with the test.
struct Server {
    process: Child,
    port: u16,
    _storage: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The header in which a registry of the tests says where it keeps its images.
const STORAGE: &str = "x-storage";

impl Server {
    async fn start() -> Self {
        for _ in 0..20 {
            // A port that is free may be somebody else's a moment later.
            if let Some(server) = Self::begun().await {
                return server;
            }
        }
        panic!("docker-registry does not serve");
    }

    /// One that serves. `None`: it did not get its port.
    async fn begun() -> Option<Self> {
        let storage = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = storage.path().join("config.yml");
        let root = storage.path().display().to_string();
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {root}}}}}\n\
             http: {{addr: '127.0.0.1:{port}', headers: {{{STORAGE}: ['{root}']}}}}\n"
        );
        std::fs::write(&config, text).unwrap();
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry; install the package of that name");
        let mut server = Self { process, port, _storage: storage };
        for _ in 0..1_000 {
            let answer = reqwest::get(server.url("")).await;
            let own = |answer: reqwest::Response| answer.headers().get(STORAGE).cloned();
            if answer.ok().and_then(own).is_some_and(|at| at.as_bytes() == root.as_bytes()) {
                return Some(server);
            }
            if server.process.try_wait().unwrap().is_some() {
                return None;
            }
            // poll: until it takes connections, bounded by the loop.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("docker-registry does not serve");
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/v2/{path}", self.port)
    }

    async fn push_blob(&self, bytes: &[u8]) {
        let client = reqwest::Client::new();
        let begun = client.post(self.url("test/image/blobs/uploads/")).send().await.unwrap();
        let to = begun.headers()["location"].to_str().unwrap();
        let to = format!("{to}&digest={}", ImageDigest::of(bytes));
        let put = client.put(to).body(bytes.to_vec()).send().await.unwrap();
        assert!(put.status().is_success(), "{}", put.status());
    }

    async fn push_manifest(&self, name: &str, kind: &str, bytes: &[u8]) {
        let put = reqwest::Client::new()
            .put(self.url(&format!("test/image/manifests/{name}")))
            .header("content-type", format!("application/vnd.oci.image.{kind}.v1+json"))
            .body(bytes.to_vec());
        let put = put.send().await.unwrap();
        assert!(put.status().is_success(), "{}", put.text().await.unwrap());
    }

    async fn push(&self, parts: &Parts) {
        for blob in parts.blobs.iter().chain([&parts.config]) {
            self.push_blob(blob).await;
        }
        self.push_manifest("one", "manifest", &parts.manifest).await;
        let platform = serde_json::json!({ "os": "linux", "architecture": architecture() });
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let index = serde_json::json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{ "mediaType": kind, "digest": ImageDigest::of(&parts.manifest),
                            "size": parts.manifest.len(), "platform": platform }],
        });
        self.push_manifest("many", "index", index.to_string().as_bytes()).await;
    }

    fn image(&self, rest: &str) -> Registry {
        let reference = format!("127.0.0.1:{}/test/image{rest}", self.port);
        Registry { reference, transport: Transport::Https, hosts: vec![] }
    }
}

#[tokio::test]
async fn an_image_is_pulled_by_tag_index_and_digest() {
    let (world, server) = (world().await, Server::start().await);
    let layers = layers();
    let parts = image(&layers, gzip);
    server.push(&parts).await;
    let digest = ImageDigest::of(&parts.manifest);
    let seen = std::sync::Mutex::new(Vec::new());
    for (name, rest) in [
        ("tag", ":one".to_owned()),
        ("index", ":many".to_owned()),
        ("digest", format!("@{digest}")),
    ] {
        let watch = |progress| seen.lock().unwrap().push(progress);
        let made = world
            .native
            .pull(name, &server.image(&rest), &DirectRoute::new(), &watch)
            .await
            .unwrap();
        assert_eq!(made.manifest, Some(digest), "{name}");
        let digests: Vec<_> = layers.iter().map(|layer| ImageDigest::of(layer)).collect();
        assert_eq!(made.layers, digests, "{name}");
    }
    let seen = seen.into_inner().unwrap();
    let last = seen.last().unwrap();
    assert_eq!((last.layers, last.bytes), (3, last.bytes_total));
    assert_eq!(world.native.templates().await.unwrap().len(), 3);
}

#[tokio::test]
async fn what_is_not_there_or_not_as_named_is_said_so() {
    let (world, server) = (world().await, Server::start().await);
    server.push(&image(&layers()[1..], gzip)).await;
    let other = ImageDigest::of(b"another");
    for rest in [":none".to_owned(), format!("@{other}")] {
        let error = world
            .native
            .pull("x", &server.image(&rest), &DirectRoute::new(), &|_| ())
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Absent { .. }), "{error:?}");
    }
    let nobody = Registry {
        reference: "127.0.0.1:1/x".to_owned(),
        transport: Transport::Https,
        hosts: vec![],
    };
    let error = world.native.pull("x", &nobody, &DirectRoute::new(), &|_| ()).await.unwrap_err();
    assert!(matches!(error, Error::Backend(_)), "{error:?}");
    let malformed =
        Registry { reference: "UPPER case".to_owned(), transport: Transport::Https, hosts: vec![] };
    let error = world.native.pull("x", &malformed, &DirectRoute::new(), &|_| ()).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    assert!(world.native.templates().await.unwrap().is_empty());
}
