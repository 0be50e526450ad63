//! This process as a caller of the gate, for one server.
//!
//! Owns that each server has a caller of its own, which reaches it and nothing else.

use async_trait::async_trait;
use outrigger_gate::{
    CallerSocket, Grant, Network, NetworkClient, Scheme, SealedSecret, ServerLaunch,
};
use outrigger_model::endpoint::ServerAddress;
use outrigger_model::{Gateway, HttpClient};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::egress::GATE_MODE;
use super::grants::proxy_to;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;

/// The gate of an installation, in a directory that is fit for it.
pub(crate) fn gate(paths: &Paths) -> Outcome<NetworkClient> {
    paths.prepare()?;
    Ok(match paths.supervisor() {
        Some(supervisor) => NetworkClient::new(paths.gate(), supervisor.clone()),
        None => NetworkClient::new(paths.gate(), launch(&Config::of_files(paths.configs())?)),
    })
}

/// How the gate is started.
pub(crate) fn launch(config: &Config) -> ServerLaunch {
    // Also where the file was replaced since.
    let (program, args) = (PathBuf::from("/proc/self/exe"), vec![OsString::from(GATE_MODE)]);
    let master_key_command = config.gate.master_key_command.clone();
    ServerLaunch { program, args, master_key_command }
}

/// A client of HTTP that reaches a server through the gate, and what it has there instead of
/// secrets, by their names.
pub(crate) async fn call(
    paths: &Paths,
    server: &ServerAddress,
    secrets: Vec<SealedSecret>,
) -> Outcome<(HttpClient, BTreeMap<String, String>)> {
    call_for(paths, vec![grant(server)], secrets).await
}

/// A client of HTTP by a caller that is granted these, of which the first says by which proxy, and what it has there instead of secrets.
pub(crate) async fn call_for(
    paths: &Paths,
    grants: Vec<Grant>,
    secrets: Vec<SealedSecret>,
) -> Outcome<(HttpClient, BTreeMap<String, String>)> {
    let proxy = grants.first().and_then(proxy_to);
    let network = Network { proxy, grants, ..Network::default() };
    let called = gate(paths)?.call(network, secrets).await;
    let (socket, placeholders) = called.map_err(|error| without(&error))?;
    let path = socket.path();
    let http = HttpClient::through(&path, Arc::new(GateCaller(socket)));
    let http = http.map_err(|error| Failure::from_error(Kind::ModelFailed, &error))?;
    Ok((http, placeholders))
}

/// All of a server. Its name may lead anywhere: a person said it.
pub(crate) fn grant(server: &ServerAddress) -> Grant {
    Grant {
        name: "harness".to_owned(),
        host: server.host.to_ascii_lowercase(),
        port: server.port,
        scheme: if server.is_tls { Scheme::Https } else { Scheme::Http },
        methods: Vec::new(),
        paths: Vec::new(),
        queries: Vec::new(),
        private: true,
    }
}

/// There is no gate, and so no way to anything.
pub(crate) fn without(error: &outrigger_gate::Error) -> Failure {
    let mut failure = Failure::from_error(Kind::ModelFailed, error);
    let said = failure.message;
    failure.message =
        format!("the gate, through which the outside is reached, does not serve: {said}");
    failure
}

#[derive(Debug)]
struct GateCaller(CallerSocket);

#[async_trait]
impl Gateway for GateCaller {
    async fn ready(&self) -> Result<(), String> {
        self.0.ready().await.map_err(|error| Failure::from_error(Kind::ModelFailed, &error).message)
    }
}
